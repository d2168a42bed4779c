"""The table of slots of ``aioinformer top``."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import AioInformerError, Client, KubeObject
from aioinformer.cli.top.slots import MOST_OWNERS
from aioinformer.cli.top.table import Table, text_of
from aioinformer.cli.top.tables import Reading, show
from aioinformer.operator import Operator, Request
from aioinformer.operator.serving import Debug
from aioinformer.sharding import Sharding
from aioinformer.testing import APIServer, eventually

operator = Operator("keeper", events=False)

ALONE: dict[str, Any] = {
    "slots": 4,
    "identity": "keeper-1",
    "owned": [0, 1],
    "leaving": [],
    "owners": {"keeper-1": [0, 1]},
    "members": ["keeper-1"],
    "moves": 2,
    "moved_seconds": None,
    "is_filtered_by_server": {},
    "load": None,
}


@operator.controller("configmaps")
async def reconcile(request: Request[KubeObject]) -> None: ...


def slots_of(sharding: dict[str, Any]) -> Table:
    data = {"informers": [], "sharding": {**ALONE, **sharding}}
    _, tables = show(None, Reading(0.0, data))
    return next(table for table in tables if table.title.startswith("Slots"))


async def test_slots_of_a_running_operator() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        for number in range(20):
            server.create("v1", "configmaps", {"metadata": {"name": f"c{number}"}})
        sharding = Sharding(client, "keeper", "default", slots=4)
        async with operator.manager(client, sharding=sharding) as manager:
            await eventually(lambda: sum(sharding.state.objects.values()) == 20)
            load = sharding.state.load
            assert load is not None
            snapshot = msgspec.json.decode(msgspec.json.encode(Debug(manager, "keeper").snapshot()))
    table = slots_of(snapshot["sharding"])
    assert table.title.startswith("Slots: this replica owns 4 of 4, 4 moves, the last ")
    assert f"objects per slot {load.least} to {load.most} (slot {load.fullest}), median " in table.title
    assert table.rows == [(snapshot["sharding"]["identity"], "4", "0-3", "this replica")]


def test_free_slots_and_dead_replicas_are_named() -> None:
    owners = {"keeper-1": [0], "keeper-2": [2, 3]}
    members, selects = ["keeper-1", "keeper-3"], {"configmaps": False}
    table = slots_of({"owned": [0], "owners": owners, "members": members, "is_filtered_by_server": selects})
    assert table.title.endswith("the server does not select slots")
    assert table.rows == [
        ("no owner", "1", "1", ""),
        ("keeper-2", "2", "2-3", "its Lease has expired"),
        ("keeper-1", "1", "0", "this replica"),
        ("keeper-3", "0", "", ""),
    ]


def test_forged_owners_cannot_write_to_the_terminal_or_fill_it() -> None:
    owners = {f"\x1b[2J{'x' * 500}{number}": [number] for number in range(1000)}
    text = text_of([slots_of({"owners": owners, "members": []})])
    assert "\x1b" not in text
    assert len(text.splitlines()) == MOST_OWNERS + 3
    assert f"and {1000 - MOST_OWNERS} more" in text
    assert max(map(len, text.splitlines())) < 300


@pytest.mark.parametrize(
    "hostile",
    [{"slots": 10**12}, {"slots": "\x1b[2J"}, {"owners": {"a": ["\x1b[2J"]}}, {"owners": 3}, {"moves": "\x1b[2J"}],
)  # fmt: skip
def test_a_snapshot_that_cannot_be_read_is_named(hostile: dict[str, Any]) -> None:
    with pytest.raises(AioInformerError, match="of another version of aioinformer"):
        slots_of(hostile)
