"""Compare the traces of two informers that played the same script.

Calls whose order client-go leaves to chance are sorted (``_group_of_unordered``). Known differences are removed
(``informer_differences.py``). Everything else must be equal.
"""

from __future__ import annotations

from itertools import groupby, takewhile
from typing import Any

import msgspec

from .differences import Difference
from .informer_differences import Side, find_parting, streams_a_list, without_differences
from .informer_script import Call, Point, Script, Trace

OPTIONS = ("resync", "transform", "watch_list", "indexes")

TICK = 0.001
"""Seconds by which two clocks may differ."""


def compare(script: Script, ours: Trace, theirs: Trace, *, real: bool) -> tuple[str | None, set[Difference]]:
    """Return the listing of two unequal traces, or None; and the known differences that were met.

    Args:
        script: The script that both played.
        ours: Our trace.
        theirs: client-go's.
        real: Whether the queue is a RealFIFO.
    """
    end, parted = find_parting(script, ours, theirs, real=real)
    mine, other = Side(ours, end), Side(theirs, end)
    met = set(without_differences(script, mine, other, real=real))
    if parted is not None:
        met.add(parted)
    what = _first_difference(script, mine, other, real)
    return (None if what is None else _listing(script, mine, other, what, met)), met


def _first_difference(script: Script, mine: Side, other: Side, real: bool) -> str | None:
    for a, b in zip(mine.points, other.points, strict=True):
        for field in Point.__struct_fields__:
            said, wanted = getattr(a, field), getattr(b, field)
            if said != wanted and not (field == "time" and abs(said - wanted) < TICK):
                return f"after step {a.step} {field} is {said!r}, client-go's {wanted!r}"
    if mine.errors != other.errors:
        return f"errors are {mine.errors}, client-go's {other.errors}"
    for handler in sorted(other.calls):
        ours, theirs = (_comparable(script, side, handler, real) for side in (mine, other))
        if handler in other.cut_short:
            ours, theirs = ours[: len(theirs)], theirs[: len(ours)]
        if ours != theirs:
            unlike = (n for n, (said, wanted) in enumerate(zip(ours, theirs, strict=False)) if said != wanted)
            at = next(unlike, min(len(ours), len(theirs)))
            return f"call {at} of handler {handler} is {ours[at : at + 1]}, client-go's {theirs[at : at + 1]}"
    return None


def _comparable(script: Script, side: Side, handler: int, real: bool) -> list[Any]:
    """Return a handler's calls, with those that may come in any order sorted."""
    late = _late(script, side, handler)
    streamed = _find_streamed(script, side) if real else set()
    calls = side.calls[handler]
    ordered: list[tuple[Any, ...]] = []
    runs = [
        (group, list(run))
        for group, run in groupby(
            enumerate(calls),
            lambda pair: "late" if pair[0] < late else _group_of_unordered(pair[1], real, streamed),
        )
    ]
    for number, (group, run) in enumerate(runs):
        noted = [_note(call) for _, call in run]
        if group is not None:
            noted.sort(key=lambda pair: pair[1])
            if handler in side.left_while_held and number == len(runs) - 1:  # it may be a part of the store
                noted = [] if handler in side.cut_short else [("any",)] * len(noted)
        ordered += noted
    if handler in side.shifted:
        return ordered
    return [
        (call.step, round(call.time, 2) if call.old == call.new else None, *parts)
        for call, parts in zip(calls, ordered, strict=True)
    ]


def _note(call: Call) -> tuple[Any, ...]:
    return call.kind, call.key, call.old, call.new, call.synced


def _late(script: Script, side: Side, handler: int) -> int:
    """Return how many calls are initial adds for a late handler: client-go lists a Go map."""
    for point in side.points:
        step = script.steps[point.step]
        if step.do == "add_handler" and step.handler == handler and point.applied:
            return len(point.store)
    return 0


def _find_streamed(script: Script, side: Side) -> set[str]:
    """Return the ``via`` of the objects of streamed lists."""
    return {
        event.object.via
        for number in streams_a_list(script, side.points)
        for event in takewhile(lambda event: event.closes != "true", script.steps[number].events)
        if event.object is not None
    }


def _group_of_unordered(call: Call, real: bool, streamed: set[str]) -> str | None:
    """Return the group of calls that client-go makes in any order; None if the order counts."""
    if call.kind == "tombstone":
        return "tombstones"  # Replace iterates over the map of known objects
    if call.kind == "update" and call.old == call.new:
        return "resync"  # so does Resync
    via = (call.new or call.old).rpartition("/")[2].rstrip("~")
    if via in streamed:
        return "streamed"  # client-go collects such a list in a map
    if via.startswith("e") and not real:
        return via.partition(".")[
            0
        ]  # DeltaFIFO keeps the order of each key; the order between keys is a race
    return None


def _listing(script: Script, mine: Side, other: Side, what: str, met: set[Difference]) -> str:
    options = {name: value for name in OPTIONS if (value := getattr(script, name))}
    lines = [what, f"options: {options}", f"known differences: {', '.join(sorted(met)) or 'none'}", ""]
    for number, step in enumerate(script.steps):
        lines.append(f"{number:3} {msgspec.json.encode(step).decode()}")
        for name, side in (("ours", mine), ("client-go's", other)):
            if number < len(side.points):
                point = side.points[number]
                asked = [f"{request.verb} {request.version!r}" for request in point.requests]
                lines.append(
                    f"      {name}: {point.state or 'nothing'} at {point.version!r} t={point.time:.2f}, asked {asked}, "
                    f"synced {point.synced} {point.handlers}, holds {point.store}"
                )
            lines += [
                f"        {handler}: {call.kind} {call.key} {call.old} {call.new} t={call.time:.2f}"
                for handler, calls in sorted(side.calls.items())
                for call in calls
                if call.step == number
            ]
    return "\n".join(lines)
