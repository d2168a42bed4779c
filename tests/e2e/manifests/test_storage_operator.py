"""The storage operator works with the rights that follow from its controllers, declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from aioinformer import Client
from aioinformer.operator import Operator, Owned, Request, Watched
from aioinformer.operator.manifests import Installation, manifests, to_yaml
from aioinformer.testing.rbac import refused_requests
from tests.e2e.api import API
from tests.e2e.clusters import KubernetesCluster
from tests.e2e.conftest import REAL
from tests.examples.storage_operator.objects import DEFINITIONS, PROTECTION
from tests.examples.storage_operator.test_kubernetes import tell

from .audit import Audited, unneeded
from .installing import kubeconfig_of, until_owners, until_permitted

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

GROUP = "storage.example.com"
CAVES, BACKENDS = f"caves.{GROUP}", f"backends.{GROUP}"

operator = Operator("storage-operator")


def nothing(request: Request[Any]) -> None: ...


def nowhere(obj: Any) -> list[Request[Any]]:
    return []


operator.controller(CAVES, finalizer=PROTECTION, cleanup=nothing, watches=[Watched("pods", nowhere)])(nothing)
operator.controller(
    BACKENDS,
    owns=[Owned("pods", verbs=("create", "patch", "delete"))],
    watches=[Watched(CAVES, nowhere)],
)(nothing)


async def test_it_works_with_the_rights_of_its_declarations_and_needs_every_rule(
    audited: Audited, tmp_path: Path
) -> None:
    for definition in DEFINITIONS:
        await audited.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(definition))
    for definition in DEFINITIONS:
        await until_owners(audited, definition)
    audited.start_controller_manager()
    namespace = audited.create_namespace()
    installed = Installation(
        target="storage:operator", name="storage-operator", image="storage:1", watched=namespace, replicas=2
    )
    text = to_yaml(manifests(operator, installed))
    await audited.kubectl("apply", "-f", "-", stdin=text)
    config = await kubeconfig_of(audited, installed, tmp_path)
    async with Client.from_kubeconfig(path=config) as client:
        await until_permitted(client, operator, installed)
    async with API(audited.url, audited.token, audited.ssl_context()) as api:
        cluster = KubernetesCluster(audited, api, tmp_path)
        cluster.kubeconfig = config
        await tell(cluster, [], seed=0, lease=operator.name, user="operator", namespace=namespace)
    account = f"{namespace}/{installed.name}"
    # admission learns late of a kind that owns others; the operator retries
    assert [each for each in audited.refused(account) if "cannot find RESTMapping" not in each] == []
    requests = audited.requests(account)
    assert refused_requests(requests, operator.rights()) == {}
    at_times = ("get", "list")  # for a cache that is late, and for servers that cannot stream a list
    assert [each for each in unneeded(requests, operator.rights()) if not each.startswith(at_times)] == [
        f"update backends/finalizers.{GROUP}",  # admission asks for it
        f"update backends/status.{GROUP}",  # this operator patches
        f"update caves/status.{GROUP}",
    ]
