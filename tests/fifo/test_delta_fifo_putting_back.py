"""fifo/delta_fifo.py: items whose processing failed."""

from __future__ import annotations

import pytest

from aioinformer import DeltaFIFO
from aioinformer.cache import Delta
from aioinformer.errors import KeyFuncError, RequeueError

from .samples import ADDED, DELETED, UPDATED, Deltas, obj, raise_error, tombstone


async def test_requeue_puts_the_item_back_unchanged() -> None:
    fifo = DeltaFIFO()
    for name in ("a", "b"):
        await fifo.add(obj(name))

    def process(deltas: Deltas, initial: bool) -> None:
        deltas.clear()  # its own copy
        raise RequeueError

    popped = await fifo.pop(process)
    assert popped == [Delta(ADDED, obj("a"))]
    assert fifo.list_keys() == ["ns/b", "ns/a"]
    popped.clear()
    await fifo.update(obj("a", 2))
    assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a")), Delta(UPDATED, obj("a", 2))]


async def test_requeue_raises_its_cause() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    with pytest.raises(KeyError) as caught:
        await fifo.pop(raise_error(RequeueError(KeyError("why"))))
    assert isinstance(caught.value.__cause__, RequeueError)
    assert len(fifo) == 1


async def test_other_errors_are_raised_and_drop_the_item() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    with pytest.raises(ValueError):
        await fifo.pop(raise_error(ValueError()))
    assert len(fifo) == 0


async def test_add_if_not_present() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a", 1))
    deltas = await fifo.pop(lambda deltas, initial: None)
    await fifo.add_if_not_present(deltas)
    deltas.clear()  # the queue has its own copy
    assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a", 1))]
    await fifo.add_if_not_present([Delta(UPDATED, obj("a", 0))])
    assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a", 1))]
    await fifo.add_if_not_present((Delta(DELETED, tombstone("b", None)),))  # any sequence of them
    assert fifo.list_keys() == ["ns/a", "ns/b"]
    for wrong in ([], [Delta(ADDED, {})]):
        with pytest.raises(KeyFuncError):
            await fifo.add_if_not_present(wrong)
