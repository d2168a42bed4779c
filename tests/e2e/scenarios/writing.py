"""Creating and replacing, and their refusals."""

from __future__ import annotations

import json
from typing import Any

from tests.samples import configmap

from ..api import APPLY, MERGE, Object
from ..clusters import pod_manifest
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, DEPLOYMENTS, LEASES, PODS, version_of
from .patching import deployment


async def life(server: AnswerRecorder) -> None:
    """Create, read, replace and delete one object."""
    created = await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1"))
    await server.ask("POST", CONFIGMAPS, configmap("a"))
    await server.ask("GET", f"{CONFIGMAPS}/a")
    await server.ask("GET", CONFIGMAPS)
    await server.ask("PUT", f"{CONFIGMAPS}/a", created.body)  # which changes nothing
    await server.ask("PUT", f"{CONFIGMAPS}/a", created.body | {"data": {"k": "2"}})
    await server.ask("PUT", f"{CONFIGMAPS}/a", created.body | {"data": {"k": "3"}})  # conflict
    await server.ask("PUT", f"{CONFIGMAPS}/a", configmap("a", k="4"))  # whatever its version
    for version in ("0", "abc", "-1"):
        metadata = {"name": "a", "resourceVersion": version}
        await server.ask("PUT", f"{CONFIGMAPS}/a", {"metadata": metadata, "data": {"k": "5"}})
        await server.ask("PATCH", f"{CONFIGMAPS}/a", {"metadata": metadata}, content_type=MERGE)
        await server.ask("POST", CONFIGMAPS, {"metadata": metadata | {"name": "b"}})
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata | {"name": "c"}}
        await server.ask("PATCH", f"{CONFIGMAPS}/c", applied, {"fieldManager": "tests"}, content_type=APPLY)
    await server.ask("PUT", f"{CONFIGMAPS}/a", configmap("b"))
    await server.ask("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a", "namespace": "other"}})
    await server.ask("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a", "uid": "f00"}})
    await server.ask("PUT", f"{CONFIGMAPS}/absent", configmap("absent"))
    for name in ("a", "absent"):
        await server.ask("PUT", f"{CONFIGMAPS}/{name}", {"data": {"k": "5"}})
    await server.ask("DELETE", f"{CONFIGMAPS}/a", query={"dryRun": "All"})
    await server.ask("DELETE", f"{CONFIGMAPS}/a", {"preconditions": {"uid": "f00"}})
    await server.ask("DELETE", f"{CONFIGMAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    await server.ask("DELETE", f"{CONFIGMAPS}/a")
    await server.ask("GET", f"{CONFIGMAPS}/a")
    await server.ask("GET", CONFIGMAPS)
    await server.watch(CONFIGMAPS, {"resourceVersion": version_of(created)})


async def bindings(server: AnswerRecorder) -> None:
    """Pods are bound to nodes."""
    await server.ask("POST", PODS, pod_manifest("a"))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "node-1"}}
    for query in ({"dryRun": "Some"}, {"dryRun": "All"}, {}):
        await server.ask("POST", f"{PODS}/a/binding", binding, query)
        await server.ask("GET", f"{PODS}/a")
    for odd in ({}, binding | {"metadata": {"name": "b"}}, {"metadata": {"name": "a"}}):
        await server.ask("POST", f"{PODS}/a/binding", odd)
    await server.ask(
        "POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "X", "name": "n"}}
    )
    await server.ask("POST", f"{PODS}/a/binding", binding | {"kind": "Pod", "apiVersion": "v1"})
    labelled = pod_manifest("b", labels={"a": "1", "b": "1"})
    await server.ask("POST", PODS, labelled)
    metadata = {"name": "b", "labels": {"b": "2"}, "annotations": {"c": "3"}}
    await server.ask("POST", f"{PODS}/b/binding", binding | {"metadata": metadata})
    await server.ask("GET", f"{PODS}/b")
    evictions: list[Object] = [{}, {"metadata": {"name": "b"}}, {"kind": "Pod", "apiVersion": "v1"}]
    for eviction in (*evictions, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}):
        await server.ask("POST", f"{PODS}/a/eviction", eviction, {"dryRun": "All"})
    for path in (f"{PODS}/a/eviction", f"{PODS}/a/binding", "/api/v1/namespaces/NS/finalize"):
        await server.ask("GET", path)
        await server.ask("PATCH", path, {}, content_type=MERGE)
        await server.ask("DELETE", path)
    await server.ask("POST", f"{PODS}/absent/binding", binding | {"metadata": {"name": "absent"}})


async def other_objects(server: AnswerRecorder) -> None:
    """Writes with the uid of a deleted or re-created object."""
    for path, obj in (
        (CONFIGMAPS, configmap("a")),
        (PODS, pod_manifest("a")),
        (LEASES, {"metadata": {"name": "a"}}),
    ):
        gone = await server.ask("POST", path, obj)
        metadata = {"name": "a", "uid": gone.body["metadata"]["uid"]}
        unversioned = gone.body | {"metadata": metadata}
        applied = {name: gone.body[name] for name in ("apiVersion", "kind")} | {"metadata": metadata}
        await server.ask("DELETE", f"{path}/a")
        for remade in (False, True):
            if remade:
                await server.ask("POST", path, obj)
            await server.ask("PUT", f"{path}/a", gone.body)
            await server.ask("PUT", f"{path}/a", unversioned)
            await server.ask("PATCH", f"{path}/a", {"metadata": metadata}, content_type=MERGE)
            await server.ask("PATCH", f"{path}/a", applied, {"fieldManager": "tests"}, content_type=APPLY)
    await server.ask("PUT", f"{LEASES}/b", {"metadata": {"name": "b"}})


async def bad_requests(server: AnswerRecorder) -> None:
    """Refusals and their messages."""
    post = "POST", CONFIGMAPS
    await server.ask(*post, b"{no JSON")
    await server.ask(*post, b"")
    await server.ask(*post, b"[]")
    await server.ask(*post, b"7")
    await server.ask(*post, b"a: b", content_type="text/plain")
    await server.ask(*post, {})
    without_names: tuple[Any, ...] = ({}, [], {"name": 1})
    for metadata in without_names:
        await server.ask(*post, {"metadata": metadata})
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
    validation = {"fieldValidation": "Odd"}
    await server.ask(*post, configmap("odd"), validation)
    await server.ask("PUT", f"{CONFIGMAPS}/odd", configmap("odd"), validation)
    await server.ask("PATCH", f"{CONFIGMAPS}/odd", {}, validation, content_type=MERGE)
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/odd"):
        await server.ask("HEAD", path)


async def names(server: AnswerRecorder) -> None:
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
        ("-/" + "-" * 64, "-" * 64),
        ("example.com/app", "A_b.c-1"),
    ):
        await server.ask("POST", CONFIGMAPS, configmap("labelled", labels={key: value}), {"dryRun": "All"})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}
    for metadata in (
        {"annotations": {"a b": "c"}},
        {"labels": {"a": None}, "annotations": {"b": None}},
        {"annotations": {"Upper.Case/ok": "any text ✓"}},
        {"finalizers": ["unqualified"]},
        {"finalizers": ["not one", "unqualified"]},
        {"finalizers": [7]},
        {"finalizers": "a"},
        {"finalizers": ["example.com/a", "example.com/a"]},
        {"ownerReferences": [{"name": "a"}]},
        {"ownerReferences": [owner]},
        {"ownerReferences": [owner, owner]},
        {"ownerReferences": [owner | {"controller": True}, owner | {"controller": True, "name": "b"}]},
        {
            "ownerReferences": [
                owner | {"controller": True, "blockOwnerDeletion": False, "name": n} for n in "abc"
            ]
        },
        {"ownerReferences": [owner | {"kind": "Event"}]},
        {"ownerReferences": [owner | {"apiVersion": "a/b/c"}]},
        {"ownerReferences": [owner | {"apiVersion": "apps/"}]},
        {"labels": {"app": 7}},
        {"labels": ["app"]},
        {"generation": 7, "selfLink": "/", "creationTimestamp": "2020-01-01T00:00:00Z", "uid": "u"},
        {"deletionTimestamp": "2020-01-01T00:00:00Z"},
    ):
        await server.ask("POST", CONFIGMAPS, {"metadata": {"name": "special", **metadata}})
        unfinalised = {"metadata": {"finalizers": None}}
        await server.ask("PATCH", f"{CONFIGMAPS}/special", unfinalised, content_type=MERGE)
        await server.ask("DELETE", f"{CONFIGMAPS}/special")
    for path in (LEASES, "/apis/policy/v1/namespaces/NS/poddisruptionbudgets"):
        for finalizers in (["unqualified"], ["not one"]):
            await server.ask("POST", path, {"metadata": {"name": "plain", "finalizers": finalizers}})
    for base in ("generated-", "a" * 70, "Upper-", "x."):
        await server.ask("POST", CONFIGMAPS, {"metadata": {"generateName": base}})
    await server.ask("POST", CONFIGMAPS, {"metadata": {"generateName": "unused-", "name": "given"}})
    await server.ask("POST", PODS, pod_manifest("UPPER"))
    containers = {"containers": [{"name": "main", "image": "example.com/main"}]}
    labels = {"app": "a"}
    stateful = {"serviceName": "a", "selector": {"matchLabels": labels}}
    stateful["template"] = {"metadata": {"labels": labels}, "spec": containers}
    job = {"template": {"spec": containers | {"restartPolicy": "Never"}}}
    scheduled = {"schedule": "* * * * *", "jobTemplate": {"spec": job}}
    path = "/apis/apps/v1/namespaces/NS/statefulsets"
    await server.ask("POST", path, {"metadata": {"name": "a.b"}, "spec": stateful})
    path = "/apis/batch/v1/namespaces/NS/cronjobs"
    await server.ask("POST", path, {"metadata": {"name": "a" * 53}, "spec": scheduled})
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "dotted.name"}})


async def posted_bindings(server: AnswerRecorder) -> None:
    """Bindings that are posted to their own collection."""
    path, node = "/api/v1/namespaces/NS/bindings", {"target": {"kind": "Node", "name": "n"}}
    spec = {"containers": [{"name": "main", "image": "example.com/main"}]}
    for name in ("a", "b", "c"):
        await server.ask("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    marked = {"labels": {"l": "m"}, "annotations": {"x": "y"}}
    for metadata, content, query in (
        ({"name": "a"}, node, {"dryRun": "All"}),
        ({"name": "a", **marked}, node, None),
        ({"name": "a"}, node, None),
        ({"name": "missing"}, node, None),
        ({}, node, None),
        ({"name": "b"}, {}, None),
        ({"name": "b"}, {"target": {"kind": "Nod", "name": "n"}}, None),
        ({"name": "b", "namespace": "other"}, node, None),
        ({"name": "b"}, node | {"kind": "Pod", "apiVersion": "v1"}, None),
        ({"name": "b", "resourceVersion": "99999999"}, node, None),
        ({"name": "b", "uid": "7"}, node, None),
    ):
        await server.ask("POST", path, {"metadata": metadata, **content}, query)
    await server.ask("POST", f"{PODS}/c/binding", {"metadata": {"name": "c", "uid": "7"}, **node})
    for name in ("a", "b", "c"):
        await server.ask("GET", f"{PODS}/{name}")
    await server.ask("POST", "/api/v1/bindings", {"metadata": {"name": "b"}, **node})
    for method in ("GET", "DELETE"):
        await server.ask(method, f"{path}/a")
    await server.ask("GET", path)


async def posted_mistakes(server: AnswerRecorder) -> None:
    """Values of another type in what is not stored: Bindings, Evictions, TokenRequests, Scales."""
    await server.ask("POST", PODS, pod_manifest("a"))
    await server.ask("POST", "/api/v1/namespaces/NS/serviceaccounts", {"metadata": {"name": "a"}})
    await server.ask("POST", DEPLOYMENTS, deployment("a", 1))
    reference: Object = {"spec": {"boundObjectRef": {"kind": 5}}}
    of_metadata: tuple[Object, ...] = (
        {"metadata": 5},
        {"metadata": {"name": 5}},
        {"metadata": {"name": "a", "labels": {"b": 5}}},
        {"metadata": {"name": "a", "finalizers": 5}},
    )
    for method, path, odd in (
        ("POST", f"{PODS}/a/binding", ({"target": 5}, {"target": {"name": 5}}, None)),
        ("POST", f"{PODS}/a/eviction", ({"deleteOptions": 5}, {"deleteOptions": {"dryRun": 5}}, None)),
        ("POST", "/api/v1/namespaces/NS/serviceaccounts/a/token", ({"spec": 5}, reference, None)),
        ("POST", "/api/v1/namespaces/NS/serviceaccounts/a/token", ({"spec": {"audiences": [5]}},)),
        ("PUT", f"{DEPLOYMENTS}/a/scale", ({"spec": 5}, {"spec": {"replicas": "1"}}, None)),
        ("PUT", f"{DEPLOYMENTS}/a/scale", ({"metadata": {"name": "a"}, "spec": {"replicas": None}},)),
    ):
        for body in (*of_metadata, *odd):
            await server.ask(method, path, json.dumps(body).encode())
    scale: Object = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    for spec in (5, {"replicas": "1"}, {"replica": 1}, {"replicas": None}):
        sent = scale | {"spec": spec}
        await server.ask(
            "PATCH",
            f"{DEPLOYMENTS}/a/scale",
            sent,
            {"fieldManager": "m", "force": "true"},
            content_type=APPLY,
        )


async def dry_runs(server: AnswerRecorder) -> None:
    """Creates that change nothing, with and without a resourceVersion."""
    for version in ("5", "0", ""):
        body = {"metadata": {"name": "dry", "resourceVersion": version}}
        for query in ({"dryRun": "All"}, None):
            await server.ask("POST", CONFIGMAPS, body, query)
        await server.ask("DELETE", f"{CONFIGMAPS}/dry")
