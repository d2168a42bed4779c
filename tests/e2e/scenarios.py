"""Sequences of requests, to be sent to two servers alike. What a request needs of earlier answers it takes from them."""

from __future__ import annotations

from typing import Any

from .api import JSON, JSON_PATCH, MERGE, STRATEGIC, Object
from .clusters import configmap, pod
from .definitions import definition
from .recording import Recorder

CONFIGMAPS = "/api/v1/namespaces/NS/configmaps"
PODS = "/api/v1/namespaces/NS/pods"
APPLY = "application/apply-patch+yaml"


def version_of(answer: Any) -> str:
    return str(answer.body["metadata"]["resourceVersion"])


async def life(server: Recorder) -> None:
    """Create, read, replace and delete one object."""
    created = await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1"))
    await server.ask("POST", CONFIGMAPS, configmap("a"))
    await server.ask("GET", f"{CONFIGMAPS}/a")
    await server.ask("GET", CONFIGMAPS)
    await server.ask("PUT", f"{CONFIGMAPS}/a", created.body)  # which changes nothing
    await server.ask("PUT", f"{CONFIGMAPS}/a", created.body | {"data": {"k": "2"}})
    await server.ask("PUT", f"{CONFIGMAPS}/a", created.body | {"data": {"k": "3"}})  # conflict
    await server.ask("PUT", f"{CONFIGMAPS}/a", configmap("a", k="4"))  # whatever its version
    await server.ask("PUT", f"{CONFIGMAPS}/a", configmap("b"))
    await server.ask("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a", "namespace": "other"}})
    await server.ask("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a", "uid": "f00"}})
    await server.ask("PUT", f"{CONFIGMAPS}/absent", configmap("absent"))
    await server.ask("DELETE", f"{CONFIGMAPS}/a", query={"dryRun": "All"})
    await server.ask("DELETE", f"{CONFIGMAPS}/a", {"preconditions": {"uid": "f00"}})
    await server.ask("DELETE", f"{CONFIGMAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    await server.ask("GET", f"{CONFIGMAPS}/a")
    await server.ask("GET", CONFIGMAPS)
    await server.watch(CONFIGMAPS, resourceVersion=version_of(created))


async def bad_requests(server: Recorder) -> None:
    """What is refused, and in which words."""
    post = "POST", CONFIGMAPS
    await server.ask(*post, b"{no JSON")
    await server.ask(*post, b"")
    await server.ask(*post, b"[]")
    await server.ask(*post, b"7")
    await server.ask(*post, b"a: b", content_type="text/plain")
    await server.ask(*post, {})
    await server.ask(*post, {"metadata": {}})
    await server.ask(*post, configmap("a") | {"kind": "Secret", "apiVersion": "v1"})
    await server.ask(*post, configmap("a") | {"kind": "ConfigMap", "apiVersion": "v2"})
    await server.ask(*post, {"metadata": {"name": "a", "namespace": "other"}})
    await server.ask(*post, {"metadata": {"name": "a", "resourceVersion": "7"}})
    await server.ask("POST", "/api/v1/namespaces/absent-namespace/configmaps", configmap("a"))
    await server.ask("POST", f"{CONFIGMAPS}/a", configmap("a"))
    await server.ask("PUT", CONFIGMAPS, configmap("a"))
    await server.ask("PATCH", CONFIGMAPS, {}, content_type=MERGE)
    await server.ask("GET", "/api/v1/namespaces/absent-namespace/configmaps")
    await server.ask("GET", "/api/v1/namespaces/absent-namespace/configmaps/a")
    await server.ask("GET", "/api/v1/namespaces/NS/cauldrons")
    await server.ask("GET", "/apis/apps/v1/namespaces/NS/cauldrons/a")
    await server.ask("POST", "/apis/apps/v1/namespaces/NS/cauldrons", {})
    await server.ask("GET", "/apis/absent.example.com/v1/cauldrons")
    await server.ask("GET", "/apis/apps/v9/deployments")
    await server.ask("GET", "/nowhere")
    await server.ask("GET", f"{CONFIGMAPS}/a/status")
    await server.ask("GET", CONFIGMAPS, query={"limit": "some"})
    await server.ask("GET", CONFIGMAPS, query={"watch": "maybe", "timeoutSeconds": "1"})
    await server.ask("GET", CONFIGMAPS, query={"timeoutSeconds": "long"})
    await server.ask("GET", CONFIGMAPS, query={"unknown": "ignored"})
    await server.ask(*post, configmap("a"), {"dryRun": "Some"})
    await server.ask(*post, configmap("a"), {"dryRun": "All"})
    await server.ask("GET", CONFIGMAPS, accept="text/html")


async def names(server: Recorder) -> None:
    """Names, labels and other metadata, good and bad."""
    for name in ("A", "a_b", "a.b", "a..b", "-a", "a-", "ä", "a" * 253, "a" * 254, "a/b", "", "1"):
        await server.ask("POST", CONFIGMAPS, configmap(name))
    for key, value in (
        ("app", "a" * 64),
        ("app", "-"),
        ("app", ""),
        ("", "a"),
        ("a/b/c", "a"),
        ("Example.com/app", "a"),
        ("a" * 64, "a"),
        ("-", "a"),
        ("example.com/app", "A_b.c-1"),
    ):
        await server.ask("POST", CONFIGMAPS, configmap("labelled", labels={key: value}), {"dryRun": "All"})
    for metadata in (
        {"annotations": {"a b": "c"}},
        {"annotations": {"Upper.Case/ok": "any text ✓"}},
        {"finalizers": ["unqualified"]},
        {"finalizers": ["example.com/a", "example.com/a"]},
        {"ownerReferences": [{"name": "a"}]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}]},
        {"labels": {"app": 7}},
        {"labels": ["app"]},
        {"generation": 7, "selfLink": "/", "creationTimestamp": "2020-01-01T00:00:00Z", "uid": "u"},
        {"deletionTimestamp": "2020-01-01T00:00:00Z"},
    ):
        answer = await server.ask("POST", CONFIGMAPS, {"metadata": {"name": "special", **metadata}})
        if answer.status == 201:
            await server.ask(
                "PATCH", f"{CONFIGMAPS}/special", {"metadata": {"finalizers": None}}, content_type=MERGE
            )
            await server.ask("DELETE", f"{CONFIGMAPS}/special")
    for base in ("generated-", "a" * 70, "Upper-", "x."):
        await server.ask("POST", CONFIGMAPS, {"metadata": {"generateName": base}})
    await server.ask("POST", CONFIGMAPS, {"metadata": {"generateName": "unused-", "name": "given"}})
    await server.ask("POST", PODS, pod("UPPER"))
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "dotted.name"}})


async def patches(server: Recorder) -> None:
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
        (MERGE, {"metadata": {"labels": {"app": "-"}}}),
        (MERGE, {"metadata": None}),
        (MERGE, {"kind": "Secret"}),
        (MERGE, {"data": 7}),
        (MERGE, b"[]"),
        (MERGE, b"{"),
        (MERGE, b""),
        (STRATEGIC, {"metadata": {"labels": {"tier": "front", "app": None}}}),
        (STRATEGIC, {"data": {"$patch": "replace", "only": "1"}}),
        (STRATEGIC, {"data": 7}),
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
    await server.watch(CONFIGMAPS, resourceVersion=version_of(created))


async def containers(server: Recorder) -> None:
    """Strategic patches of lists, which merge by name."""
    made = pod("web")
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
    await server.ask("PATCH", path, {"spec": {"containers": [{"name": "main"}]}}, content_type=MERGE)


async def status(server: Recorder) -> None:
    """The status subresource: of what has one, neither writes the other's part."""
    created = await server.ask("POST", PODS, pod("web") | {"status": {"phase": "Failed"}})
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
    deployments = "/apis/apps/v1/namespaces/NS/deployments"
    await server.ask("POST", deployments, deployment("web", 1))
    await server.ask("PATCH", f"{deployments}/web", {"spec": {"replicas": 2}}, content_type=MERGE)
    await server.ask("PATCH", f"{deployments}/web", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await server.ask("PATCH", f"{deployments}/web/status", {"status": {"replicas": 2}}, content_type=MERGE)
    await server.ask("GET", f"{deployments}/web/scale")
    await server.watch(deployments)


async def selectors(server: Recorder) -> None:
    """Label and field selectors, good and bad."""
    for name, labels in (
        ("a", {"app": "web", "tier": "front"}),
        ("b", {"app": "db"}),
        ("c", {}),
        ("d", {"app": "", "n": "7"}),
    ):
        await server.ask("POST", CONFIGMAPS, configmap(name, labels=labels))
    for selector in (
        "app=web", "app==web", "app!=web", "app", "!app", "app in (web,db)", "app notin (web)", "app=", "app!=",
        "app=web,tier", "app in (web), tier notin (back)", " app = web ", "n>5", "n<5", "n>x", "app in ()", "",
        "app in (web", "app=web=db", "=web", "app,,tier", "app in web", "app=web,", ",", "!", "!!app", "-=a",
        "app=-", "a/b/c=d", "example.com/app", "app in (,)", "(", "app ! = web",
    ):  # fmt: skip
        await server.ask("GET", CONFIGMAPS, query={"labelSelector": selector})
    for selector in (
        "metadata.name=a", "metadata.name==a", "metadata.name!=a", "metadata.namespace!=default",
        "metadata.name=a,metadata.name=b", "metadata.name=a,", "data.k=1", "metadata.labels=a", "metadata.name",
        "=a", "metadata.name=", "", ",", "metadata.name=a\\,b", "metadata.name>a", "a=b=c", "metadata.uid=a",
    ):  # fmt: skip
        await server.ask("GET", CONFIGMAPS, query={"fieldSelector": selector})
    await server.ask("POST", PODS, pod("web", node="node-1"))
    for selector in (
        "spec.nodeName=node-1", "spec.nodeName=", "status.phase=Pending", "status.phase!=Pending",
        "spec.restartPolicy=Always", "spec.schedulerName=x", "status.podIP=", "spec.hostNetwork=false",
        "status.nominatedNodeName=", "spec.serviceAccountName=", "spec.containers=a",
    ):  # fmt: skip
        await server.ask("GET", PODS, query={"fieldSelector": selector})
    await server.ask("GET", "/api/v1/namespaces", query={"fieldSelector": "metadata.name=NS"})
    await server.watch(CONFIGMAPS, labelSelector="app in (web")
    await server.watch(CONFIGMAPS, fieldSelector="data.k=1")


async def pages(server: Recorder) -> None:
    """Limits, continue tokens, versions and how they match."""
    versions = [
        version_of(await server.ask("POST", CONFIGMAPS, configmap(f"c{number}"))) for number in range(5)
    ]
    for limit in ("2", "5", "6", "0", "-1"):
        await server.ask("GET", CONFIGMAPS, query={"limit": limit})
        await server.ask("GET", CONFIGMAPS, query={"limit": limit, "resourceVersion": "0"})
    page = await server.ask("GET", CONFIGMAPS, query={"limit": "2"})
    await server.ask("DELETE", f"{CONFIGMAPS}/c3")
    while token := page.body["metadata"].get("continue"):
        page = await server.ask("GET", CONFIGMAPS, query={"limit": "2", "continue": token})
    page = await server.ask("GET", CONFIGMAPS, query={"limit": "1", "labelSelector": "!absent"})
    token = page.body["metadata"]["continue"]
    await server.ask("GET", CONFIGMAPS, query={"continue": token})
    await server.ask("GET", CONFIGMAPS, query={"continue": token, "resourceVersion": versions[0]})
    await server.ask("GET", CONFIGMAPS, query={"continue": token, "resourceVersion": "0"})
    await server.ask("GET", CONFIGMAPS, query={"continue": token, "resourceVersionMatch": "Exact"})
    await server.ask("GET", CONFIGMAPS, query={"continue": "broken"})
    await server.ask("GET", CONFIGMAPS, query={"continue": "e30"})
    for version in ("", "0", versions[2], versions[4], "abc", "-1", "1.5"):
        for match in ("", "Exact", "NotOlderThan", "Sometime"):
            for limit in ("", "2"):
                given = {"resourceVersion": version, "resourceVersionMatch": match, "limit": limit}
                query = {name: value for name, value in given.items() if value}
                await server.ask("GET", CONFIGMAPS, query=query)
    future = str(10**9)
    await server.ask("GET", CONFIGMAPS, query={"resourceVersion": future})
    await server.ask("GET", CONFIGMAPS, query={"resourceVersion": future, "resourceVersionMatch": "Exact"})
    await server.ask("GET", f"{CONFIGMAPS}/c0", query={"resourceVersion": versions[4]})
    await server.ask("GET", f"{CONFIGMAPS}/c0", query={"resourceVersion": "0"})
    await server.ask("GET", f"{CONFIGMAPS}/c0", query={"resourceVersion": "abc"})
    await server.ask("GET", CONFIGMAPS, query={"sendInitialEvents": "true"})


async def watches(server: Recorder) -> None:
    """Where a watch begins and what it brings."""
    first = version_of(await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1")))
    await server.ask("POST", CONFIGMAPS, configmap("b"))
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "2"}}, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "2"}}, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"metadata": {"labels": {"app": "db"}}}, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/b", {"metadata": {"labels": {"app": "web"}}}, content_type=MERGE)
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    last = version_of(await server.ask("POST", CONFIGMAPS, configmap("c")))
    for version in ("", "0", first, last):
        await server.watch(CONFIGMAPS, resourceVersion=version)
        await server.watch(CONFIGMAPS, resourceVersion=version, labelSelector="app=web")
    await server.watch(CONFIGMAPS, resourceVersion=first, fieldSelector="metadata.name=a")
    await server.watch("/api/v1/watch/namespaces/NS/configmaps", resourceVersion=first)
    await server.watch(f"{CONFIGMAPS}/b", resourceVersion=first)
    for refused in (
        {"resourceVersion": "abc"},
        {"resourceVersion": "-1"},
        {"resourceVersion": first, "resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": first, "limit": "1"},
        {"continue": "abc"},
        {"timeoutSeconds": "0"} if False else {"allowWatchBookmarks": "perhaps"},
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        {"sendInitialEvents": "perhaps", "resourceVersionMatch": "NotOlderThan"},
    ):
        await server.watch(CONFIGMAPS, **refused)
    await server.watch("/api/v1/namespaces/NS/cauldrons")
    await server.watch("/apis/absent.example.com/v1/cauldrons")
    await server.watch(CONFIGMAPS, resourceVersion=str(10**9))


async def streamed_lists(server: Recorder) -> None:
    """WatchList."""
    for name in ("b", "a", "c"):
        first = version_of(await server.ask("POST", CONFIGMAPS, configmap(name, labels={"app": name})))
    await server.ask("DELETE", f"{CONFIGMAPS}/c")
    stream = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    for version in ("", "0", first):
        await server.watch(CONFIGMAPS, resourceVersion=version, allowWatchBookmarks="true", **stream)
    await server.watch(CONFIGMAPS, **stream)
    await server.watch(CONFIGMAPS, allowWatchBookmarks="true", labelSelector="app=a", **stream)
    await server.watch(PODS, allowWatchBookmarks="true", **stream)
    without = stream | {"sendInitialEvents": "false"}
    await server.watch(CONFIGMAPS, resourceVersion=first, allowWatchBookmarks="true", **without)
    await server.watch(CONFIGMAPS, allowWatchBookmarks="true", **without)
    await server.watch(
        CONFIGMAPS, resourceVersion=str(10**9), seconds=5, allowWatchBookmarks="true", **stream
    )


async def deletions(server: Recorder) -> None:
    """Finalizers, grace, policies, and whole collections."""
    held = configmap("held")
    held["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    begun = version_of(await server.ask("POST", CONFIGMAPS, held))
    path = f"{CONFIGMAPS}/held"
    await server.ask("DELETE", path)
    await server.ask("GET", path)
    await server.ask("DELETE", path)
    await server.ask("PATCH", path, {"data": {"k": "1"}}, content_type=MERGE)
    for finalizers in (["example.com/a", "example.com/c"], ["example.com/a"], [], []):
        await server.ask("PATCH", path, {"metadata": {"finalizers": finalizers}}, content_type=MERGE)
    for name, query in (
        ("foreground", {"propagationPolicy": "Foreground"}),
        ("orphan", {"propagationPolicy": "Orphan"}),
        ("background", {"propagationPolicy": "Background"}),
        ("nonsense", {"propagationPolicy": "Nonsense"}),
        ("graceful", {"gracePeriodSeconds": "5"}),
        ("negative", {"gracePeriodSeconds": "-1"}),
    ):
        await server.ask("POST", CONFIGMAPS, configmap(name))
        await server.ask("DELETE", f"{CONFIGMAPS}/{name}", query=query)
        await server.ask("GET", f"{CONFIGMAPS}/{name}")
    await server.watch(CONFIGMAPS, resourceVersion=begun)
    created = await server.ask("POST", PODS, pod("unscheduled"))
    await server.ask("DELETE", f"{PODS}/unscheduled")
    await server.ask("POST", PODS, pod("scheduled", node="node-1"))
    await server.ask("DELETE", f"{PODS}/scheduled")
    await server.ask("DELETE", f"{PODS}/scheduled")
    await server.ask("DELETE", f"{PODS}/scheduled", {"gracePeriodSeconds": 3})
    await server.ask("DELETE", f"{PODS}/scheduled", query={"gracePeriodSeconds": "0"})
    await server.watch(PODS, resourceVersion=version_of(created))
    for name in ("a", "b", "c"):
        created = await server.ask("POST", CONFIGMAPS, configmap(name, labels={"app": name}))
    await server.ask("DELETE", CONFIGMAPS, query={"labelSelector": "app in (a"})
    await server.ask("DELETE", CONFIGMAPS, query={"labelSelector": "app=a"})
    await server.ask("DELETE", CONFIGMAPS, query={"dryRun": "All"})
    await server.ask("DELETE", CONFIGMAPS)
    await server.ask("GET", CONFIGMAPS)
    await server.watch(CONFIGMAPS, resourceVersion=version_of(created))


async def namespaces(server: Recorder) -> None:
    """A namespace, and what happens in one that is going; nobody is there to empty it."""
    created = await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "NS-b"}})
    del created
    answer = await server.ask("POST", "/api/v1/namespaces", {"metadata": {"generateName": "going-"}})
    name = answer.body["metadata"]["name"]
    path = f"/api/v1/namespaces/{name}"
    await server.ask("POST", f"{path}/configmaps", configmap("a"))
    await server.ask("DELETE", path)
    await server.ask("DELETE", path)
    await server.ask("GET", path)
    await server.ask("POST", f"{path}/configmaps", configmap("b"))
    await server.ask("GET", f"{path}/configmaps")
    await server.ask("PATCH", path, {"spec": {"finalizers": None}}, content_type=MERGE)
    current = await server.ask("GET", path)
    await server.ask("PUT", f"{path}/finalize", current.body | {"spec": {"finalizers": []}})
    await server.ask("GET", path)
    await server.ask("DELETE", "/api/v1/namespaces")
    await server.ask(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "x", "namespace": "y"}}, {"dryRun": "All"}
    )


async def custom_resources(server: Recorder) -> None:
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
    await server.ask(
        "POST", relics, relic | {"metadata": {"name": "pruned"}, "unknown": 1, "status": {"s": 1}}
    )
    await server.ask("POST", relics, relic | {"metadata": {"name": "bad"}, "spec": 7})
    await server.ask("PUT", f"{relics}/a", relic | {"spec": {"z": 2}})
    await server.ask("PUT", f"{relics}/a", created.body | {"spec": {"z": 2}})
    await server.ask("PUT", f"{relics}/a", created.body | {"spec": {"z": 3}})
    await server.ask("PATCH", f"{relics}/a", {"spec": {"z": 4}, "status": {"no": 1}}, content_type=MERGE)
    await server.ask("PATCH", f"{relics}/a", {"spec": {"z": 5}}, content_type=STRATEGIC)
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
    await server.watch(relics, resourceVersion=version_of(created))
    await server.watch(
        relics, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    )
    await server.ask("DELETE", f"{relics}/a")
    await server.ask("DELETE", relics)


async def applied(server: Recorder) -> None:
    """Server-side apply."""
    path = f"{CONFIGMAPS}/applied"
    whole: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied"},
        "data": {"k": "1"},
    }
    manager = {"fieldManager": "tests"}
    await server.ask("PATCH", path, whole, content_type=APPLY)
    await server.ask("PATCH", path, whole, manager, content_type=APPLY)
    await server.ask("PATCH", path, whole | {"data": {"m": "1"}}, manager, content_type=APPLY)
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


async def views(server: Recorder) -> None:
    """Tables and metadata alone."""
    await server.ask("POST", CONFIGMAPS, configmap("a", k="1", m="2"))
    await server.ask("POST", PODS, pod("web", node="node-1"))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/a", PODS, "/api/v1/namespaces/NS"):
        await server.ask("GET", path, accept=table)
    await server.ask("GET", CONFIGMAPS, query={"includeObject": "None"}, accept=table)
    await server.ask("GET", CONFIGMAPS, accept=f"{table},application/json")
    await server.ask("GET", CONFIGMAPS, accept=partial)
    await server.ask(
        "GET", f"{PODS}/web", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    )
    await server.ask("GET", CONFIGMAPS, accept="application/vnd.kubernetes.protobuf")
    await server.ask("GET", CONFIGMAPS, accept="application/vnd.kubernetes.protobuf,application/json")


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


ALL = (
    life,
    bad_requests,
    names,
    patches,
    containers,
    status,
    selectors,
    pages,
    watches,
    streamed_lists,
    deletions,
    namespaces,
    custom_resources,
    applied,
    views,
)
