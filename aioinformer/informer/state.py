"""InformerState: a snapshot of an informer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from .._core.forks import FORKED
from ..errors import message_of
from ..metrics import Sample, labelled
from ..processor import ListenerState
from ..reflector import Phase, ReflectorState

NOT_STARTED = "not started: enter it (async with), or await its run()"
STOPPED_AT_ONCE = "stopped before it had begun to read"

MOST_ERRORS = 20
"""Errors of undecodable objects that a state has."""

WORST_FIRST = (Phase.STOPPED, Phase.BACKING_OFF, Phase.NEW, Phase.LISTING, Phase.WATCHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerState:
    """A snapshot of an informer.

    Attributes:
        name: The informer's name.
        synced: Whether the whole first list was processed.
        objects: Objects in the cache, including undecodable ones.
        queue_depth: Items between reading and the store.
        failed: Items whose processing has raised.
        reflectors: The states of its reflectors: one, or one for each namespace.
        handlers: The states of its handlers.
        leaving: Removed handlers whose last call has not ended.
        stopped: Whether the informer has ended, for this process.
        undecodable: Objects in the cache whose state does not fit the object type. Only their metadata can be used.
        undecodable_errors: The keys of the first twenty of them, with the errors.
        forked: Whether it was started before this process was forked, and runs in the parent process only.
    """

    name: str
    synced: bool
    objects: int
    queue_depth: int
    failed: int
    reflectors: tuple[ReflectorState, ...]
    handlers: tuple[ListenerState, ...]
    leaving: int = 0
    stopped: bool = False
    undecodable: int = 0
    undecodable_errors: Mapping[str, str] = field(default_factory=dict)
    forked: bool = False

    @property
    def worst(self) -> ReflectorState | None:
        """The reflector that is furthest from watching; None before the start."""
        return min(self.reflectors, key=lambda reflector: WORST_FIRST.index(reflector.phase), default=None)

    @property
    def phase(self) -> Phase:
        """The phase of ``worst``; STOPPED after the end."""
        if self.stopped:  # though its reflectors may never have begun
            return Phase.STOPPED
        return Phase.NEW if self.worst is None else self.worst.phase

    @property
    def polling(self) -> bool:
        """Whether a reflector cannot watch, and lists repeatedly instead."""
        return any(reflector.polling for reflector in self.reflectors)

    @property
    def rejected(self) -> int:
        """Objects, events and lines that its reflectors dropped: the cache may be incomplete or stale.

        Those that do not fit the object type are not dropped: see ``undecodable``.
        """
        return sum(reflector.rejected for reflector in self.reflectors)

    @property
    def last_error(self) -> Exception | None:
        """The last error of ``worst``."""
        return None if self.worst is None else self.worst.last_error

    @property
    def idle_seconds(self) -> float | None:
        """Seconds since the last byte of a list or watch, the maximum of all reflectors; None if one never had any."""
        idle = [reflector.idle_seconds for reflector in self.reflectors]
        return (
            None if None in idle else max((seconds for seconds in idle if seconds is not None), default=None)
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics."""
        labels = {"informer": self.name}
        yield Sample("aioinformer_synced", "gauge", labels, self.synced)
        yield Sample("aioinformer_objects", "gauge", labels, self.objects)
        yield Sample("aioinformer_undecodable_objects", "gauge", labels, self.undecodable)
        yield Sample("aioinformer_queue_depth", "gauge", labels, self.queue_depth)
        yield Sample("aioinformer_failed_total", "counter", labels, self.failed)
        yield Sample("aioinformer_handlers_leaving", "gauge", labels, self.leaving)
        for reflector in self.reflectors:
            yield from labelled(reflector.samples(), informer=self.name)
        for handler in self.handlers:
            yield from labelled(handler.samples(), informer=self.name)

    def summary(self) -> dict[str, Any]:
        """Return what the debug page and ``aioinformer top`` say of it."""
        reflectors = self.reflectors
        return {
            "name": self.name,
            "synced": self.synced,
            "objects": self.objects,
            "phase": str(self.phase),
            "polling": self.polling,
            "queue_depth": self.queue_depth,
            "idle_seconds": self.idle_seconds,
            "events": sum(reflector.events for reflector in reflectors),
            "lists": sum(reflector.lists for reflector in reflectors),
            "watches": sum(reflector.watches for reflector in reflectors),
            "rejected": self.rejected,
            "undecodable": self.undecodable,
            "undecodable_errors": self.undecodable_errors,
            "last_error": None if self.last_error is None else message_of(self.last_error),
            "handlers": self.handlers,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as plain dicts and strings, for JSON; errors become their texts."""
        summary = {"phase": self.phase, "last_error": self.last_error, "idle_seconds": self.idle_seconds}
        state: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        state.update(msgspec.to_builtins(summary, enc_hook=str))
        return state

    def __str__(self) -> str:
        synced = "synced" if self.synced else "not synced"
        doing = FORKED if self.forked else self.worst or (STOPPED_AT_ONCE if self.stopped else NOT_STARTED)
        dropped = f", {self.rejected} dropped" if self.rejected and len(self.reflectors) > 1 else ""
        unfit = f", {self.undecodable} undecodable" if self.undecodable else ""
        return f"{synced}, {self.objects} objects{unfit}{dropped}, {self.queue_depth} queued; {doing}"


def apart(name: str, taken: Collection[str]) -> str:
    """Return a free name: this one, or with a number, such as ``"pods (2)"``."""
    if name not in taken:
        return name
    return next(numbered for n in count(2) if (numbered := f"{name} ({n})") not in taken)
