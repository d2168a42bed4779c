"""Operators of several namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Client, ConfigError, SharedInformerFactory
from aioinformer.objects.kube_object import KubeObject
from aioinformer.operator import Context, Operator, Request, RunOptions
from aioinformer.operator.manifests import Installation, manifests
from aioinformer.testing import APIServer, eventually

ACCOUNT = "system:serviceaccount:sites:sites"


def make_operator(seen: set[str]) -> Operator:
    operator = Operator("sites", events=False)

    @operator.controller("configmaps", owns=["secrets"])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        assert (context.namespace, context.namespaces) == (None, ("a", "b"))
        if (config := request.object) is not None:
            await context.apply_owned(config, "secrets", {})
            seen.add(request.key)

    return operator


async def test_each_namespace_is_read_with_its_own_role() -> None:
    seen: set[str] = set()
    operator = make_operator(seen)
    installed = Installation(target="sites:operator", name="sites", image="sites:1", watched=("a", "b"))
    async with APIServer(rbac=True, token="admin") as server:
        for name in ("a", "b", "c"):
            server.create("v1", "namespaces", {"metadata": {"name": name}})
            server.create("v1", "configmaps", {"metadata": {"name": "one"}}, name)
        for obj in manifests(operator, installed):
            plural = {"NetworkPolicy": "networkpolicies"}.get(obj["kind"], f"{obj['kind'].lower()}s")
            server.create(obj["apiVersion"], plural, obj)
        server.users["token"] = ACCOUNT
        async with (
            Client.from_url(server.url, "token") as client,
            operator.running(client, namespaces=["a", "b"]),
        ):
            await eventually(lambda: seen == {"a/one", "b/one"})
            server.create("v1", "configmaps", {"metadata": {"name": "two"}}, "c")
            server.create("v1", "configmaps", {"metadata": {"name": "two"}}, "b")
            await eventually(lambda: "b/two" in seen)
        assert seen == {"a/one", "b/one", "b/two"}
        assert [
            request for request in server.requests if request.user == ACCOUNT and request.status == 403
        ] == []
        assert [name for name in ("a", "b", "c") if server.list("v1", "secrets", name)] == ["a", "b"]


async def test_one_of_several_namespaces_is_the_only_one() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        operator = Operator("sites")

        @operator.controller("configmaps")
        async def reconcile(request: Request[KubeObject]) -> None: ...

        manager: Any = operator.manager(client, namespaces=["a", "a"])
        assert (manager.context.namespace, manager.context.namespaces) == ("a", ("a",))
        assert manager.informers[0].name.endswith("a")


async def test_a_factory_reads_its_namespaces_and_others_if_asked() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        factory = SharedInformerFactory(client, namespaces=["a", "b"])
        assert [*factory.for_resource("configmaps").list_watches] == ["a", "b"]
        assert [*factory.for_resource("nodes").list_watches] == [""]
        assert [*factory.for_resource("configmaps", namespace="").list_watches] == [""]
        assert [*factory.for_resource("secrets", namespaces=["c"]).list_watches] == ["c"]
        wrongs: list[dict[str, Any]] = [
            {"namespace": "a", "namespaces": ["b"]},
            {"namespaces": []},
            {"namespaces": "a"},
        ]
        for wrong in wrongs:
            with pytest.raises(ConfigError, match="namespace"):
                SharedInformerFactory(client, **wrong)


def test_options_of_a_run_have_one_namespace_or_several() -> None:
    assert RunOptions(namespace="a").watched == ("a",)
    assert RunOptions(namespaces=("a", "b", "a")).watched == ("a", "b")
    assert RunOptions().watched == ()
    with pytest.raises(ConfigError, match="leave out namespace"):
        RunOptions(namespace="a", namespaces=("b",))
