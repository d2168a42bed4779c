"""Replicas that share the objects: slots without an owner, dead replicas, and what the server selects."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest

from aioinformer import Client, KubeObject, Resource
from aioinformer.doctor import Finding, Level, Report, examine
from aioinformer.doctor.sharding import LASTS, Replica, judge_owners
from aioinformer.operator import Operator, Owned, Request, RunOptions, Uses, Watched
from aioinformer.sharding import Sharding
from aioinformer.sharding.table import OWNERS, Table
from aioinformer.testing import APIServer, eventually
from tests.kubernetes.controlplane import ControlPlane
from tests.sharding.written_leases import write_lease, write_member, write_table

from .setups import grant, require

FAULT, WARNING, OK, NOTE = Level.FAULT, Level.WARNING, Level.OK, Level.NOTE

SLOTS = 8
OPTIONS = RunOptions(target="sites:operator", shards=SLOTS)
operator = Operator("sites", events=False)


def request_of(secret: KubeObject) -> list[Request[KubeObject]]:
    return [Request.of(secret.key)]


@operator.controller("configmaps", owns=[Owned("pods")], watches=[Watched("secrets", request_of)])
async def reconcile(request: Request[KubeObject]) -> None: ...


async def examine_sites(server: APIServer, **options: Any) -> Report:
    return await examine(Client.from_url(server.url), operator, msgspec.structs.replace(OPTIONS, **options))


@asynccontextmanager
async def replicas(
    open_client: Callable[[], Client], count: int, namespace: str = "default"
) -> AsyncIterator[None]:
    async with open_client() as client, AsyncExitStack() as stack:
        shardings = [
            Sharding(client, "sites", namespace, slots=SLOTS, retry_period=0.2) for _ in range(count)
        ]
        for sharding in shardings:
            manager = operator.manager(client, namespace=namespace, sharding=sharding)
            await stack.enter_async_context(manager)
        await eventually(lambda: {len(sharding.state.owned) for sharding in shardings} == {SLOTS // count})
        yield


@pytest.mark.parametrize("selects", [True, False])
async def test_running_replicas_and_what_the_server_selects(selects: bool) -> None:
    async with APIServer(shards=selects) as server, replicas(lambda: Client.from_url(server.url), 2):
        for number in range(40):
            server.create("v1", "configmaps", {"metadata": {"name": f"c{number}"}})
        before = server.list("coordination.k8s.io/v1", "leases")
        report = await examine_sites(server)
        after = server.list("coordination.k8s.io/v1", "leases")
    assert {lease["metadata"]["name"] for lease in after} == {lease["metadata"]["name"] for lease in before}
    require(report, OK, "sharding", f"2 replicas each own 4 of {SLOTS} slots")
    require(report, NOTE, "sharding", "all of pods", "servers select by uid only")
    require(report, NOTE, "sharding", "reads and keeps all of secrets")
    if selects:
        require(report, OK, "sharding", "the server selects slots", "configmaps")
    else:
        finding = require(report, NOTE, "sharding", "the server does not select slots", "configmaps")
        assert "ShardedListAndWatch" in finding.do
    assert "lease" not in {finding.check for finding in report.findings}
    assert {finding.level for finding in report.findings if finding.check == "sharding"} <= {OK, NOTE}


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
@pytest.mark.parametrize("plane", ["sharded_control_plane", "control_plane"])
async def test_replicas_on_the_real_server(plane: str, request: pytest.FixtureRequest) -> None:
    control_plane: ControlPlane = request.getfixturevalue(plane)
    namespace = control_plane.create_namespace()

    def open_client() -> Client:
        return Client.from_kubeconfig(path=control_plane.kubeconfig)

    options = msgspec.structs.replace(OPTIONS, namespace=namespace, lease_namespace=namespace)
    async with open_client() as client:
        configmaps = Resource(client, "configmaps")
        for number in range(40):
            await configmaps.create({"metadata": {"name": f"c{number}", "namespace": namespace}})
    async with replicas(open_client, 2, namespace):
        report = await examine(open_client(), operator, options)
    require(report, OK, "sharding", f"2 replicas each own 4 of {SLOTS} slots; the last move was ")
    if plane == "control_plane":
        require(report, NOTE, "sharding", "the server does not select slots", f"configmaps in {namespace}")
    else:
        require(report, OK, "sharding", "the server selects slots", f"configmaps in {namespace}")
    stopped = await examine(open_client(), operator, options)
    require(stopped, WARNING, "sharding", "no replica runs, and all slots are free")


async def test_without_shards_nothing_is_checked() -> None:
    async with APIServer() as server:
        report = await examine_sites(server, shards=0)
    assert "sharding" not in {finding.check for finding in report.findings}


async def test_no_replica_has_worked_yet() -> None:
    async with APIServer() as server:
        finding = require(await examine_sites(server), WARNING, "sharding", "no Lease default/sites-slots")
    assert "--shards 8" in finding.do


async def test_a_dead_owner_is_named_with_its_slots() -> None:
    async with APIServer() as server:
        write_table(
            server,
            "sites",
            SLOTS,
            {"sites-000000000001": [0, 1, 2, 3], "sites-000000000002": [4, 5, 6], "sites-000000000003": [7]},
        )
        write_member(server, "sites", "sites-000000000001", ago=1.0)
        write_member(server, "sites", "sites-000000000002", ago=300.0)
        report = await examine_sites(server)
    require(
        report, FAULT, "sharding", "sites-000000000002, which owns the slots 4-6, renewed its Lease 5 min ago"
    )
    require(report, FAULT, "sharding", "sites-000000000003, which owns the slots 7, has no Lease")
    assert report.exit_code == 2


async def test_all_replicas_are_dead() -> None:
    async with APIServer() as server:
        write_table(server, "sites", SLOTS, {"sites-000000000001": [*range(SLOTS)]})
        write_member(server, "sites", "sites-000000000001", ago=600.0)
        report = await examine_sites(server)
    require(report, FAULT, "sharding", "no replica is alive", "renewed its Lease 10 min ago")


async def test_all_replicas_have_stopped() -> None:
    async with APIServer() as server:
        async with replicas(lambda: Client.from_url(server.url), 1):
            pass
        require(await examine_sites(server), WARNING, "sharding", "no replica runs")


async def test_another_number_of_slots() -> None:
    async with APIServer() as server:
        write_table(server, "sites", 16, {"sites-000000000001": [0]})
        report = await examine_sites(server)
    finding = require(report, FAULT, "sharding", "has 16 slots", "8")
    assert "--shards" in finding.do


async def test_another_key() -> None:
    owners = {"sites-000000000001": [0]}
    async with APIServer() as server:
        write_table(server, "sites", SLOTS, owners, key="namespace")
        report = await examine_sites(server)
    require(report, FAULT, "sharding", "key='namespace'", "key='uid'")


@pytest.mark.parametrize(
    "annotation", ["", "{", '{"slots":8,"owners":[]}', "[" * 100_000, '{"slots":"\\u001b[2J"}']
)
async def test_a_table_that_cannot_be_read(annotation: str) -> None:
    async with APIServer() as server:
        write_lease(server, "sites", "sites-slots", annotation)
        report = await examine_sites(server)
    finding = require(report, FAULT, "sharding", OWNERS, "default/sites-slots")
    assert len(finding.what) < 1000


async def test_forged_owners_do_not_make_the_report_long() -> None:
    async with APIServer() as server:
        owners: dict[str, list[int]] = {f"\x1b[2J{'x' * 500}{number}": [] for number in range(100)}
        owners["y" * 50_000] = [*range(0, SLOTS, 2)]
        write_table(server, "sites", SLOTS, owners)
        write_member(server, "sites", "sites-000000000001", ago=1.0)
        report = await examine_sites(server)
    findings = [finding for finding in report.findings if finding.check == "sharding"]
    require(report, FAULT, "sharding", "owners of slots are dead: yyy")
    assert max(len(finding.what) for finding in findings) < 1000


async def test_leases_of_another_form_are_no_replicas() -> None:
    async with APIServer() as server:
        write_member(server, "sites", "sites-of-others", ago=1.0)
        write_table(server, "sites", SLOTS, {"sites-000000000001": [*range(SLOTS)]})
        write_lease(server, "sites", "sites-000000000001")
        write_lease(server, "sites", "sites-000000000002", holderIdentity="sites-000000000002")
        report = await examine_sites(server)
    require(report, FAULT, "sharding", "no replica is alive")


async def test_rights_that_replicas_need() -> None:
    rules = [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": [*right.verbs]}
        for right in operator.rights(leader_election=False)
    ]
    async with APIServer(rbac=True, token="admin") as server:
        report = await examine(grant(server, *rules), operator, OPTIONS)
    finding = require(report, FAULT, "rights", "leases.coordination.k8s.io in default")
    assert "aioinformer manifests sites:operator --shards 8" in finding.do
    require(report, NOTE, "sharding", "not checked", "may not list the Leases in default")
    async with APIServer(rbac=True, token="admin") as server:
        leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
        every = {**leases, "verbs": ["get", "list", "create", "update", "delete"]}
        report = await examine(grant(server, *rules, every), operator, OPTIONS)
    require(report, OK, "rights", "has the rights")
    require(report, OK, "rights", "no other rights")


async def test_an_operator_that_cannot_be_shared() -> None:
    unfit = Operator("unfit", events=False, uses=[Uses("pods")])
    unfit.controller("configmaps", name="maps")(reconcile)
    unfit.controller("secrets", name="owners", owns=["configmaps"])(reconcile)
    async with APIServer() as server:
        report = await examine(Client.from_url(server.url), unfit, OPTIONS)
    require(report, FAULT, "operator", "configmaps")


# -- plain rules ---------------------------------------------------------------------------------------------


def alive(name: str, since: float = 600.0) -> Replica:
    return Replica(name, 1.0, 15.0, since)


def judge(
    owners: dict[str, list[int]], *others: Replica, unchanged: float | None = 600.0, slots: int = SLOTS
) -> list[Finding]:
    """Judge owners that are alive, and other replicas."""
    names = {other.name for other in others}
    table = Table(slots, {slot: name for name, its in owners.items() for slot in its}, frozenset(owners))
    replicas = [*others, *(alive(name) for name in owners if name not in names)]
    return [*judge_owners(table, replicas, unchanged=unchanged)]


def test_free_slots_are_a_fault_once_nothing_moves() -> None:
    owners = {"a": [0, 1, 2], "b": [4, 5]}
    (moving,) = [one for one in judge(owners, unchanged=5.0) if "no replica owns" in one.what]
    assert (moving.level, "the slots 3, 6-7 for at least 5.0 s" in moving.what) == (NOTE, True)
    (lasting,) = [one for one in judge(owners) if "no replica owns" in one.what]
    assert (lasting.level, "for at least 10 min" in lasting.what) == (FAULT, True)
    (unknown,) = [one for one in judge(owners, unchanged=None) if "no replica owns" in one.what]
    assert (unknown.level, "for at least" in unknown.what) == (FAULT, False)


def test_an_uneven_assignment_counts_once_it_lasts() -> None:
    owners = {"a": [0, 1, 2, 3, 4, 5], "b": [6, 7]}
    (finding,) = judge(owners)
    assert finding.level is WARNING
    assert "from 2 to 6 slots, and nothing moves: a should give" in finding.what
    (finding,) = judge(owners, unchanged=LASTS - 1)
    assert (finding.level, finding.what) == (
        OK,
        "2 replicas each own 2 to 6 of 8 slots; the last move was 59 s ago",
    )


def test_more_replicas_than_slots() -> None:
    (finding,) = judge({"a": [0], "b": [1], "c": []}, slots=2)
    assert (finding.level, "3 replicas and only 2 slots" in finding.what) == (WARNING, True)


@pytest.mark.parametrize(("since", "level"), [(600.0, WARNING), (5.0, OK), (-math.inf, OK)])
def test_a_replica_that_takes_no_part(since: float, level: Level) -> None:
    (finding,) = judge({"a": [*range(SLOTS)]}, alive("b", since))
    assert finding.level is level


@pytest.mark.parametrize(
    ("renewed", "words"),
    [
        (300.0, "renewed its Lease 5 min ago"),
        (-300.0, "5 min in the future"),
        (math.inf, "has given back its Lease"),
        (-math.inf, "or never renewed it"),
    ],
)
def test_an_owner_is_dead_by_its_renewal(renewed: float, words: str) -> None:
    findings = judge({"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}, Replica("b", renewed, 15.0, 600.0))
    assert [finding.level for finding in findings] == [FAULT]
    assert words in findings[0].what
