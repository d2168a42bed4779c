"""fifo/delta_fifo.py: all deltas of a key are one item, and keys keep their order. Corner C11."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import DeltaFIFO
from aioinformer.cache import Delta, ExplicitKey
from aioinformer.errors import KeyFuncError

from .samples import ADDED, DELETED, UPDATED, Deltas, drain, obj, tombstone


async def test_deltas_of_a_key_are_one_item() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a", 1))
    await fifo.add(obj("b", 1))
    await fifo.update(obj("a", 2))
    await fifo.delete(obj("a", 3))
    assert len(fifo) == 2
    assert await drain(fifo) == [
        [Delta(ADDED, obj("a", 1)), Delta(UPDATED, obj("a", 2)), Delta(DELETED, obj("a", 3))],
        [Delta(ADDED, obj("b", 1))],
    ]


async def test_popped_key_goes_to_the_back_and_queued_key_keeps_its_place_c11() -> None:
    """C11 TestDeltaFIFO_detectLineJumpers."""
    fifo = DeltaFIFO()
    for name in ("a", "b", "c"):
        await fifo.add(obj(name))
    (popped,) = [await fifo.pop(lambda deltas, initial: None)]
    assert popped[0].object == obj("a")
    await fifo.update(obj("a", 2))
    await fifo.update(obj("b", 2))
    assert fifo.list_keys() == ["ns/b", "ns/c", "ns/a"]


async def test_process_gets_the_deltas_that_pop_returns() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    given_to: list[tuple[Deltas, bool]] = []
    popped = await fifo.pop(lambda deltas, initial: given_to.append((deltas, initial)))
    assert given_to == [(popped, False)]


async def test_read_verbs_return_copies() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    deltas = fifo.get_by_key("ns/a")
    assert deltas is not None
    assert deltas == [Delta(ADDED, obj("a"))]
    deltas.clear()
    fifo.list_keys().clear()
    assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a"))]
    assert fifo.get_by_key("ns/b") is None


async def test_high_water_is_the_maximum_depth() -> None:
    fifo = DeltaFIFO()
    assert fifo.high_water == 0
    for name in "abc":
        await fifo.add(obj(name))
    await drain(fifo)
    assert (len(fifo), fifo.high_water) == (0, 3)


def test_key_of_each_kind_of_item() -> None:
    fifo = DeltaFIFO()
    for what in (
        obj("a"),
        tombstone("a", None),
        ExplicitKey("ns/a"),
        [Delta(ADDED, obj("b")), Delta(DELETED, tombstone("a", None))],
    ):
        assert fifo.key_of(what) == "ns/a"
    keyless: list[Any] = [[], None, {}, [Delta(ADDED, {})]]
    for wrong in keyless:
        with pytest.raises(KeyFuncError):
            fifo.key_of(wrong)


async def test_adding_to_a_key_with_many_deltas_does_not_copy_them() -> None:
    fifo = DeltaFIFO()
    await fifo.apply([Delta(UPDATED, obj("a"))] * 99)
    held = fifo._deltas.items["ns/a"]
    await fifo.apply([Delta(UPDATED, obj("a"))] * 100_000)
    assert fifo._deltas.items["ns/a"] is held
    assert len(await fifo.pop(lambda deltas, initial: None)) == 100_099


@pytest.mark.parametrize("already", [1, 15, 16, 100])
async def test_adjacent_deletions_are_merged_after_any_number_of_deltas(already: int) -> None:
    """C2."""
    fifo = DeltaFIFO()
    await fifo.apply([Delta(UPDATED, obj("a"))] * already)
    await fifo.apply(
        [Delta(DELETED, tombstone("a", None)), Delta(DELETED, obj("a", 7)), Delta(DELETED, obj("a", 8))]
    )
    deltas = fifo.get_by_key("ns/a")
    assert deltas is not None
    assert [delta.type for delta in deltas] == [UPDATED] * already + [DELETED]
    assert deltas[-1].object == obj("a", 7)


async def test_abandoned_replace_adds_nothing_to_many_deltas() -> None:
    fifo = DeltaFIFO()
    await fifo.apply([Delta(UPDATED, obj("a"))] * 99)
    state = fifo._deltas
    next(state.replace([obj("a"), obj("b")], "9"))
    assert len(fifo.get_by_key("ns/a") or ()) == 99


async def test_failing_key_function_does_not_stop_others() -> None:
    def key_func(what: Any) -> Any:
        if what.name == "bad":
            raise ZeroDivisionError
        return None if what.name == "keyless" else what.key

    fifo = DeltaFIFO(key_func)
    with pytest.raises(KeyFuncError) as caught:
        await fifo.apply([Delta(ADDED, obj(name)) for name in ("bad", "a", "keyless", "b")])
    assert len(caught.value.all()) == 2
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert fifo.list_keys() == ["ns/a", "ns/b"]


async def test_unusual_keys_are_kept() -> None:
    fifo = DeltaFIFO(lambda what: what["id"])
    keys = ["", "a/b/c", "\ud800", "é", "e\u0301", "x" * 100_000]
    await fifo.apply([Delta(ADDED, {"id": key}) for key in keys])
    assert fifo.list_keys() == keys
    await fifo.replace([], "1")
    assert [deltas[-1].object.key for deltas in await drain(fifo)] == keys
