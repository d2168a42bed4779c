"""Apply deltas as an informer does, without handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from aioinformer import Store
from aioinformer._core.coop import Budget
from aioinformer.cache import Delta
from aioinformer.controller import apply_in_steps
from aioinformer.notifications import Notification


def apply_deltas(
    store: Store[Any], deltas: Iterable[Delta], is_in_initial_list: bool
) -> Iterator[Notification]:
    """Apply deltas, and yield their notifications."""
    steps = apply_in_steps(store, deltas, is_in_initial_list)
    return (notification for notification in steps if notification is not None)


async def apply_in_slices(
    store: Store[Any],
    delta: Delta,
    notify: Callable[[list[Notification]], object],
    known: Any = None,
) -> None:
    """Apply a delta as an informer does: other tasks run between slices."""
    budget = Budget()
    for notification in apply_in_steps(store, [delta], False, known):
        if notification is not None:
            notify([notification])
        if budget.is_spent():
            await budget.pause()
