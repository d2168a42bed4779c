"""Patches of every kind, and the status subresource."""

from __future__ import annotations

from typing import Any

from tests.samples import configmap

from ..api import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Object
from ..clusters import pod_manifest
from ..definitions import definition
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, DEPLOYMENTS, PODS, version_of


async def patches(server: AnswerRecorder) -> None:
    """JSON, merge and strategic patches."""
    created = await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1", m="1"))
    path = f"{CONFIGMAPS}/a"
    for kind, patch in (
        (MERGE, {"data": {"k": "2", "m": None}}),
        (MERGE, {"data": {"k": "2"}}),  # which changes nothing
        (MERGE, {"metadata": {"resourceVersion": "1"}, "data": {"k": "3"}}),
        (MERGE, {"metadata": {"name": "b"}}),
        (MERGE, {"metadata": {"namespace": "other"}}),
        (MERGE, {"metadata": {"uid": "f00"}}),
        (MERGE, {"metadata": {"deletionGracePeriodSeconds": 5}}),
        (MERGE, {"metadata": {"selfLink": "/nowhere"}}),
        (MERGE, {"metadata": {"annotations": {"a": "x" * 270_000}}}),
        (MERGE, {"metadata": {"labels": {"app": "-"}}}),
        (MERGE, {"metadata": None}),
        (MERGE, {"kind": "Secret"}),
        (MERGE, b"[]"),
        (MERGE, b"{"),
        (MERGE, b""),
        (STRATEGIC, {"metadata": {"labels": {"tier": "front", "app": None}}}),
        (STRATEGIC, {"data": {"$patch": "replace", "only": "1"}}),
        (STRATEGIC, b"{"),
        (
            JSON_PATCH,
            [
                {"op": "test", "path": "/data/only", "value": "1"},
                {"op": "add", "path": "/data/j", "value": "1"},
            ],
        ),
        (JSON_PATCH, [{"op": "test", "path": "/data/only", "value": "2"}]),
        (JSON_PATCH, [{"op": "remove", "path": "/data/absent"}]),
        (
            JSON_PATCH,
            [
                {"op": "replace", "path": "/data/j", "value": "2"},
                {"op": "copy", "from": "/data/j", "path": "/data/c"},
            ],
        ),
        (JSON_PATCH, [{"op": "move", "from": "/data/j", "path": "/data/moved"}]),
        (JSON_PATCH, [{"op": "replace", "path": "/data/new", "value": "1"}]),
        (JSON_PATCH, [{"op": "replace", "path": "/binaryData/new", "value": "1"}]),
        (JSON_PATCH, [{"op": "replace", "path": "/metadata/finalizers/0", "value": "example.com/a"}]),
        (JSON_PATCH, [{"op": "jump", "path": "/data"}]),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]}]),
        (JSON_PATCH, [{"op": "remove", "path": "/metadata/finalizers"}]),
        (JSON_PATCH, {"op": "remove", "path": "/data"}),
        (JSON_PATCH, b"["),
        (JSON_PATCH, []),
        (JSON, {}),
        ("text/plain", b"x"),
    ):
        await server.ask("PATCH", path, patch, content_type=kind)
    await server.ask("PATCH", f"{CONFIGMAPS}/absent", {}, content_type=MERGE)
    await server.ask("PATCH", path, {"data": {"dry": "1"}}, {"dryRun": "All"}, content_type=MERGE)
    await server.ask("GET", path)
    await server.watch(CONFIGMAPS, {"resourceVersion": version_of(created)})


async def containers(server: AnswerRecorder) -> None:
    """Strategic patches of lists, which merge by name."""
    made = pod_manifest("web")
    made["spec"]["containers"].append({"name": "side", "image": "example.com/side"})
    await server.ask("POST", PODS, made)
    path = f"{PODS}/web"
    for patch in (
        {"spec": {"containers": [{"name": "side", "image": "example.com/side:2"}]}},
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "main"}, {"name": "side"}],
                "containers": [{"name": "main", "image": "example.com/main:2"}],
            }
        },
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
        {"metadata": {"finalizers": ["example.com/a"]}},
        {"metadata": {"finalizers": ["example.com/b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
        {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
    ):
        await server.ask("PATCH", path, patch, content_type=STRATEGIC)


async def status(server: AnswerRecorder) -> None:
    """The status subresource: of what has one, neither writes the other's part."""
    created = await server.ask("POST", PODS, pod_manifest("web") | {"status": {"phase": "Failed"}})
    path = f"{PODS}/web"
    await server.ask("PATCH", path, {"status": {"phase": "Running"}}, content_type=MERGE)
    await server.ask(
        "PATCH", f"{path}/status", {"status": {"phase": "Running", "message": "well"}}, content_type=MERGE
    )
    await server.ask(
        "PATCH",
        f"{path}/status",
        {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}},
        content_type=MERGE,
    )
    await server.ask("GET", f"{path}/status")
    await server.ask("PUT", f"{path}/status", created.body | {"status": {"phase": "Failed"}})
    current = await server.ask("GET", path)
    await server.ask("PUT", f"{path}/status", current.body | {"status": {"phase": "Succeeded"}})
    await server.ask("PUT", path, current.body | {"metadata": {"name": "web", "labels": {"c": "d"}}})
    await server.ask("DELETE", f"{path}/status")
    await server.ask("PATCH", f"{CONFIGMAPS}/absent/status", {}, content_type=MERGE)
    await server.ask("POST", DEPLOYMENTS, deployment("web", 1))
    await server.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}}, content_type=MERGE)
    await server.ask("PATCH", f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await server.ask("PATCH", f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 2}}, content_type=MERGE)
    await server.ask(
        "PATCH", f"{DEPLOYMENTS}/web", {"metadata": {"annotations": {"a": "b"}}}, content_type=MERGE
    )
    everything = {"labels": {"c": "d"}, "annotations": {"c": "d"}, "finalizers": ["example.com/a"]}
    await server.ask("PATCH", f"{DEPLOYMENTS}/web/status", {"metadata": everything}, content_type=MERGE)
    await server.ask("GET", f"{DEPLOYMENTS}/web/scale")
    await server.watch(DEPLOYMENTS)
    slices = "/apis/discovery.k8s.io/v1/namespaces/NS/endpointslices"
    await server.ask("POST", slices, {"metadata": {"name": "web"}, "addressType": "IPv4", "endpoints": []})
    for patch in (
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"ports": [{"name": "a", "port": 80, "protocol": "TCP"}]},
    ):
        await server.ask("PATCH", f"{slices}/web", patch, content_type=MERGE)


async def scale(server: AnswerRecorder) -> None:
    """The scale subresource: of a Deployment, and of a custom resource that has its numbers elsewhere."""
    path = f"{DEPLOYMENTS}/web"
    await server.ask("POST", DEPLOYMENTS, deployment("web", 1))
    await rescale(server, path)
    whole: Object = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", 5)}
    for manager in ("scaler", "me"):
        await server.ask("PATCH", path, whole, {"fieldManager": manager}, content_type=APPLY)
    group = f"scale.{server.namespace}.example.com"
    made = definition(group, "Relic")
    made["spec"]["versions"][0]["subresources"]["scale"] = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    await server.define(made)
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.ask(
        "POST", relics, {"apiVersion": f"{group}/v1", "kind": "Relic", "metadata": {"name": "web"}}
    )
    await server.ask("GET", f"{relics}/web/scale")
    seen = {"status": {"size": 1, "selector": "a=b"}}
    await server.ask("PATCH", f"{relics}/web/status", seen, content_type=MERGE)
    await rescale(server, f"{relics}/web")


async def rescale(server: AnswerRecorder, path: str) -> None:
    """Every way to write a Scale of what is named web."""
    for replicas in (0, 5, -1):
        await server.ask("PATCH", f"{path}/scale", {"spec": {"replicas": replicas}}, content_type=MERGE)
    await server.ask(
        "PATCH",
        f"{path}/scale",
        [{"op": "replace", "path": "/spec/replicas", "value": 6}],
        content_type=JSON_PATCH,
    )
    seen = await server.ask("GET", f"{path}/scale")
    for _ in range(2):  # the second of them comes too late
        await server.ask("PUT", f"{path}/scale", seen.body | {"spec": {"replicas": 3}})
    kind: Object = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    for metadata in ({"name": "web"}, {"name": "other"}, {}, {"name": "web", "namespace": "other"}):
        await server.ask("PUT", f"{path}/scale", kind | {"metadata": metadata, "spec": {"replicas": 4}})
    applied = kind | {"metadata": {"name": "web"}, "spec": {"replicas": 7}}
    for obj, manager, force in (
        (applied, "scaler", "true"),
        (applied | {"spec": {"replicas": 8}}, "other", "false"),
        (applied | {"spec": {"replicas": 9}}, "scaler", "false"),
    ):
        query = {"fieldManager": manager, "force": force}
        await server.ask("PATCH", f"{path}/scale", obj, query, content_type=APPLY)
    await server.ask("GET", path)
    await server.ask("PATCH", path.replace("web", "absent") + "/scale", {}, content_type=MERGE)


async def applied(server: AnswerRecorder) -> None:
    """Server-side apply."""
    path = f"{CONFIGMAPS}/applied"
    whole: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied"},
        "data": {"k": "1"},
    }
    manager = {"fieldManager": "tests"}
    for query in ({}, {"fieldManager": "x" * 129}):
        await server.ask("PATCH", path, whole, query, content_type=APPLY)
    for kind in (MERGE, APPLY):
        await server.ask("PATCH", path, {}, {"fieldManager": "x" * 129, "force": "true"}, content_type=kind)
    await server.ask("POST", CONFIGMAPS, whole, {"fieldManager": "x" * 129})
    await server.ask("POST", CONFIGMAPS, whole, {"dryRun": ""})
    await server.ask("PUT", path, whole, {"fieldManager": "x" * 129})
    await server.ask("PATCH", path, whole, manager, content_type=APPLY)
    await server.ask("PATCH", path, whole | {"data": {"m": "1"}}, manager, content_type=APPLY)
    for other in ({"kind": None}, {"apiVersion": None}, {"kind": "Secret"}, {"apiVersion": "v2"}):
        await server.ask("PATCH", path, whole | other, manager, content_type=APPLY)
    for metadata in ({"name": "applied", "managedFields": []}, {}, {"name": "other"}):
        await server.ask("PATCH", path, whole | {"metadata": metadata}, manager, content_type=APPLY)
    await server.ask(
        "PATCH", path, whole | {"data": {"m": "2"}}, {"fieldManager": "other"}, content_type=APPLY
    )
    await server.ask(
        "PATCH",
        path,
        whole | {"data": {"m": "2"}},
        {"fieldManager": "other", "force": "true"},
        content_type=APPLY,
    )
    await server.ask("GET", path)


async def applied_by_two(server: AnswerRecorder) -> None:
    """Server-side apply: omitting a field in which another manager owns something."""
    group = f"applied.{server.namespace}.example.com"
    await server.define(definition(group, "Relic"))

    async def apply(path: str, obj: Object, manager: str, *, force: bool = False) -> None:
        query = {"fieldManager": manager} | ({"force": "true"} if force else {})
        await server.ask("PATCH", path, obj, query, content_type=APPLY)

    async def relic(name: str, manager: str, spec: Object | None = None, *, force: bool = False) -> None:
        obj = {"apiVersion": f"{group}/v1", "kind": "Relic", "metadata": {"name": name}}
        path = f"/apis/{group}/v1/namespaces/NS/relics/{name}"
        await apply(path, obj if spec is None else obj | {"spec": spec}, manager, force=force)

    await relic("a", "me", {})
    await relic("a", "you", {"depth": 1})
    await relic("a", "me")
    await relic("a", "you")
    await relic("a", "me", {"depth": 2})
    await relic("b", "me", {"a": {}})
    await relic("b", "you", {"a": {"b": {"c": 1}}})
    await relic("b", "me", {"a": {"b": {}}})
    await relic("b", "me", {"z": 1})
    await relic("b", "me")
    for api_version, kind in ((f"{group}/v1", "Cave"), (f"{group}/v2", "Relic"), ("", "")):
        other = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "b"}}
        await apply(f"/apis/{group}/v1/namespaces/NS/relics/b", other, "me")
    await relic("c", "me", {"a": 1})
    await relic("c", "you", {"a": {"b": 1}})
    await relic("c", "you", {"a": {"b": 1}}, force=True)
    await relic("c", "me")

    async def containers_of(manager: str, *names: str, **fields: Any) -> None:
        obj = deployment("applied", 1)
        containers = [{"name": name, "image": "example.com/main", **fields} for name in names]
        obj["spec"]["template"]["spec"]["containers"] = containers
        await apply(path, {"apiVersion": "apps/v1", "kind": "Deployment", **obj}, manager)

    path = f"{DEPLOYMENTS}/applied"
    await containers_of("me", "a", "b", "c")
    await containers_of("you", "b", tty=True)
    edited = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.com/new"}]}}}}
    await server.ask("PATCH", path, edited, {"fieldManager": "editor"}, content_type=STRATEGIC)
    await containers_of("me", "a")
    await containers_of("me", "a", "c")


async def applied_ports(server: AnswerRecorder) -> None:
    """Server-side apply and strategic patches of ports, of which several have one number."""
    udp = {"name": "dns", "port": 53, "protocol": "UDP"}
    tcp = {"name": "dns-tcp", "port": 53}
    path = "/api/v1/namespaces/NS/services/dns"
    for manager, ports in (
        ("me", [udp, tcp]),
        ("me", [udp, tcp]),
        ("you", [{"name": "other", "port": 53, "protocol": "TCP"}]),
        ("you", [tcp | {"targetPort": 5353}]),
        ("me", [udp, {"name": "web", "port": 80}]),
    ):
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "dns"},
            "spec": {"ports": ports},
        }
        await server.ask("PATCH", path, service, {"fieldManager": manager}, content_type=APPLY)
    patch = {"spec": {"ports": [{"port": 80, "protocol": "UDP", "name": "renamed"}]}}
    await server.ask("PATCH", path, patch, content_type=STRATEGIC)
    made: Object = {"apiVersion": "v1", "kind": "Pod", **pod_manifest("dns")}
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]
    for _ in range(2):
        await server.ask("PATCH", f"{PODS}/dns", made, {"fieldManager": "me"}, content_type=APPLY)


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_manifest(name)["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
