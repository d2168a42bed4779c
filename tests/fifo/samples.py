"""Sample objects, and short ways to make and use queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioinformer import DeletedFinalStateUnknown, DeltaFIFO, RealFIFO, Store, meta_namespace_key_func
from aioinformer.cache import BookmarkInfo, Delta, DeltaType, ExplicitKey, ReplacedAllInfo, SyncAllInfo

from ..samples import pod

ADDED, UPDATED, DELETED, REPLACED, SYNC, REPLACED_ALL, SYNC_ALL, BOOKMARK = DeltaType

Deltas = list[Delta]


def obj(name: str, version: int | str = 1) -> Any:
    return pod(name, version=str(version))


def store_of(*objects: Any) -> Store[Any]:
    store: Store[Any] = Store(meta_namespace_key_func)
    store.replace(objects)
    return store


def tombstone(name: str, last: Any) -> DeletedFinalStateUnknown[Any]:
    return DeletedFinalStateUnknown(f"ns/{name}", last)


async def drain(fifo: DeltaFIFO | RealFIFO) -> list[Deltas]:
    return [await fifo.pop(lambda deltas, initial: None) for _ in range(len(fifo))]


async def queue_with(*objects: Any, known_objects: Any = None) -> DeltaFIFO:
    fifo = DeltaFIFO(known_objects=known_objects, emit_delta_type_replaced=True)
    await fifo.replace(list(objects), "1")
    return fifo


def raise_error(error: BaseException) -> Callable[[Deltas, bool], None]:
    def process(deltas: Deltas, initial: bool) -> None:
        raise error

    return process


def real(known_objects: Store[Any] | None = None, **options: Any) -> RealFIFO:
    """Return a RealFIFO with these known objects, or with atomic events if there are none."""
    return RealFIFO(known_objects=known_objects, atomic_events=known_objects is None, **options)


def by_default(**options: Any) -> RealFIFO:
    """Return a RealFIFO with the options that informers use."""
    return real(emit_delta_type_bookmark=True, unlock_while_processing=True, **options)


async def make_filled(*names: str, **options: Any) -> RealFIFO:
    """Return such a RealFIFO with an addition of each object."""
    fifo = by_default(**options)
    await fifo.apply([Delta(ADDED, obj(name)) for name in names])
    return fifo


def describe(deltas: Deltas) -> list[str]:
    """Return a short text for each delta, such as ``"Added a 1"``."""
    return [f"{delta.type} {_summary(delta.object)}" for delta in deltas]


def _summary(what: Any) -> str:
    if isinstance(what, DeletedFinalStateUnknown):
        return f"tombstone {_summary(what.obj) if what.obj is not None else what.key}"
    if isinstance(what, ReplacedAllInfo):
        return f"{what.resource_version} [{', '.join(map(_summary, what.objects))}]"
    if isinstance(what, BookmarkInfo):
        return what.resource_version
    if isinstance(what, ExplicitKey):
        return f"key {what}"
    return "everything" if isinstance(what, SyncAllInfo) else f"{what.name} {what.resource_version}"
