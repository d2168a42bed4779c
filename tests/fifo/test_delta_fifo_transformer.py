"""fifo/delta_fifo.py: which objects are transformed, and failing transformers. Corner C14."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from aioinformer import ConfigError, DeltaFIFO, RealFIFO
from aioinformer.cache import Delta
from aioinformer.errors import TransformError

from ..samples import pod
from .samples import ADDED, DELETED, REPLACED, UPDATED, drain, obj, store_of, tombstone


@pytest.mark.parametrize("make", [DeltaFIFO, partial(RealFIFO, atomic_events=True)])
def test_async_transformer_is_refused(make: Callable[..., Any]) -> None:
    async def transform(what: Any) -> Any:
        return what

    with pytest.raises(ConfigError, match=r"transformer must be a plain function, .*transform"):
        make(transformer=transform)


async def test_tombstones_and_resyncs_are_not_transformed_c14() -> None:
    """C14 TestDeltaFIFO_transformer."""
    calls: list[str] = []

    def transform(what: Any) -> Any:
        calls.append(what.key)
        return pod(what.name, version="transformed")

    fifo = DeltaFIFO(
        known_objects=store_of(obj("gone"), obj("deleted"), obj("synced")),
        emit_delta_type_replaced=True,
        transformer=transform,
    )
    await fifo.replace([obj("listed"), obj("deleted"), obj("synced")], "1")
    assert calls == ["ns/listed", "ns/deleted", "ns/synced"]
    popped = await drain(fifo)
    assert popped[0] == [Delta(REPLACED, obj("listed", "transformed"))]
    assert popped[3] == [Delta(DELETED, tombstone("gone", obj("gone")))]
    await fifo.add(obj("a"))
    await fifo.update(obj("a"))
    await fifo.delete(obj("a"))
    await fifo.delete(tombstone("gone", obj("gone")))
    assert calls[3:] == ["ns/a"] * 3
    assert [delta.object.resource_version for delta in (await drain(fifo))[0]] == ["transformed"] * 3
    await fifo.resync()
    assert len(calls) == 6


@pytest.mark.parametrize("wrong", [ValueError("no"), CancelledError("another task"), None], ids=repr)
async def test_failing_transformer_keeps_deletions_and_other_objects(wrong: BaseException | None) -> None:
    def transform(what: Any) -> Any:
        if what.name != "bad":
            return what
        if wrong is not None:
            raise wrong
        return None

    fifo = DeltaFIFO(known_objects=store_of(obj("bad")), transformer=transform)
    with pytest.raises(TransformError, match="transforming ns/bad at 2 failed") as caught:
        await fifo.apply(
            [Delta(UPDATED, obj("bad", 2)), Delta(ADDED, obj("a")), Delta(DELETED, obj("bad", 3))]
        )
    assert len(caught.value.all()) == 2
    assert await drain(fifo) == [[Delta(ADDED, obj("a"))], [Delta(DELETED, obj("bad", 3))]]


async def test_failing_transformer_in_replace_deletes_nothing() -> None:
    def transform(what: Any) -> Any:
        if what.name == "bad":
            raise ValueError("no")
        return what

    fifo = DeltaFIFO(known_objects=store_of(obj("bad"), obj("gone")), transformer=transform)
    with pytest.raises(TransformError):
        await fifo.replace([obj("a"), obj("bad", 2), obj("b")], "2")
    assert fifo.list_keys() == ["ns/a", "ns/b", "ns/gone"]
    await drain(fifo)
    assert fifo.has_synced()


@pytest.mark.parametrize("queue", [DeltaFIFO, RealFIFO])
async def test_queue_accepts_a_transformed_object_with_another_key(queue: type[DeltaFIFO | RealFIFO]) -> None:
    """As upstream. An informer drops such an object."""
    fifo = queue(
        known_objects=store_of(), transformer=lambda what: {"metadata": {"name": f"another {what.name}"}}
    )
    await fifo.add(obj("a"))
    (delta,) = await fifo.pop(lambda deltas, initial: None)
    assert delta.object["metadata"]["name"] == "another a"
