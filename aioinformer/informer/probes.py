"""Health: the answers to liveness and readiness probes, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from .._core.forks import FORKED
from .._core.texts import valid_text
from ..errors import ApiError, message_of
from ..reflector import Phase, ReflectorOptions
from ..reflector.options import MIN_WATCH_TIMEOUT
from ..reflector.state import POLLING, has_no_watches
from .state import InformerState

STALLED_SLACK = 60.0
"""Seconds after the time at which the server should have ended a watch; then a silent watch is stalled."""


def default_stalled_after(options: ReflectorOptions) -> float:
    """Return the default ``stalled_after``: a server ends each watch before it."""
    return 2 * (options.get("min_watch_timeout") or MIN_WATCH_TIMEOUT) + STALLED_SLACK


MOST_NAMED = 5
"""Keys of undecodable objects that a warning names."""


@dataclass(frozen=True, slots=True)
class Health:
    """The answer to a probe; true if there is no problem.

    Attributes:
        ok: Whether there is no problem.
        reasons: The problems.
        warnings: Trouble that does not make the answer false, because a restart or less traffic would not help.
    """

    ok: bool
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "; ".join((*(("ok",) if self.ok else self.reasons), *map("warning: {}".format, self.warnings)))

    @classmethod
    def of(cls, reasons: Iterator[str], warnings: Iterable[str] = ()) -> Health:
        """Return a Health from the problems and warnings that were found."""
        problems = tuple(map(valid_text, reasons))
        return cls(not problems, problems, tuple(map(valid_text, warnings)))


def liveness_problems(informer: InformerState, stalled_after: float) -> Iterator[str]:
    """Yield the problems of an informer that a restart of the process may fix."""
    if informer.forked:
        yield f"{informer.name} {FORKED}"
        return
    if informer.stopped and not informer.reflectors:
        yield f"{informer.name} has stopped"
    for reflector in informer.reflectors:
        if reflector.phase is Phase.STOPPED:
            reason = reflector.last_error
            yield f"{reflector.name} has stopped" + (f": {reason!r}" if reason is not None else "")
        elif reflector.phase in (Phase.WATCHING, Phase.LISTING):
            idle = reflector.idle_seconds
            silent = reflector.phase_seconds if idle is None else min(reflector.phase_seconds, idle)
            if silent > stalled_after:
                yield f"{reflector.name} is stalled: {reflector.phase}, nothing arrived for {silent:.0f} s"


def readiness_problems(informer: InformerState, stalled_after: float) -> Iterator[str]:
    """Yield the reasons why an informer's cache may be incomplete or stale."""
    if informer.forked:
        return  # which liveness_problems says
    if not informer.synced:
        yield f"{informer.name} has not synced: {informer}"
    for reflector in informer.reflectors:
        if reflector.absent:
            continue
        idle = reflector.idle_seconds
        is_watching, error = reflector.phase is Phase.WATCHING, reflector.last_error
        if not is_watching and idle is not None and idle > stalled_after:
            yield f"{reflector.name} is out of date: {reflector}"
        elif (
            informer.synced and not is_watching and isinstance(error, ApiError) and error.is_missing_resource
        ):
            yield f"{reflector.name} is not served any more: {message_of(error)}"
        elif reflector.polling:
            refusal = reflector.watch_refusal
            # A collection without watches can only be polled.
            if refusal is not None and not has_no_watches(refusal, reflector.resource_version):
                yield f"{reflector.name} {POLLING}: {message_of(refusal)}"


def undecodable_warnings(informers: Iterable[InformerState], *, with_reasons: bool = False) -> Iterator[str]:
    """Yield a warning for each informer with undecodable objects. Its cache is current, but without their content."""
    for informer in informers:
        if informer.undecodable:
            first = ", ".join(islice(informer.undecodable_errors, MOST_NAMED))
            more = informer.undecodable - MOST_NAMED
            reasons = (
                "; ".join(islice(informer.undecodable_errors.values(), MOST_NAMED)) if with_reasons else ""
            )
            yield (
                f"{informer.name}: {informer.undecodable} undecodable objects, of which only the metadata can be used: "
                f"{first}{f' and {more} more' if more > 0 else ''}{f' ({reasons})' if reasons else ''}"
            )
