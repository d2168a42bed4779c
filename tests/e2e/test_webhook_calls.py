"""How a server calls admission webhooks, and what it makes of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.samples import configmap

from .api import APPLY, CONFIGMAPS, JSON_PATCH, MERGE, PODS, Object, Resource
from .clusters import Cluster, pod_manifest
from .hooking import Hooks, allow, deny, patch, serve_hooks

DEPLOYMENTS = Resource("apps/v1", "deployments")


@pytest.fixture
async def hooks(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Hooks]:
    async with serve_hooks(cluster, tmp_path) as serving:
        yield serving


def patch_adding(name: str, value: str) -> Object:
    return {"op": "add", "path": f"/data/{name}", "value": value}


async def create(cluster: Cluster, obj: Object, **query: str) -> Any:
    return await cluster.api.ask("POST", CONFIGMAPS.path(cluster.namespace), obj, query)


async def test_reviews_say_all_of_the_request(cluster: Cluster, hooks: Hooks) -> None:
    async with (
        hooks.register("Mutating", hooks.hook("m", allow)),
        hooks.register("Validating", hooks.hook("a", allow)),
    ):
        path = CONFIGMAPS.path(cluster.namespace, "c")
        query = {"fieldManager": "me", "fieldValidation": "Strict"}
        answer = await create(cluster, {"metadata": {"generateName": "g-"}, "data": {"x": "1"}})
        assert answer.status == 201
        await create(cluster, configmap("c", x="1"), **query)
        await cluster.api.do("PATCH", path, {"data": {"x": "2"}}, {"dryRun": "All"}, content_type=MERGE)
        await cluster.api.do("PUT", path, configmap("c", x="3"))
        await cluster.api.do("DELETE", path)
    generated, created, patched, updated, deleted = hooks.asked["/a"]
    assert "name" not in hooks.asked["/m"][0]
    assert hooks.asked["/m"][-1]["oldObject"]["data"] == {"x": "3"}
    assert generated["name"] == answer.body["metadata"]["name"]
    assert generated["object"]["metadata"]["name"] == answer.body["metadata"]["name"]
    common = {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "c",
        "namespace": cluster.namespace,
    }
    for review in (created, patched, updated, deleted):
        assert review.items() >= common.items()
    assert created["operation"] == "CREATE"
    assert created["oldObject"] is None
    assert created["object"].items() >= {"kind": "ConfigMap", "apiVersion": "v1", "data": {"x": "1"}}.items()
    assert {"uid", "creationTimestamp"} <= created["object"]["metadata"].keys()
    assert (
        created["options"].items()
        >= {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", **query}.items()
    )
    assert (patched["operation"], patched["dryRun"], created["dryRun"]) == ("UPDATE", True, False)
    assert patched["options"].items() >= {"kind": "UpdateOptions", "dryRun": ["All"]}.items()
    assert (patched["oldObject"]["data"], patched["object"]["data"]) == ({"x": "1"}, {"x": "2"})
    assert (updated["oldObject"]["data"], updated["object"]["data"]) == ({"x": "1"}, {"x": "3"})
    assert updated["options"]["kind"] == "UpdateOptions"
    assert (deleted["operation"], deleted["object"], deleted["oldObject"]["data"]) == (
        "DELETE",
        None,
        {"x": "3"},
    )
    assert deleted["options"]["kind"] == "DeleteOptions"


async def test_denials_are_shown_as_the_webhook_says(cluster: Cluster, hooks: Hooks) -> None:
    answers: dict[str, Object | bytes] = {
        "plain": {"allowed": False},
        "message": deny('not "this"', code=418, reason="Teapot"),
        "reason": deny("", reason="Odd"),
        "causes": deny("no", code=422, reason="Invalid", details={"causes": [{"field": "data"}]}),
        "low": deny("no", code=200),
        "uid": {"uid": "other", "allowed": True},
        "absent": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
        "patch": patch(patch_adding("y", "2")),
        "fine": {"allowed": True, "warnings": ['a "quoted" word', "with\nline", 'a "quoted" word']},
    }
    hook = hooks.hook("a", lambda request: answers[request["name"]])
    async with hooks.register("Validating", hook):
        by_name = {name: await create(cluster, configmap(name)) for name in answers}
    said = {
        name: (answer.status, answer.body.get("reason"), answer.body.get("message"))
        for name, answer in by_name.items()
    }
    refused = 'admission webhook "a.example.com" denied the request'
    failed = (
        'Internal error occurred: failed calling webhook "a.example.com": received invalid webhook response:'
    )
    assert said["plain"] == (400, None, f"{refused} without explanation")
    assert said["message"] == (418, "Teapot", f'{refused}: not "this"')
    assert said["reason"] == (400, "Odd", f"{refused}: Odd")
    assert said["causes"] == (422, "Invalid", f"{refused}: no")
    assert by_name["causes"].body["details"]["causes"] == [{"field": "data"}]
    assert said["low"] == (400, None, f"{refused}: no")
    assert said["absent"] == (500, "InternalError", f"{failed} webhook response was absent")
    assert said["patch"][2] == f"{failed} validating webhook may not return response.patch"
    assert said["uid"][2].startswith(f"{failed} expected response.uid=")
    assert said["fine"][0] == 201
    assert by_name["fine"].warnings == ('299 - "a \\"quoted\\" word"',)


async def test_patches_build_on_each_other_and_some_webhooks_are_called_again(
    cluster: Cluster, hooks: Hooks
) -> None:
    first = hooks.hook("first", lambda _: patch(patch_adding("first", "1")), reinvocationPolicy="IfNeeded")
    never = hooks.hook("never", allow)
    second = hooks.hook("second", lambda _: patch(patch_adding("second", "2")))
    async with hooks.register("Mutating", first, never, second):
        answer = await create(cluster, configmap("a", x="0"))
        assert answer.body["data"] == {"x": "0", "first": "1", "second": "2"}
        asked = [
            [request["object"]["data"] for request in hooks.asked[name]]
            for name in ("/first", "/never", "/second")
        ]
        assert asked == [
            [{"x": "0"}, {"x": "0", "first": "1", "second": "2"}],
            [{"x": "0", "first": "1"}],
            [{"x": "0", "first": "1"}],
        ]
        assert "uid" not in hooks.asked["/first"][0]["object"]["metadata"]
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"y": "1"}}
        path = CONFIGMAPS.path(cluster.namespace, "a")
        made = await cluster.api.do("PATCH", path, applied, {"fieldManager": "me"}, content_type=APPLY)
        assert made["data"] == {"x": "0", "y": "1", "first": "1", "second": "2"}
    bad = hooks.hook("bad", lambda _: patch({"op": "remove", "path": "/none"}), failurePolicy="Ignore")
    async with hooks.register("Mutating", bad):
        assert (await create(cluster, configmap("b"))).status == 500


async def test_selectors_conditions_and_versions_decide_who_is_called(cluster: Cluster, hooks: Hooks) -> None:
    def refused(_: Object) -> Object:
        return deny("no")

    condition = {"name": "big", "expression": "object.data.x == 'big' && request.operation == 'CREATE'"}
    failing = {"name": "odd", "expression": "object.data.odd == 'x'"}
    only = {"matchExpressions": [{"key": "only", "operator": "Exists"}]}
    for name, more, matching, other in (
        ("labels", {"objectSelector": only}, {}, {}),
        ("cel", {"matchConditions": [condition]}, {"x": "big"}, {"x": "small"}),
        ("error", {"matchConditions": [failing]}, {}, {"odd": "y"}),
        ("ignored", {"matchConditions": [failing], "failurePolicy": "Ignore"}, {"odd": "x"}, {}),
        ("operation", {"rule": {"operations": ["UPDATE"]}}, None, {}),
        ("scope", {"rule": {"scope": "Cluster"}}, None, {}),
        ("group", {"rule": {"apiGroups": ["apps"]}}, None, {}),
        ("star", {"rule": {"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]}}, {}, None),
        ("sub", {"rule": {"resources": ["configmaps/status", "*/status"]}}, None, {}),
        ("selector", {"namespaceSelector": {"matchLabels": {"no": "such"}}}, None, {}),
    ):
        async with hooks.register("Validating", hooks.hook(name, refused, **more)):
            if matching is not None:
                labels = {"only": "y"} if name == "labels" else None
                answer = await create(cluster, configmap("a", labels=labels, **matching), dryRun="All")
                assert answer.status >= 400, name
                if name == "error":
                    assert answer.status == 403
                    assert (
                        "expression 'object.data.odd == 'x'' resulted in error: no such key"
                        in answer.body["message"]
                    )
            if other is not None:
                answer = await create(
                    cluster, {"metadata": {"name": "a"}, "data": {"x": "1"} | other}, dryRun="All"
                )
                assert answer.status == 201, (name, answer.body["message"])


async def test_subresources_and_collections(cluster: Cluster, hooks: Hooks) -> None:
    scales = {"apiGroups": ["apps"], "resources": ["deployments/scale"], "operations": ["UPDATE"]}
    binding = {"resources": ["pods/binding", "pods/eviction", "pods/status"], "operations": ["*"]}

    def at_most_five(request: Object) -> Object:
        return {"allowed": True} if request["object"]["spec"]["replicas"] <= 5 else deny("too many")

    async with hooks.register(
        "Validating",
        hooks.hook("scale", at_most_five, rule=scales),
        hooks.hook("pods", allow, rule=binding),
        hooks.hook("maps", allow, rule={"operations": ["DELETE"]}),
    ):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_manifest("x")["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
        path = f"{DEPLOYMENTS.path(cluster.namespace, 'd')}/scale"
        assert (await cluster.api.do("PATCH", path, {"spec": {"replicas": 5}}, content_type=MERGE))[
            "spec"
        ] == {"replicas": 5}
        answer = await cluster.api.ask("PATCH", path, {"spec": {"replicas": 6}}, content_type=MERGE)
        assert (answer.status, answer.body["message"][-8:]) == (400, "too many")
        (scaled, _) = hooks.asked["/scale"]
        assert scaled["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        assert (scaled["subResource"], scaled["oldObject"]["spec"]) == ("scale", {"replicas": 1})
        await cluster.create(PODS, pod_manifest("p"))
        place = PODS.path(cluster.namespace, "p")
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        await cluster.api.do("POST", f"{place}/binding", target)  # without its kind
        await cluster.api.do("PATCH", f"{place}/status", {"status": {"phase": "Running"}}, content_type=MERGE)
        asked = [
            (request["subResource"], request["operation"], request["object"]["kind"])
            for request in hooks.asked["/pods"]
        ]
        assert asked == [("binding", "CREATE", "Binding"), ("status", "UPDATE", "Pod")]
        for name in ("a", "b"):
            await cluster.create(CONFIGMAPS, configmap(name, labels={"all": "yes"}))
        collection = CONFIGMAPS.path(cluster.namespace)
        await cluster.api.do("DELETE", collection, query={"labelSelector": "all=yes"})
        assert sorted(request["oldObject"]["metadata"]["name"] for request in hooks.asked["/maps"]) == [
            "a",
            "b",
        ]
        assert all("name" not in request for request in hooks.asked["/maps"])


async def test_a_write_meanwhile_is_not_lost(cluster: Cluster, hooks: Hooks) -> None:
    await cluster.create(CONFIGMAPS, configmap("a", x="1"))
    path = CONFIGMAPS.path(cluster.namespace, "a")
    changes = [{"op": "add", "path": "/data/y", "value": "1"}, {"op": "add", "path": "/data/z", "value": "2"}]
    async with hooks.register("Validating", hooks.hook("a", allow)):
        await asyncio.gather(
            *(cluster.api.do("PATCH", path, [change], content_type=JSON_PATCH) for change in changes)
        )
    assert (await cluster.api.do("GET", path))["data"] == {"x": "1", "y": "1", "z": "2"}


async def test_a_webhook_that_is_away(cluster: Cluster, hooks: Hooks) -> None:
    hook = hooks.hook("a", allow, timeoutSeconds=3)
    hook["clientConfig"]["url"] = "https://127.0.0.1:1/a"
    stranger = hooks.hook("b", allow, rule={"resources": ["limitranges"]})
    del stranger["clientConfig"]["caBundle"]
    async with hooks.register("Validating", hook, stranger):
        answer = await create(cluster, configmap("a"))
        assert answer.body["message"] == (
            'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post '
            '"https://127.0.0.1:1/a?timeout=3s": dial tcp 127.0.0.1:1: connect: connection refused'
        )
        assert answer.body["details"]["causes"][0]["message"].startswith("failed calling webhook")
        limits = Resource("v1", "limitranges").path(cluster.namespace)
        answer = await cluster.api.ask("POST", limits, {"metadata": {"name": "a"}, "spec": {"limits": []}})
        assert (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            in (answer.body["message"])
        )
