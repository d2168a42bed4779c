"""The operators of examples/ do their job with the rights of their declarations, and need each of them."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

import examples
from aioinformer import Client, NotFoundError, Resource, SharedInformerFactory
from aioinformer.operator import Operator
from aioinformer.operator.definitions import compare
from aioinformer.operator.manifests import Installation, manifests
from aioinformer.testing import eventually
from aioinformer.testing.rbac import refused_requests
from examples import operator_declared, operator_webhooks, sharded_operator, storage_operator
from examples.storage_operator.model import Backend, Cave
from tests.e2e.api import API
from tests.e2e.clusters import KubernetesCluster
from tests.e2e.conftest import REAL
from tests.examples.storage_operator.test_kubernetes import tell

from .audit import PATIENCE, Audited, find_unneeded
from .installing import install, kubeconfig_of, running_operator, until_permitted, without

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

OF_ADMISSION = {"update backends/finalizers.storage.example.com", "update websites/finalizers.example.com"}
"""Admission asks for these rights, so no request shows them. Their removal is tested."""


class World(NamedTuple):
    """An operator that is installed on the real server.

    Attributes:
        audited: The server.
        admin: The administrator's client.
        installed: How the operator is installed.
        kubeconfig: That of its service account.
    """

    audited: Audited
    admin: Client
    installed: Installation
    kubeconfig: Path

    @property
    def namespace(self) -> str:
        return self.installed.home

    @property
    def account(self) -> str:
        return f"{self.installed.home}/{self.installed.name}"


class Example(NamedTuple):
    """An example, and its whole job."""

    operator: Operator
    do_its_job: Callable[[World], Awaitable[None]]


async def keep_storage(world: World) -> None:
    """The story of Caves and Backends, with two controllers and the garbage collector."""
    async with SharedInformerFactory(world.admin, world.namespace) as factory:
        for kind in (Cave, Backend):  # the server cannot watch a new kind at once
            factory.for_resource(kind)
        await factory.wait_for_cache_sync(timeout=PATIENCE)
    async with API(world.audited.url, world.audited.token, world.audited.ssl_context()) as api:
        cluster = KubernetesCluster(world.audited, api, world.kubeconfig.parent)
        cluster.kubeconfig = world.kubeconfig
        lease = storage_operator.operator.name
        await tell(
            cluster,
            [],
            seed=0,
            lease=lease,
            user="operator",
            namespace=world.namespace,
            use_watch_list=False,
        )
    events = await Resource(world.admin, "events.events.k8s.io").list(world.namespace)
    assert {event["reason"] for event in events} >= {
        "Protected",
        "StillMounted",
        "Released",
        "Mounted",
        "WaitingForCave",
    }


async def publish_websites(world: World) -> None:
    """A Website is published, and again after its ConfigMap was changed by another user."""
    key = f"{world.namespace}/home"
    configmaps, secrets = Resource(world.admin, "configmaps"), Resource(world.admin, "secrets")
    async with (
        Client.from_kubeconfig(path=world.kubeconfig) as client,
        running_operator(operator_declared.operator, client, world.installed),
    ):
        site = {"metadata": {"name": "home", "namespace": world.namespace}, "spec": {"html": "hi"}}
        await Resource(world.admin, operator_declared.Website).create(site)
        await _until(configmaps, key, "colour", "none")
        style = {"metadata": {"name": "style", "namespace": world.namespace}, "data": {"colour": "cmVk"}}
        await secrets.create(style)
        await _until(configmaps, key, "colour", "cmVk")
        await configmaps.delete(key)  # it comes back, with the same Event again
        await _until(configmaps, key, "colour", "cmVk")


async def answer_reviews(world: World) -> None:
    """The webhooks answer, while the operator leads."""
    async with (
        Client.from_kubeconfig(path=world.kubeconfig) as client,
        running_operator(operator_webhooks.operator, client, world.installed) as manager,
    ):
        await operator_webhooks.main()
        await eventually(lambda: manager.state.leading, within=PATIENCE)


async def write_down_rounds(world: World) -> None:
    """A round is written down; one replica of it is enough here."""
    key, configmaps = f"{world.namespace}/a", Resource(world.admin, "configmaps")
    async with (
        Client.from_kubeconfig(path=world.kubeconfig) as client,
        running_operator(sharded_operator.operator, client, world.installed),
    ):
        metadata = {"name": "a", "namespace": world.namespace}
        await configmaps.create({"metadata": metadata, "data": {"round": "1", "seen": "none"}})
        await _until(configmaps, key, "seen", "1")


async def _until(configmaps: Resource[Any], key: str, field: str, value: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if (await configmaps.get(key))["data"][field] == value:
                    return
            except NotFoundError:
                pass
            await asyncio.sleep(0.05)


EXAMPLES = {
    "storage_operator": Example(storage_operator.operator, keep_storage),
    "operator_declared": Example(operator_declared.operator, publish_websites),
    "operator_webhooks": Example(operator_webhooks.operator, answer_reviews),
    "sharded_operator": Example(sharded_operator.operator, write_down_rounds),
}


async def test_every_operator_of_the_examples_is_tested() -> None:
    names = [module.name for module in pkgutil.iter_modules(examples.__path__) if "operator" in module.name]
    modules = {name: importlib.import_module(f"examples.{name}") for name in names}
    operators = {
        name for name, module in modules.items() if isinstance(getattr(module, "operator", None), Operator)
    }
    assert operators == set(EXAMPLES)


async def install_example(
    name: str, audited: Audited, admin: Client, folder: Path, removed: str = "", suffix: str = ""
) -> World:
    """Install an example with the rights of its declarations, but for one: ``"create pods"``."""
    operator, namespace = EXAMPLES[name].operator, audited.create_namespace()
    installation = Installation(
        target=f"examples.{name}",
        name=f"{operator.name}{suffix}",
        image="example.com/operator:1",
        namespace=audited.create_namespace() if operator.has_webhooks else "",
        ca_bundle=trustme.CA().cert_pem.bytes() if operator.has_webhooks else None,
        watched=namespace,
        replicas=2,
    )
    verb, _, resource = removed.partition(" ")
    objects = [without(manifest, verb, resource) for manifest in manifests(operator, installation)]
    await install(audited, admin, operator, objects, folder)
    assert (await compare(admin, operator)).differences == []
    return World(audited, admin, installation, await kubeconfig_of(audited, installation, folder))


@pytest.mark.parametrize("name", EXAMPLES)
async def test_it_works_with_the_rights_of_its_declarations_and_needs_each_verb(
    audited: Audited, admin: Client, tmp_path: Path, name: str
) -> None:
    operator = EXAMPLES[name].operator
    world = await install_example(name, audited, admin, tmp_path)
    async with Client.from_kubeconfig(path=world.kubeconfig) as client:
        await until_permitted(client, operator, world.installed)
    await EXAMPLES[name].do_its_job(world)
    assert audited.list_refused(world.account) == []
    requests = audited.requests(world.account)
    assert refused_requests(requests, operator.rights()) == {}
    needless = {
        verb
        for verb in find_unneeded(requests, operator.rights())
        if not verb.startswith("get ")  # of an object that a late cache lacks
    }
    assert needless <= OF_ADMISSION


@pytest.mark.parametrize(
    ("removed", "refused"),
    [
        ("update backends/finalizers", "cannot set blockOwnerDeletion"),
        ("create pods", "cannot create resource"),
        ("patch caves", "cannot patch resource"),
        ("patch caves/status", "cannot patch resource"),
    ],
)
async def test_without_a_verb_the_real_server_refuses_the_storage_operator(
    audited: Audited, admin: Client, tmp_path: Path, removed: str, refused: str
) -> None:
    suffix = "-without-" + removed.replace(" ", "-").replace("/", "-")
    world = await install_example("storage_operator", audited, admin, tmp_path, removed, suffix)
    where = {"server": "10.0.0.7", "volume": "deep"}
    for kind, spec in ((Cave, where), (Backend, {**where, "image": "example.com/web:1"})):
        obj = {"metadata": {"name": "a", "namespace": world.namespace}, "spec": spec}
        await Resource(admin, kind).create(obj)
    async with (
        Client.from_kubeconfig(path=world.kubeconfig) as client,
        running_operator(storage_operator.operator, client, world.installed),
    ):
        await audited.until_refused(world.account, refused)
