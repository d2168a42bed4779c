"""The rules: hashes, slots, ranges, assignment, the table and members."""

from __future__ import annotations

import re
from itertools import pairwise
from random import Random
from uuid import UUID

import pytest

from aioinformer.errors import ConfigError, DecodeError
from aioinformer.sharding.assignment import assign
from aioinformer.sharding.members import LONGEST_LEASE, Members
from aioinformer.sharding.slots import (
    first_hash,
    fnv1a,
    runs_of,
    selector_of,
    show_slots,
    slot_of,
    slot_of_text,
)
from aioinformer.sharding.table import OWNERS, Table


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)],
)
def test_hash_is_that_of_the_reference(text: str, expected: int) -> None:
    assert fnv1a(text) == expected


@pytest.mark.parametrize("slots", [1, 3, 7, 64, 1000, 1024])
def test_each_hash_is_in_the_range_of_its_slot(slots: int) -> None:
    firsts = [first_hash(slot, slots) for slot in range(slots + 1)]
    assert firsts[0] == 0
    assert firsts[-1] == 1 << 64
    random = Random(slots)
    for _ in range(200):
        uid = str(UUID(int=random.getrandbits(128)))
        slot = slot_of(uid, slots)
        assert firsts[slot] <= fnv1a(uid) < firsts[slot + 1]


def test_adjacent_slots_are_one_range() -> None:
    assert list(runs_of([7, 1, 2, 3])) == [(1, 4), (7, 8)]
    assert show_slots([7, 1, 2, 3]) == "1-3, 7"
    assert show_slots([]) == "none"
    selector = selector_of([0, 1, 3], 4)
    assert re.findall(r"'(.+?)'", selector) == [
        "0x0000000000000000", "0x8000000000000000", "0xc000000000000000", "0x10000000000000000",
    ]  # fmt: skip
    assert selector_of(range(4), 4) == ""


def _owners(assigned: dict[str, set[int]]) -> dict[int, str]:
    return {slot: member for member, slots in assigned.items() for slot in slots}


@pytest.mark.parametrize("slots", [1, 10, 64, 100])
def test_assignment_is_even_and_moves_as_few_slots_as_possible(slots: int) -> None:
    random = Random(slots)
    members: set[str] = set()
    owners: dict[int, str] = {}
    for step in range(60):
        if members and random.random() < 0.45:
            members.discard(random.choice(sorted(members)))
        else:
            members.add(f"replica-{step}")
        assigned = assign(slots, owners, members)
        if not members:
            assert assigned == {}
            owners = {}
            continue
        counts = [len(owned) for owned in assigned.values()]
        assert sum(counts) == slots
        assert max(counts) - min(counts) <= 1
        moved = sum(owners.get(slot) != member for slot, member in _owners(assigned).items())
        kept = {member: sum(owner == member for owner in owners.values()) for member in members}
        least, rest = divmod(slots, len(members))
        quotas = sorted(([least + 1] * rest + [least] * (len(members) - rest)), reverse=True)
        most_kept = sum(min(*pair) for pair in zip(sorted(kept.values(), reverse=True), quotas, strict=True))
        assert moved == slots - most_kept
        owners = _owners(assigned)


def test_every_replica_computes_the_same_assignment() -> None:
    owners = dict.fromkeys(range(10), "b")
    assert assign(16, owners, ["c", "a", "b"]) == assign(16, dict(reversed(owners.items())), ["b", "c", "a"])


def test_runs_of_slots_stay_long() -> None:
    owners: dict[int, str] = {}
    for count in range(1, 9):
        owners = _owners(assign(64, owners, [f"replica-{number}" for number in range(count)]))
    for number in range(8):
        owned = [slot for slot, owner in owners.items() if owner == f"replica-{number}"]
        assert len(list(runs_of(owned))) <= 6


@pytest.mark.parametrize("name", ["team-{}", "tenant-{:02}", "{}-prod", "{}"])
def test_numbered_texts_are_spread_over_the_slots(name: str) -> None:
    slots = {slot_of_text(name.format(number), 64) for number in range(100)}
    assert len(slots) > 40


def test_table_survives_its_annotation() -> None:
    table = Table(4).change("a", give=(), take=[0, 1, 2], gone=())
    table = table.change("b", give=(), take=[3], gone=())
    lease = {"metadata": {"name": "t", "namespace": "n", "annotations": {OWNERS: table.annotation()}}}
    assert Table.of(lease, 4) == table
    assert table.of_owner("a") == {0, 1, 2}
    moved = table.change("b", give=(), take=[0], gone=["a"])
    assert moved.owners == {0: "b", 3: "b"}
    assert moved.members == {"b"}
    assert table.without("b").owners == {0: "a", 1: "a", 2: "a"}


def test_gives_back_only_what_is_its_own() -> None:
    table = Table(2, {0: "a", 1: "b"}, frozenset("ab"))
    assert table.change("b", give={0, 1}, take=(), gone=()).owners == {0: "a"}


def _lease(text: str) -> dict[str, object]:
    return {"metadata": {"name": "t", "namespace": "n", "annotations": {OWNERS: text}}}


def test_another_number_of_slots_or_another_key_is_an_error_while_replicas_run() -> None:
    lease = _lease(Table(4, {0: "a"}, frozenset("a"), "uid").annotation())
    with pytest.raises(ConfigError, match=r"n/t has 4 slots, but this replica is configured for 8"):
        Table.of(lease, 8, "uid")
    with pytest.raises(
        ConfigError, match=r"n/t is of replicas with key='uid', but this replica has key='namespace'"
    ):
        Table.of(lease, 4, "namespace")
    without_replicas = _lease(Table(4, {}, frozenset(), "uid").annotation())
    assert Table.of(without_replicas, 8, "namespace") == Table(8, {}, frozenset(), "namespace")


def test_table_of_replicas_that_do_not_know_keys_is_read() -> None:
    assert Table.of(_lease('{"slots":4,"owners":{"a":[0]}}'), 4, "uid").owners == {0: "a"}


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"slots":"a"}', "{", '{"slots":4,"owners":{"a":["x"]}}', "[" * 100_000,
        '{"slots":4,"owners":{"a":[4]}}', '{"slots":4,"owners":{"a":[-1]}}', '{"slots":4,"owners":{"a":[0],"b":[0]}}',
        '{"slots":4,"owners":{"a":[99999999999999999999999]}}',
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_unreadable_table_is_an_error(text: str) -> None:
    with pytest.raises(DecodeError, match=r"the annotation .* of the Lease n/t cannot be read"):
        Table.of(_lease(text), 4)


def _spec(renewed: str, holder: str = "host") -> dict[str, object]:
    return {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}


def test_replica_is_gone_after_its_lease_has_not_changed_for_its_duration() -> None:
    members = Members(15.0)
    members.observe({"a": _spec("1")}, [], 100.0)
    members.observe({"a": _spec("1")}, [], 114.9)
    assert members.is_alive("a", 114.9)
    assert not members.is_alive("a", 115.0)
    members.observe({"a": _spec("2")}, [], 115.0)
    assert members.is_alive("a", 129.9)


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [(15, 15), (315_360_000, LONGEST_LEASE), (0, 10), (-5, 10), (None, 10), ("x", 10)],
)
def test_strange_duration_of_a_lease_is_bounded(duration: object, seconds: float) -> None:
    members = Members(10.0)
    members.observe({"a": {"holderIdentity": "host", "leaseDurationSeconds": duration}}, [], 100.0)
    assert members.expires_at("a") == 100.0 + seconds


def test_replica_that_gave_its_lease_back_is_gone_at_once() -> None:
    members = Members(15.0)
    members.observe({"a": _spec("1", "")}, [], 100.0)
    assert not members.is_alive("a", 100.0)


def test_replica_without_a_lease_is_waited_for_as_one_with_a_lease() -> None:
    members = Members(15.0)
    members.observe({}, ["a"], 100.0)
    members.observe({}, ["a"], 110.0)
    assert members.is_alive("a", 114.0)
    assert not members.is_alive("a", 115.0)


def test_deleted_lease_does_not_prolong_a_life() -> None:
    members = Members(15.0)
    members.observe({"a": _spec("1")}, ["a"], 100.0)
    members.observe({}, ["a"], 110.0)
    assert not members.is_alive("a", 115.0)


def test_own_former_term_is_gone_at_once() -> None:
    members = Members(15.0)
    members.observe({"a": _spec("1")}, ["a"], 100.0)
    members.record_end("a")
    assert not members.is_alive("a", 100.0)


def test_forgets_replicas_that_have_left() -> None:
    members = Members(15.0)
    for number in range(50):
        members.observe({f"a{number}": _spec("1")}, [], float(number))
    assert list(members.alive(49.0)) == ["a49"]


def test_slots_split_a_collection_evenly() -> None:
    random = Random(5)
    counts = [0] * 8
    for _ in range(4000):
        counts[slot_of(str(UUID(int=random.getrandbits(128))), 8)] += 1
    assert max(counts) < 1.2 * 500
    assert all(first < second for first, second in pairwise(first_hash(slot, 8) for slot in range(9)))
