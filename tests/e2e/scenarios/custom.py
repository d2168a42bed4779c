"""A CustomResourceDefinition and its objects."""

from __future__ import annotations

import asyncio

from ..api import JSON_PATCH, MERGE, STRATEGIC, Object
from ..definitions import definition
from ..recording import AnswerRecorder
from .common import version_of


async def custom_resources(server: AnswerRecorder) -> None:
    """A CustomResourceDefinition and its objects."""
    group = f"{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.ask("GET", f"/apis/{group}")
    await server.ask("GET", relics)
    await server.define(definition(group, "Relic"))
    relic: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "Relic",
        "metadata": {"name": "a"},
        "spec": {"z": 1, "b": 2},
    }
    created = await server.ask("POST", relics, relic)
    await server.ask("POST", relics, relic)
    await server.ask("POST", relics, {"metadata": {"name": "b"}})
    await server.ask("POST", relics, relic | {"kind": "Cave"})
    await server.ask("POST", relics, relic | {"metadata": {"name": "UPPER"}})
    await server.ask("PUT", f"{relics}/a", relic | {"spec": {"z": 2}})
    await server.ask("PUT", f"{relics}/a", relic | {"metadata": {"name": "a", "resourceVersion": "0"}})
    await server.ask("PUT", f"{relics}/a", created.body | {"spec": {"z": 2}})
    await server.ask("PUT", f"{relics}/a", created.body | {"spec": {"z": 3}})
    await server.ask("PATCH", f"{relics}/a", {"spec": {"z": 4}, "status": {"no": 1}}, content_type=MERGE)
    for name in ("a", "absent"):
        await server.ask("PATCH", f"{relics}/{name}", {"spec": {"z": 5}}, content_type=STRATEGIC)
    for metadata in ({}, {"name": "other"}):
        await server.ask("PUT", f"{relics}/absent", relic | {"metadata": metadata})
    nulls = {"name": "nulls", "labels": {"a": None}, "annotations": {"b": None}}
    await server.ask("POST", relics, relic | {"metadata": nulls})
    await server.ask(
        "PATCH", f"{relics}/a", [{"op": "add", "path": "/spec/y", "value": 1}], content_type=JSON_PATCH
    )
    await server.ask(
        "PATCH", f"{relics}/a/status", {"spec": {"no": 1}, "status": {"s": 1}}, content_type=MERGE
    )
    await server.ask("PATCH", f"{relics}/a", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await server.ask("GET", f"{relics}/a")
    await server.ask("GET", relics)
    await server.ask("GET", relics, query={"limit": "1"})
    await server.ask("GET", f"/apis/{group}/v1/relics", query={"labelSelector": "a=b"})
    await server.ask("GET", relics, query={"fieldSelector": "metadata.name=a"})
    await server.ask("GET", relics, query={"fieldSelector": "spec.z=4"})
    await server.ask("GET", f"/apis/{group}/v1")
    await server.ask("GET", f"/apis/{group}")
    await server.watch(relics, {"resourceVersion": version_of(created)})
    stream = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    await server.watch(relics, stream | {"allowWatchBookmarks": "true"})
    await server.ask("DELETE", f"{relics}/a")
    await server.ask("DELETE", relics)


async def definitions(server: AnswerRecorder) -> None:
    """A CustomResourceDefinition is changed, and deleted."""
    group = f"definitions.{server.namespace}.example.com"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/relics.{group}"
    await server.define(definition(group, "Relic"))
    changed = await server.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await server.ask("PUT", path, changed.body | {"metadata": changed.body["metadata"] | {"labels": {}}})
    for finalizers in (["not one"], ["unqualified"], []):
        await server.ask("PATCH", path, {"metadata": {"finalizers": finalizers}}, content_type=MERGE)
    await server.ask("DELETE", path)
    await server.until(404, path)


async def columns(server: AnswerRecorder) -> None:
    """What a table shows of custom resources, with columns of their own and without."""
    group = f"columns.{server.namespace}.example.com"
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    shown = (
        (
            "string",
            ".spec.size",
            ".spec.list",
            ".spec.list[0]",
            ".spec.list[-1]",
            ".spec.list[7]",
            ".spec.map",
        ),
        ("string", ".spec.list[*]", ".spec.flag", ".spec.number", ".spec.none", ".spec.map.*"),
        ("string", '.status.conditions[?(@.type=="Ready")].status', r".metadata.annotations.example\.com/a"),
        (
            "string",
            ".status.conditions[?(@.type=='Not')].status",
            '.status.conditions[?(@.type!="Other")].type',
        ),
        ("string", ".status.conditions[?(@.status)].type", ".metadata.annotations['example.com/a']"),
        (
            "string",
            r".metadata.annotations['example\.com/a']",
            ".spec['size']",
            ".spec.map['a']",
            ".spec.text.more",
        ),
        (
            "string",
            *(
                f".status.conditions[?(@.{selector})].type"
                for selector in ("since>2", "type>2", "since==three")
            ),
        ),
        ("integer", ".spec.size", ".spec.number", ".spec.flag", ".spec.text"),
        ("number", ".spec.size", ".spec.number", ".spec.text"),
        ("boolean", ".spec.flag", ".spec.size"),
        ("date", ".metadata.creationTimestamp", ".spec.text", ".spec.none", ".spec.size"),
    )
    made, plain = definition(group, "Relic"), definition(group, "Rune")
    (v1,) = made["spec"]["versions"]
    v1["additionalPrinterColumns"] = [
        {"name": f"{kind} {number}", "type": kind, "jsonPath": path, "priority": number % 2}
        for kind, *paths in shown
        for number, path in enumerate(paths)
    ]
    spec = {"size": 2, "list": ["x", "y"], "flag": True, "number": 1.5, "map": {"a": 1}, "text": "some"}
    conditions = [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True", "since": 3}]
    for crd in (made, plain):
        kind, plural = (crd["spec"]["names"][name] for name in ("kind", "plural"))
        path = f"/apis/{group}/v1/namespaces/NS/{plural}"
        await server.define(crd)
        metadata = {"name": "a", "annotations": {"example.com/a": "v"}}
        relic = {"apiVersion": f"{group}/v1", "kind": kind}
        await server.ask("POST", path, relic | {"metadata": metadata, "spec": spec})
        await server.ask(
            "PATCH", f"{path}/a/status", {"status": {"conditions": conditions}}, content_type=MERGE
        )
        await server.ask("POST", path, relic | {"metadata": {"name": "empty"}})
        await server.ask("GET", path, accept=table)


async def refused_definitions(server: AnswerRecorder) -> None:
    """Invalid CustomResourceDefinitions, and changes of immutable fields."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    group = f"refused.{server.namespace}.example.com"

    async def refuse(part: str, **changed: object) -> None:
        made = definition(group, "Relic")
        made["metadata"]["name"] = changed.pop("name", made["metadata"]["name"])
        target = made["spec"] if part == "spec" else made["spec"][part]
        (target[0] if isinstance(target, list) else target).update(changed)
        await server.ask("POST", crds, made)

    await refuse("spec", name="other.example.com")
    await refuse("spec", name="relics.example", group="example")
    for scope in ("Nonsense", ""):
        await refuse("spec", scope=scope)
    for domain in ("", "Example.com"):
        await refuse("spec", group=domain)
    await refuse("spec", versions=[])
    await refuse("spec", versions="v1")
    await refuse("names", kind="C" * 64)
    await refuse("names", kind=7)
    await refuse("versions", schema=None)
    await refuse("versions", name="1")
    await refuse("versions", storage=False)
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    for change in ({"name": ""}, {"type": "int"}, {"format": "decimal"}, {"jsonPath": "spec.size"}):
        await refuse("versions", additionalPrinterColumns=[column, column | change])
    for scale in (
        {},
        {"specReplicasPath": "spec.size", "statusReplicasPath": ".status.size"},
        {"specReplicasPath": ".spec.size", "statusReplicasPath": ".spec.size"},
        {"specReplicasPath": ".size", "statusReplicasPath": ".status.size"},
    ):
        await refuse("versions", subresources={"scale": scale})
    await refuse("versions", selectableFields=[{"jsonPath": ""}])
    await refuse("names", plural="Relics", kind="re lic", singular="7")
    await refuse("names", plural="", kind="", singular="", name="none.example.com")
    await refuse("names", listKind="Relic")
    await refuse("names", shortNames=["ok", "not ok"], categories=["Not"])
    made = definition(group, "Relic")
    made["spec"]["names"]["shortNames"] = ["re"]
    (v1,) = made["spec"]["versions"]
    await server.ask("POST", crds, made)
    path = f"{crds}/relics.{group}"
    await server.until(200, f"/apis/{group}/v1/relics")
    for spec in (
        {"scope": "Cluster"},
        {"group": "other.com"},
        {"names": {"kind": "Other"}},
        {"names": {"plural": "others"}},
    ):
        await server.ask("PATCH", path, {"spec": spec}, content_type=MERGE)
    for stored in ([v1 | {"storage": False}, v1 | {"name": "v2"}], [v1 | {"name": "v2"}]):
        await server.ask("PATCH", path, {"spec": {"versions": stored}}, content_type=MERGE)
    await server.ask("PATCH", f"{path}/status", {"status": {"storedVersions": ["v2"]}}, content_type=MERGE)
    for kind, names in (
        ("Rune", {"shortNames": ["re", "relic"]}),
        ("Ruin", {"kind": "Relic", "listKind": "RelicList"}),
        ("Root", {"singular": "relics"}),
    ):
        other = definition(group, kind)
        other["spec"]["names"] |= names
        await server.ask("POST", crds, other)
        await asyncio.sleep(0.5)
        await server.ask("GET", f"{crds}/{other['metadata']['name']}")
    await server.ask("DELETE", path)
    await server.until(404, path)
    await server.until(200, f"/apis/{group}/v1/runes")
    await server.ask("GET", f"{crds}/runes.{group}")
    runes = f"/apis/{group}/v1/namespaces/NS/runes"
    rune = {
        "apiVersion": f"{group}/v1",
        "kind": "Rune",
        "metadata": {"name": "a", "finalizers": ["example.com/a"]},
    }
    await server.ask("POST", runes, rune)
    await server.ask("DELETE", f"{crds}/runes.{group}")
    await asyncio.sleep(1)
    await server.ask("POST", runes, rune | {"metadata": {"name": "b"}})
    await server.ask("POST", runes, rune | {"metadata": {"generateName": "c-"}})
    await server.ask("PATCH", f"{runes}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)


async def protected_definitions(server: AnswerRecorder) -> None:
    """CustomResourceDefinitions in groups of Kubernetes' own, which want to be approved."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    approved = "api-approved.kubernetes.io"
    for domain in ("k8s.io", "kubernetes.io"):
        made = definition(f"{server.namespace}.{domain}", "Relic")
        name, metadata = made["metadata"]["name"], made["metadata"]
        for value in (None, "", "yes", "/pull/1111", "https:", "https://a b", "https://["):
            annotations = {} if value is None else {"annotations": {approved: value}}
            await server.ask("POST", crds, made | {"metadata": metadata | annotations})
        await server.ask("POST", crds, made | {"spec": made["spec"] | {"scope": "Nonsense"}})
        bypassed = {"annotations": {approved: "unapproved, a test"}}
        await server.ask("POST", crds, made | {"metadata": metadata | bypassed})
        path = f"{crds}/{name}"
        await server.until(200, f"/apis/{server.namespace}.{domain}/v1/relics")
        for value in ("no", None):
            await server.ask(
                "PATCH", path, {"metadata": {"annotations": {approved: value}}}, content_type=MERGE
            )


async def versions(server: AnswerRecorder) -> None:
    """Versions of a custom resource come and go; whatever changes a definition's spec ends all watches."""
    group = f"versions.{server.namespace}.example.com"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/relics.{group}"
    relics, older = (f"/apis/{group}/{version}/namespaces/NS/relics" for version in ("v1", "v1beta1"))
    made = definition(group, "Relic")
    (v1,) = made["spec"]["versions"]
    beta = v1 | {"name": "v1beta1", "storage": False}
    made["spec"]["versions"] = [v1, beta]
    await server.define(made)
    await server.until(200, older)
    other = definition(group, "Rune")
    other["spec"]["versions"] = [
        v1 | {"name": name, "storage": name == "v1alpha1"}
        for name in ("v1alpha1", "odd", "v2beta1", "v10", "v1beta2", "v2")
    ]
    await server.define(other)
    await server.until(200, f"/apis/{group}/v10")
    await server.ask("GET", f"/apis/{group}")
    relic = {"kind": "Relic", "metadata": {"name": "a"}}
    created = await server.ask("POST", relics, relic | {"apiVersion": f"{group}/v1"})
    await server.ask("GET", f"/apis/{group}/v1/cauldrons")
    for served in ([v1, beta | {"served": False}], [v1, beta], [v1]):
        async with asyncio.timeout(20), asyncio.TaskGroup() as watching:
            watching.create_task(server.watch(relics, {"resourceVersion": "0", "timeoutSeconds": "60"}))
            await asyncio.sleep(0.5)
            await server.ask("PATCH", path, {"spec": {"versions": served}}, content_type=MERGE)
        await server.until(200 if beta in served else 404, older)
        await server.until(200, relics)
        for collection in (relics, older):
            await server.ask("GET", collection)
        await server.ask("GET", f"/apis/{group}/v1beta1")
        await server.ask("POST", older, relic | {"apiVersion": f"{group}/v1beta1"})
        await server.watch(older)
        await server.watch(relics, {"resourceVersion": version_of(created)})


async def pruning(server: AnswerRecorder) -> None:
    """Values that a CustomResourceDefinition's schema refuses or drops."""
    group = f"pruning.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.define(definition(group, "Relic"))
    relic: Object = {"apiVersion": f"{group}/v1", "kind": "Relic", "spec": {"z": 1}}
    await server.ask("POST", relics, relic | {"metadata": {"name": "pruned"}, "unknown": 1})
    await server.ask("POST", relics, relic | {"metadata": {"name": "bad"}, "spec": 7})
