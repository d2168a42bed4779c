"""The checks of informer histories find planted bugs.

More of them, planted in the source: `make mutants`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer._core import tasks
from aioinformer.fifo.delta_fifo import DeltaState
from aioinformer.fifo.real_fifo import RealState
from aioinformer.informer import SharedIndexInformer
from aioinformer.processor import Processor, ProcessorListener
from aioinformer.reflector import Reflector
from aioinformer.reflector.watch import OpenWatch

from .informers import history_of

SEEDS = 300


async def nothing(*args: Any, **options: Any) -> None:
    """Do nothing, in place of the real function."""


def notify_all(processor: Any, notifications: Any, listeners: Any = None) -> None:
    for listener in processor.listeners:
        listener.add_all(notifications)


async def at_once(reflector: Any) -> None:
    await asyncio.sleep(0)


BUGS: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "streams stay open": (OpenWatch, "aclose", nothing, "left answers open"),
    "tasks go on": (tasks, "finish", nothing, "left tasks running"),
    "deletions are missed": (
        DeltaState,
        "_missing",
        lambda self, listed: iter(()),
        "deleted before|not within",
    ),
    "synced too early, delta": (DeltaState, "has_synced", lambda self: self.populated, "has_synced without"),
    "synced too early, real": (RealState, "has_synced", lambda self: self.populated, "has_synced without"),
    "synced before the informer": (ProcessorListener, "has_synced", lambda self: True, "before the informer"),
    "never synced": (SharedIndexInformer, "has_synced", lambda self: False, "it has not synced"),
    "resyncs for all": (Processor, "distribute_all", notify_all, "that is none"),
    "no back-off": (Reflector, "_back_off", at_once, "requests in"),
    "handlers come too late": (
        ProcessorListener,
        "add_all",
        lambda self, request: None,
        "without|does not know|was None",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_checks_find_a_planted_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, instead, message = BUGS[bug]
    if place is tasks:
        monkeypatch.setattr("aioinformer.informer.shared_informer.finish", instead)
    else:
        monkeypatch.setattr(place, name, instead)
    first = next(error for seed in range(SEEDS) if (error := history_of(seed).error) is not None)
    with pytest.raises(type(first), match=message):
        raise first
