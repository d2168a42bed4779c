"""Deletion: finalizers, grace, policies, whole collections, namespaces."""

from __future__ import annotations

from typing import Any

from tests.samples import configmap

from ..api import MERGE, Object
from ..clusters import pod_manifest
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, JOBS, PODS, version_of


async def deletions(server: AnswerRecorder) -> None:
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
    await server.watch(CONFIGMAPS, {"resourceVersion": begun})
    created = await server.ask("POST", PODS, pod_manifest("unscheduled"))
    await server.ask("DELETE", f"{PODS}/unscheduled")
    await server.ask("POST", PODS, pod_manifest("scheduled", node="node-1"))
    await server.ask("DELETE", f"{PODS}/scheduled")
    await server.ask("DELETE", f"{PODS}/scheduled")
    await server.ask("DELETE", f"{PODS}/scheduled", {"gracePeriodSeconds": 3})
    await server.ask("DELETE", f"{PODS}/scheduled", query={"gracePeriodSeconds": "0"})
    await server.watch(PODS, {"resourceVersion": version_of(created)})
    for name in ("a", "b", "c"):
        created = await server.ask("POST", CONFIGMAPS, configmap(name, labels={"app": name}))
    await server.ask("DELETE", CONFIGMAPS, query={"labelSelector": "app in (a"})
    await server.ask("DELETE", CONFIGMAPS, query={"labelSelector": "app=a"})
    await server.ask("DELETE", CONFIGMAPS, query={"dryRun": "All"})
    for name in ("d", "e", "f"):
        await server.ask("POST", CONFIGMAPS, configmap(name, labels={"app": "paged"}))
    paged = {"labelSelector": "app=paged", "limit": "1"}
    page = await server.ask("DELETE", CONFIGMAPS, query=paged)
    token = page.body["metadata"]["continue"]
    await server.ask("GET", CONFIGMAPS)
    await server.ask("DELETE", CONFIGMAPS, query=paged | {"continue": token})
    await server.ask("DELETE", CONFIGMAPS)
    await server.ask("GET", CONFIGMAPS)
    await server.watch(CONFIGMAPS, {"resourceVersion": version_of(created)})


async def repeated_deletions(server: AnswerRecorder) -> None:
    """A second DELETE of a pod: only a shorter grace period has an effect, or any policy once there is none."""
    for node in ("", "node-1"):
        for name, first in (("a", {"gracePeriodSeconds": 0}), ("b", {}), ("c", {"gracePeriodSeconds": 20})):
            made = pod_manifest(f"{name}{node}", node=node)
            made["metadata"]["finalizers"] = ["example.com/a"]
            await server.ask("POST", PODS, made)
            for options in (
                first,
                {"propagationPolicy": "Orphan"},
                {"gracePeriodSeconds": 30, "propagationPolicy": "Foreground"},
                {"gracePeriodSeconds": 5},
                {"gracePeriodSeconds": 0, "propagationPolicy": "Foreground"},
                {},
            ):
                await server.ask("DELETE", f"{PODS}/{name}{node}", options)


async def delete_options(server: AnswerRecorder) -> None:
    """Options of a DELETE: what is of the wrong type is refused, and where there is a body the query has no say."""
    await server.ask("POST", CONFIGMAPS, configmap("odd"))
    await server.ask("POST", PODS, pod_manifest("odd"))
    odd: list[Any] = [
        {"gracePeriodSeconds": "5"},
        {"gracePeriodSeconds": True},
        {"gracePeriodSeconds": 1.5},
        {"preconditions": "uid"},
        {"preconditions": {"uid": 7}},
        {"preconditions": {"resourceVersion": 7}},
        {"propagationPolicy": 7},
        {"dryRun": "All"},
        [],
    ]
    for options in odd:
        await server.ask("DELETE", f"{CONFIGMAPS}/odd", options)
        eviction = {"metadata": {"name": "odd"}, "deleteOptions": options}
        await server.ask("POST", f"{PODS}/odd/eviction", eviction, {"dryRun": "All"})
    await server.ask("POST", CONFIGMAPS, configmap("a"))
    nothing = {"preconditions": None, "gracePeriodSeconds": None, "propagationPolicy": None, "dryRun": None}
    for options in ({"dryRun": ["Some"]}, {"dryRun": ["All"]}, nothing):
        await server.ask("DELETE", f"{CONFIGMAPS}/a", options, {"dryRun": "All"})
    await server.ask("GET", CONFIGMAPS)


async def orphans(server: AnswerRecorder) -> None:
    """Propagation by orphanDependents and by default."""
    ways: list[tuple[Object | None, dict[str, str]]] = [
        ({"orphanDependents": True}, {}),
        ({"orphanDependents": False}, {}),
        ({"orphanDependents": True, "propagationPolicy": "Background"}, {}),
        (None, {"orphanDependents": "true"}),
        (None, {"orphanDependents": "false"}),
        (None, {"orphanDependents": "true", "propagationPolicy": "Orphan"}),
    ]
    labels = {"app": "a"}
    containers = [{"name": "main", "image": "example.com/main"}]

    def job(name: str, *finalizers: str) -> Object:
        template = {
            "metadata": {"labels": labels},
            "spec": {"restartPolicy": "Never", "containers": containers},
        }
        spec = {"manualSelector": True, "selector": {"matchLabels": labels}, "template": template}
        return {"metadata": {"name": name, "labels": labels, "finalizers": [*finalizers]}, "spec": spec}

    for number, (options, query) in enumerate(ways):
        await server.ask("POST", CONFIGMAPS, configmap(f"odd-{number}"))
        await server.ask("DELETE", f"{CONFIGMAPS}/odd-{number}", options, query)
        await server.ask("GET", f"{CONFIGMAPS}/odd-{number}")
    for number, (options, query) in enumerate([(None, {}), ({"propagationPolicy": "Background"}, {}), *ways]):
        await server.ask("POST", JOBS, job(f"job-{number}"))
        await server.ask("DELETE", f"{JOBS}/job-{number}", options, query)
        await server.ask("GET", f"{JOBS}/job-{number}")
    await server.ask("POST", JOBS, job("foreground", "foregroundDeletion"))
    await server.ask("DELETE", f"{JOBS}/foreground")
    controllers = "/api/v1/namespaces/NS/replicationcontrollers"
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    await server.ask(
        "POST", controllers, {"metadata": {"name": "a", "labels": labels}, "spec": {"template": template}}
    )
    await server.ask("DELETE", f"{controllers}/a")
    held = configmap("held")
    held["metadata"]["finalizers"] = ["example.com/a"]
    await server.ask("POST", CONFIGMAPS, held)
    await server.ask("DELETE", f"{CONFIGMAPS}/held", query={"dryRun": "All"})
    await server.ask("GET", f"{CONFIGMAPS}/held")


async def namespaces(server: AnswerRecorder) -> None:
    """A namespace, and requests in a terminating one, without a controller."""
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
    await server.ask("POST", f"{path}/configmaps", {"metadata": {"generateName": "made-"}})
    await server.ask("GET", f"{path}/configmaps")
    await server.ask("PATCH", path, {"spec": {"finalizers": None}}, content_type=MERGE)
    current = await server.ask("GET", path)
    await server.ask("PUT", f"{path}/finalize", current.body | {"spec": {"finalizers": []}})
    await server.ask("GET", path)
    for policy in ("Foreground", "Orphan", "Background"):
        answer = await server.ask("POST", "/api/v1/namespaces", {"metadata": {"generateName": "going-"}})
        path = f"/api/v1/namespaces/{answer.body['metadata']['name']}"
        await server.ask("PATCH", path, {"metadata": {"labels": None}}, content_type=MERGE)
        await server.ask("PATCH", f"{path}/status", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
        await server.ask("DELETE", path, {"propagationPolicy": policy}, {"dryRun": "All"})
        await server.ask("DELETE", path, {"propagationPolicy": policy})
        await server.ask("GET", path)
    for name in ("default", "kube-system", "kube-public", "kube-node-lease", "none"):
        await server.ask("DELETE", f"/api/v1/namespaces/{name}", {"dryRun": ["All"]})
    await server.ask("DELETE", "/api/v1/namespaces")
    await server.ask(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "x", "namespace": "y"}}, {"dryRun": "All"}
    )
