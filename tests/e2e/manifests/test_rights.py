"""The rights that an operator's declarations give suffice, and none is too much."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client
from aioinformer.operator.definitions import install as install_definitions
from aioinformer.operator.manifests import Installation, manifests
from aioinformer.testing import APIServer, assert_rbac_covers
from aioinformer.testing.rbac import refused_requests
from tests.e2e.conftest import REAL

from . import websites
from .audit import Audited, find_unneeded
from .installing import (
    install,
    installation,
    kubeconfig_of,
    rights_of,
    running_operator,
    until_permitted,
    without,
)
from .websites import operator

OWNERS = "update websites/finalizers.rights.example.com"
"""Admission asks for this right, so no request shows it."""


def real(test: Any) -> Any:
    """Mark a test of the real server; the event loop makes no difference."""
    for mark in (*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])):
        test = mark(test)
    return test


async def work(client: Client, admin: Client, namespace: str, installation: Installation) -> None:
    """Run the operator for the life of a Website."""
    async with running_operator(operator, client, installation):
        await websites.live(admin, namespace)


@pytest.mark.parametrize("shards", [0, 8])
async def test_on_the_embedded_server_every_verb_is_needed_and_no_other(shards: int) -> None:
    installed = installation("websites", home="default", shards=shards)
    async with APIServer(token="admin") as server, Client.from_url(server.url, "admin") as admin:
        server.users["operator-token"] = "operator"
        await install_definitions(admin, operator)
        async with Client.from_url(server.url, "operator-token") as client:
            await work(client, admin, "default", installed)
        assert_rbac_covers(server, rights_of(operator, installed), user="operator")
        requests = [request for request in server.requests if request.user == "operator"]
        assert find_unneeded(requests, rights_of(operator, installed)) == [OWNERS]


@real
@pytest.mark.parametrize(
    ("scope", "shards"), [("all", 0), ("all", 8), ("one", 0), ("several", 0), ("several", 8)]
)
async def test_on_the_real_server_every_verb_is_needed_and_no_other(
    audited: Audited, admin: Client, tmp_path: Path, scope: str, shards: int
) -> None:
    namespace = audited.create_namespace()
    watched = {"all": (), "one": (namespace,), "several": (audited.create_namespace(), namespace)}[scope]
    installed = installation(f"suffices-in-{scope}{shards or ''}", watched or None, shards=shards)
    await install(audited, admin, operator, manifests(operator, installed), tmp_path)
    config = await kubeconfig_of(audited, installed, tmp_path)
    async with Client.from_kubeconfig(path=config) as client:
        await until_permitted(client, operator, installed)
        await work(client, admin, namespace, installed)
    account = f"{installed.home}/{installed.name}"
    assert audited.list_refused(account) == []
    requests = audited.requests(account)
    assert refused_requests(requests, rights_of(operator, installed)) == {}
    assert find_unneeded(requests, rights_of(operator, installed)) == [OWNERS]


@real
@pytest.mark.parametrize(
    ("removed", "shards"),
    [
        *((right.resource, 0) for right in operator.rights() if right.plural != "leases"),
        *((f"{verb} leases", 0) for verb in ("create", "update")),
        *((f"{verb} leases", 8) for verb in ("list", "create", "update")),
    ],
)
async def test_without_a_rule_the_real_server_refuses_a_request(
    audited: Audited, admin: Client, tmp_path: Path, removed: str, shards: int
) -> None:
    verb, _, resource = removed.rpartition(" ")
    namespace = audited.create_namespace()
    installed = installation("lacks-" + re.sub("[^a-z]", "-", removed), namespace, shards=shards)
    objects = [without(manifest, verb, resource) for manifest in manifests(operator, installed)]
    await install(audited, admin, operator, objects, tmp_path)
    config = await kubeconfig_of(audited, installed, tmp_path)
    async with Client.from_kubeconfig(path=config) as client, running_operator(operator, client, installed):
        await websites.create(admin, namespace)
        await audited.until_refused(f"{namespace}/{installed.name}", resource.partition("/")[0])
