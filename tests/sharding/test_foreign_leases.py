"""Leases and tables that others wrote, changed or deleted, on the embedded server."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from aioinformer import Client, SharedInformerFactory
from aioinformer.errors import ConfigError
from aioinformer.sharding import Sharding
from aioinformer.sharding.table import OWNERS
from aioinformer.testing import APIServer
from aioinformer.testing.waiting import eventually

from .test_operator import FAST, SLOTS, Recorder, client, create, new_sharding, server
from .written_leases import LEASES, write_lease

__all__ = ["client", "server"]


def table(server: APIServer) -> dict[str, Any]:
    return server.get(*LEASES, "demo-slots", "default")


def set_table(server: APIServer, text: str) -> None:
    lease = table(server)
    lease["metadata"]["annotations"][OWNERS] = text
    server.update(*LEASES, lease)


async def test_deleted_table_is_written_again_and_no_slot_moves(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Recorder(client), Recorder(client)
    async with first.manager, second.manager:
        await eventually(lambda: len(first.slots) == len(second.slots) == SLOTS // 2)
        await eventually(lambda: len(first.sharding.state.owners) == 2)  # it has read what the other took
        moves = first.sharding.state.moves, second.sharding.state.moves
        annotation = table(server)["metadata"]["annotations"][OWNERS]
        server.delete(*LEASES, "demo-slots", "default")
        await eventually(lambda: "demo-slots" in {o["metadata"]["name"] for o in server.list(*LEASES)})
        assert table(server)["metadata"]["annotations"][OWNERS] == annotation
        assert (first.sharding.state.moves, second.sharding.state.moves) == moves
    assert "the Lease default/demo-slots was deleted; it is written again as it was last read" in caplog.text


async def test_work_is_cancelled_in_slots_that_others_took_away(server: APIServer, client: Client) -> None:
    for number in range(16):
        create(server, f"c{number}")
    replica = Recorder(client, seconds=3600.0)
    async with replica.manager:
        await eventually(lambda: len(replica.running) == 16)
        set_table(server, '{"slots":8,"owners":{"other":[0,1,2,3,4,5,6,7]}}')
        await eventually(lambda: len(replica.cancelled) == 16)
        await eventually(lambda: len(replica.running) == 16, within=30)  # no such replica renews a Lease


async def test_broken_table_ends_the_work_until_it_is_mended(server: APIServer, client: Client) -> None:
    replica = Recorder(client)
    async with replica.manager:
        await eventually(lambda: len(replica.slots) == SLOTS)
        set_table(server, '{"slots":8,"owners":{"a":[9]}}')
        await eventually(lambda: not replica.slots, within=30)
        await eventually(lambda: "there is no slot 9" in str(replica.sharding.state), within=30)
        assert "there is no slot 9" in str(replica.manager.ready())
        set_table(server, '{"slots":8}')
        await eventually(lambda: len(replica.slots) == SLOTS, within=30)
        await eventually(lambda: bool(replica.manager.ready()))


@pytest.mark.parametrize("verb", ["create", "list", "update"])
async def test_replica_that_may_not_use_leases_is_not_ready(
    server: APIServer, client: Client, verb: str
) -> None:
    rule = server.forbid(verb, "leases")
    replica = Recorder(client)
    async with replica.manager:
        await eventually(lambda: "forbidden" in str(replica.manager.ready()))
        assert not replica.slots
        rule.remove()
        await eventually(lambda: len(replica.slots) == SLOTS and bool(replica.manager.ready()), within=30)


async def test_lease_of_another_program_is_no_replica_and_is_not_deleted(
    server: APIServer, client: Client
) -> None:
    for name in ("demo-leader", "demo-0123456789ab"):
        write_lease(server, "demo", name, holderIdentity="host", leaseDurationSeconds=1)
    replica = Recorder(client)
    async with replica.manager:
        await eventually(lambda: len(replica.slots) == SLOTS)
        assert "demo-leader" not in replica.sharding.state.members
        await eventually(
            lambda: "demo-0123456789ab" not in {o["metadata"]["name"] for o in server.list(*LEASES)},
            within=30,
        )
    assert [lease["metadata"]["name"] for lease in server.list(*LEASES)] == ["demo-leader", "demo-slots"]


async def test_table_name_that_another_program_uses_is_an_error(server: APIServer, client: Client) -> None:
    server.create(*LEASES, {"metadata": {"name": "demo-slots", "namespace": "default"}})
    with pytest.raises(ConfigError, match=r"the Lease default/demo-slots exists and lacks the label"):
        await new_sharding(client).run()


async def test_replica_with_another_key_does_not_start(server: APIServer, client: Client) -> None:
    replica = Recorder(client)
    async with replica.manager:
        await eventually(lambda: len(replica.slots) == SLOTS)
        with pytest.raises(ConfigError, match=r"key='uid', but this replica has key='namespace'"):
            await Sharding(client, "demo", "default", slots=SLOTS, key="namespace", **FAST).run()


async def test_two_programs_with_one_name_are_reported(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    replica, other = Recorder(client), new_sharding(client)
    async with replica.manager:
        await eventually(lambda: len(replica.slots) == SLOTS)
        async with other, SharedInformerFactory(client, "default", sharding=other) as factory:
            factory.for_resource("v1", "secrets")
            await eventually(lambda: len(other.share.slots) > 0, within=30)
            await eventually(lambda: "configmaps in default, and this one reads secrets" in caplog.text)


async def test_function_that_fails_for_an_object_leaves_it_to_its_uid(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        create(server, f"c{number}")
    labelled = {"metadata": {"name": "labelled", "namespace": "default", "labels": {"team": "a"}}}
    server.create("v1", "configmaps", labelled)
    sharding = Sharding(
        client, "demo", "default", slots=SLOTS, key=lambda obj: obj.metadata.labels["team"], **FAST
    )
    async with sharding, SharedInformerFactory(client, "default", sharding=sharding) as factory:
        informer = factory.for_resource("v1", "configmaps")
        await eventually(lambda: len(informer.store) == 6)
        assert "the key of default/c0 is not known, so its uid decides about its slot" in caplog.text
