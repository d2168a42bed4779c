"""Known differences between our informer's traces and client-go's.

Each difference has code that recognises it and nothing else. Most can be removed from the traces
(``without_differences``). After some, the two informers send different requests, and the rest cannot be compared
(``find_parting``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import dropwhile
from typing import NamedTuple

import msgspec

from .differences import Difference
from .informer_script import Call, Point, Script, Trace


class Side:
    """One side's trace up to a step.

    Attributes:
        left_while_held: Handlers that were held when they were removed or the trace ends: some calls never started.
        shifted: Handlers with removed calls, so that calls after a hold started in another step.
        cut_short: Handlers that are both: one side may have made more calls.
    """

    def __init__(self, trace: Trace, end: int) -> None:
        whole = end == len(trace.points)
        self.points = trace.points[:end]
        self.calls = {
            handler: [call for call in calls if whole or call.step < end]
            for handler, calls in trace.calls.items()
        }
        self.errors = [(error.step, error.text) for error in trace.errors if error.step < end]
        self.left_while_held: set[int] = set()
        self.shifted: set[int] = set()
        self.cut_short: set[int] = set()


def streams_a_list(script: Script, points: list[Point]) -> set[int]:
    """Return the steps that answer a WatchList, up to its closing bookmark."""
    streaming = False
    steps: set[int] = set()
    for point in points:
        step = script.steps[point.step]
        if streaming and point.applied and step.do in ("open", "events"):
            steps.add(point.step)
            streaming = not any(event.closes == "true" for event in step.events)
        if point.requests:
            streaming = point.requests[-1].initial
    return steps


# -- where they diverge ---------------------------------------------------------------------------------------


def find_parting(script: Script, ours: Trace, theirs: Trace, *, real: bool) -> tuple[int, Difference | None]:
    """Return the first step of a known divergence, after which nothing can be compared."""
    streaming = streams_a_list(script, theirs.points)
    for number, (mine, other) in enumerate(zip(ours.points, theirs.points, strict=True)):
        at = _Step(script, number, mine, other, streaming, real)
        for difference, recognised in PARTINGS:
            if recognised(at):
                return number, difference
    return len(script.steps), None


class _Step(NamedTuple):
    """A step of a script, and both informers' state after it."""

    script: Script
    number: int
    mine: Point
    other: Point
    streaming: set[int]
    real: bool


def _the_network_keeps_it_from_opening(at: _Step) -> bool:
    """We open the watch again; client-go lists."""
    failure = at.script.steps[at.number].error
    relisted = any(request.verb == "list" or request.initial for request in at.other.requests)
    opening = at.number not in at.streaming and at.mine.state == "watch"
    return failure is not None and failure.kind == "reset" and opening and relisted


def _is_listed_again_in_pages(at: _Step) -> bool:
    """Our list of the most recent state may come in pages; client-go's may not. Or ours came in pages after a list at
    version "0" was refused, from which client-go concludes that the server has no cache."""
    step = at.script.steps[at.number]
    if step.do == "list" and step.token:
        return at.mine.applied and not at.other.applied
    limits = [
        (ours.limit, theirs.limit) for ours, theirs in zip(at.mine.requests, at.other.requests, strict=False)
    ]
    return limits == [(0, 500)] and any(earlier.token for earlier in at.script.steps[: at.number])


def _listed_twice(at: _Step) -> bool:
    step = at.script.steps[at.number]
    return (
        at.real
        and step.do == "list"
        and at.mine.applied
        and any(listed.via.endswith(".1") for listed in step.items)
    )


def _the_streamed_list_breaks_off(at: _Step) -> bool:
    """After a watch that ends at once client-go lists; we list after the third."""
    step = at.script.steps[at.number]
    broken = bool(step.end) or (step.error is not None and step.error.kind in ("refused", "reset"))
    return at.number in at.streaming and broken and {at.mine.state, at.other.state} == {"watch", "list"}


def _the_streamed_list_is_refused(at: _Step) -> bool:
    """client-go lists; we send one request for each try, mostly for the stream."""
    step = at.script.steps[at.number]
    failures = [step.error, *(event.status for event in step.events)]
    refused = any(failure is not None and failure.code in (401, 403, 404) for failure in failures)
    return refused and (at.mine.state, at.other.state) == ("watch", "list")


def _the_streamed_list_is_unreadable(at: _Step) -> bool:
    events = at.script.steps[at.number].events
    return at.number in at.streaming and any(
        event.object is None and event.status is None for event in events
    )


def _it_ends_behind_its_list(at: _Step) -> bool:
    """We continue to watch; client-go lists."""
    requests = [request.initial for request in (*at.mine.requests, *at.other.requests)]
    if not at.script.steps[at.number].end or requests != [False, True]:
        return False
    listed = max((step for step in at.streaming if step <= at.number), default=at.number)
    answered, *since = at.script.steps[listed : at.number + 1]
    closing = list(dropwhile(lambda event: event.closes != "true", answered.events))
    if not closing or any(step.do == "open" for step in since):
        return False
    behind = [*closing[1:], *(event for step in since for event in step.events)]
    return not any(event.object is not None for event in behind)


PARTINGS: tuple[tuple[Difference, Callable[[_Step], bool]], ...] = (
    (Difference.NETWORK, _the_network_keeps_it_from_opening),
    (Difference.PAGES, _is_listed_again_in_pages),
    (Difference.LISTED_TWICE, _listed_twice),
    (Difference.BROKEN_STREAM, _the_streamed_list_breaks_off),
    (Difference.REFUSED_STREAM, _the_streamed_list_is_refused),
    (Difference.UNREADABLE, _the_streamed_list_is_unreadable),
    (Difference.STREAM_END, _it_ends_behind_its_list),
)


# -- what can be removed ---------------------------------------------------------------------------------


def without_differences(script: Script, mine: Side, other: Side, *, real: bool) -> Iterator[Difference]:
    """Remove known differences from both sides; return the differences that were met."""
    _record_holds(script, mine, other)
    if script.transform:
        yield from _transformed_once(script, mine, other)
    yield from _unchanged_is_no_news(script, mine, other)
    yield from _errors_of_streams(script, mine)
    yield from _pages(mine, other)
    if real:
        yield from _synced_early(other)
    else:
        yield from _removed_before_it_had_synced(script, other)
    mine.shifted = other.shifted = mine.shifted | other.shifted
    mine.cut_short = other.cut_short = other.shifted & other.left_while_held


def is_same_version(call: Call) -> bool:
    """Whether a call has an object of the version that the handler knows."""
    return call.kind == "update" and call.old.split("/")[0] == call.new.split("/")[0]


def _record_holds(script: Script, mine: Side, other: Side) -> None:
    held: set[int] = set()
    for step in script.steps[: len(other.points)]:
        match step.do:
            case "hold":
                held.add(step.handler)
            case "release":
                held.discard(step.handler)
            case "stop":
                held.clear()
            case "remove_handler" if step.handler in held:
                other.left_while_held.add(step.handler)
    if len(other.points) < len(script.steps):
        other.left_while_held |= held
    mine.left_while_held = other.left_while_held


def _unchanged_is_no_news(script: Script, mine: Side, other: Side) -> Iterator[Difference]:
    """Without resyncs client-go calls all handlers for objects that did not change, and we call none. With resyncs it
    does so until its first check of due resyncs, so before the handler's first resync. Each list restarts its resync
    periods, so resyncs are compared up to the second list only."""
    end = _end_of_equal_resyncs(script, other)
    for handler, calls in other.calls.items():
        until = _held_since(script, handler, end)
        ours = {(call.key, call.old, call.new) for call in mine.calls.get(handler, ())}
        resynced = next((n for n, call in enumerate(calls) if call.old == call.new), len(calls))
        kept = []
        for number, call in enumerate(calls):
            if not is_same_version(call):
                kept.append(call)
            elif script.resync and call.step >= until:
                yield Difference.SHORTEST_PERIOD if script.resync < 1.0 else Difference.RESYNC_TIMER
            elif script.resync and (number >= resynced or (call.key, call.old, call.new) in ours):
                kept.append(call)
            else:
                yield Difference.UNCHANGED
        _keep(other, handler, kept)
    if script.resync:
        for handler, calls in mine.calls.items():
            until = _held_since(script, handler, end)
            _keep(mine, handler, [call for call in calls if not is_same_version(call) or call.step < until])


def _held_since(script: Script, handler: int, end: int) -> int:
    """Return the step at which a handler that is held at a step was stopped; or that step."""
    since = end
    for number, step in enumerate(script.steps[:end]):
        if step.do == "stop" or (step.do == "release" and step.handler == handler):
            since = end
        elif step.do == "hold" and step.handler == handler:
            since = min(since, number)
    return since


def _keep(side: Side, handler: int, calls: list[Call]) -> None:
    if len(calls) < len(side.calls[handler]):
        side.shifted.add(handler)
    side.calls[handler] = calls


def _end_of_equal_resyncs(script: Script, side: Side) -> int:
    """Return the step from which the two count resyncs from different times."""
    if script.resync < 1.0:
        return 0
    started: float | None = None
    listed = False
    for point in side.points:
        step = script.steps[point.step]
        if point.applied and step.do == "start":
            started = point.time
        if listed and any(asked.verb == "list" or asked.initial for asked in point.requests):
            return point.step
        whole = step.do == "list" and step.error is None and not step.token
        if point.applied and not listed and (whole or any(event.closes == "true" for event in step.events)):
            if started != point.time:
                return point.step
            listed = True
    return len(script.steps) + 1


def _errors_of_streams(script: Script, mine: Side) -> Iterator[Difference]:
    """We also report errors after which a watch is opened again, or which end a streamed list."""
    streaming = streams_a_list(script, mine.points)

    def is_theirs_too(number: int) -> bool:
        step = script.steps[number]
        if step.do == "open" and step.error is not None and number not in streaming:
            return step.error.kind == "status" and step.error.code != 429
        return step.do == "list"

    kept = [error for error in mine.errors if is_theirs_too(error[0])]
    if len(kept) < len(mine.errors):
        yield Difference.STREAM_ERRORS
    mine.errors = kept


def _pages(mine: Side, other: Side) -> Iterator[Difference]:
    """After a refused version we list in pages; client-go lists in one response."""
    for number, (ours, theirs) in enumerate(zip(mine.points, other.points, strict=True)):
        limits = [request.limit for request in (*ours.requests, *theirs.requests)]
        if limits == [500, 0] and ours.requests[0].verb == "list" and not ours.requests[0].version:
            asked = [msgspec.structs.replace(request, limit=500) for request in theirs.requests]
            other.points[number] = msgspec.structs.replace(theirs, requests=asked)
            yield Difference.PAGES


def _removed_before_it_had_synced(script: Script, other: Side) -> Iterator[Difference]:
    """In client-go 0.30 a handler has synced once the informer has."""
    left: set[int] = set()
    for number, point in enumerate(other.points):
        step = script.steps[point.step]
        if step.do == "remove_handler" and point.applied and not point.synced:
            left.add(step.handler)
        if any(point.handlers[handler] for handler in left):
            handlers = {handler: synced and handler not in left for handler, synced in point.handlers.items()}
            other.points[number] = msgspec.structs.replace(point, handlers=handlers)
            yield Difference.REMOVED


def _synced_early(other: Side) -> Iterator[Difference]:
    """In client-go 0.36 a handler may have synced for good when it returns while the informer syncs. By the end of that
    step it has processed the list: a held handler has not returned."""
    for handler, calls in other.calls.items():
        if any(call.synced for call in calls):
            other.calls[handler] = [msgspec.structs.replace(call, synced=False) for call in calls]
            yield Difference.SAID_EARLY


def _transformed_once(script: Script, mine: Side, other: Side) -> Iterator[Difference]:
    """client-go 0.30 transforms again at each resync; 0.36 transforms the objects of a streamed list again."""
    if not script.resync and not script.watch_list:
        return
    for side in (mine, other):
        before = side.points, side.calls
        side.points = [
            msgspec.structs.replace(point, store={key: _once(text) for key, text in point.store.items()})
            for point in side.points
        ]
        side.calls = {
            handler: [
                msgspec.structs.replace(call, old=_once(call.old), new=_once(call.new)) for call in calls
            ]
            for handler, calls in side.calls.items()
        }
        if side is other and before != (side.points, side.calls):
            yield Difference.TRANSFORMED_ONCE


def _once(text: str) -> str:
    return re.sub("~+$", "~", text)
