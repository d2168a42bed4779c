"""The rows of ``aioinformer top``, from two snapshots of ``/debug.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import AioInformerError
from ...operator.debug_page import Snapshot
from .slots import slots
from .table import Table, show_seconds

CONTROLLER_COLUMNS = (
    *("controller", "workers", "queued", "delayed", "running", "done/s"),
    *("wait p99", "time p99", "failing", "longest"),
)
TAIL = 0.99
"""The share of durations that the columns p99 are about."""


class Reading(NamedTuple):
    """A snapshot.

    Attributes:
        at: Loop time when it was read.
        data: The snapshot.
    """

    at: float
    data: Snapshot


def show(before: Reading | None, now: Reading) -> tuple[str, list[Table]]:
    """Return what the screen says: a headline and all tables.

    Args:
        before: The reading before, for rates; None for the first.
        now: The newest reading.

    Raises:
        AioInformerError: The snapshot lacks something.
    """
    seconds = 0.0 if before is None else now.at - before.at
    old: Snapshot = {} if before is None else before.data
    try:
        return headline(now.data), [
            informers(old, now.data, seconds),
            handlers(old, now.data, seconds),
            controllers(old, now.data, seconds),
            slots(now.data),
            failing(now.data),
        ]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise AioInformerError(
            f"the snapshot is of another version of aioinformer than this command: {error!r}"
        ) from error


def headline(data: Snapshot) -> str:
    """Return the name, the server, and whether it is ready."""
    parts = [str(data.get("name", "")), str(data.get("server", ""))]
    if "uptime_seconds" in data:
        parts.append(f"up {show_seconds(data['uptime_seconds'])}")
    if leader := data.get("leader"):
        parts.append("leading" if leader["leading"] else f"standing by for {leader['leader'] or 'a leader'}")
    parts.append("ready" if not data.get("ready") else f"not ready: {'; '.join(data['ready'])}")
    if data.get("healthy"):
        parts.append(f"not healthy: {'; '.join(data['healthy'])}")
    parts += (data.get("problems") or {}).values()
    if (stages := data.get("stages")) and (total := stages["seconds"].get("total")):
        middle, tail = total
        parts.append(f"event to handler p50 {show_seconds(middle)}, p99 {show_seconds(tail)}")
    return "  ".join(filter(None, parts))


def informers(old: Snapshot, new: Snapshot, seconds: float) -> Table:
    """Return the informers: how many events they read, and what waits."""
    before = _by_name(old, "informers")
    return Table(
        "Informers",
        ("informer", "synced", "objects", "events/s", "queued", "idle", "phase", "last error"),
        [
            (
                informer["name"],
                "yes" if informer["synced"] else "no",
                f"{informer['objects']:,}",
                _rate(before.get(informer["name"]), informer, "events", seconds),
                f"{informer['queue_depth']:,}",
                show_seconds(informer["idle_seconds"]),
                "polling" if informer["polling"] else informer["phase"],
                informer["last_error"] or "",
            )
            for informer in new["informers"]
        ],
    )


def handlers(old: Snapshot, new: Snapshot, seconds: float) -> Table:
    """Return the handlers, the one with the longest running call first."""
    before = dict(_handlers(old))
    known = sorted(_handlers(new), key=lambda item: -item[1]["handling_seconds"])
    return Table(
        "Handlers, the slowest first",
        ("informer", "handler", "waiting", "calls/s", "failed", "at", "for"),
        [
            (
                *key,
                f"{handler['depth']:,}",
                _rate(before.get(key), handler, "delivered", seconds),
                f"{handler['failed']:,}",
                handler["handling"] or "",
                show_seconds(handler["handling_seconds"]) if handler["handling"] else "",
            )
            for key, handler in known
        ],
    )


def controllers(old: Snapshot, new: Snapshot, seconds: float) -> Table:
    """Return the controllers: what waits, runs and fails."""
    before = _by_name(old, "controllers")
    return Table(
        "Controllers",
        CONTROLLER_COLUMNS,
        [
            (
                controller["name"],
                str(controller["workers"]),
                f"{controller['queue']['depth']:,}",
                f"{controller['queue']['delayed']:,}",
                f"{controller['running_total']:,}",
                _rate(before.get(controller["name"]), controller, "reconciles", seconds),
                _tail(controller["durations"].get("queue_seconds", ())),
                _tail(controller["durations"].get("reconcile_seconds", ())),
                f"{controller['failing']:,}",
                _longest(controller["running"]),
            )
            for controller in new.get("controllers", ())
        ],
    )


def failing(new: Snapshot) -> Table:
    """Return the keys that fail, the most often tried first."""
    listed = new.get("failing") or {"keys": (), "total": 0}
    keys = sorted(listed["keys"], key=lambda key: -key["tries"])
    return Table(
        f"Failing keys: {listed['total']:,}",
        ("controller", "key", "tries", "last", "error"),
        [
            (key["controller"], key["key"], str(key["tries"]), show_seconds(key["seconds"]), key["error"])
            for key in keys
        ],
    )


def _handlers(data: Snapshot) -> Iterable[tuple[tuple[str, str], Mapping[str, Any]]]:
    for informer in data.get("informers", ()):
        for handler in informer["handlers"]:
            yield (informer["name"], handler["name"]), handler


def _by_name(data: Snapshot, what: str) -> dict[str, Mapping[str, Any]]:
    return {part["name"]: part for part in data.get(what, ())}


def _rate(before: Mapping[str, Any] | None, now: Mapping[str, Any], count: str, seconds: float) -> str:
    """Return how much a count has grown each second; nothing if it is not known, as after a restart."""
    if before is None or seconds <= 0 or now[count] < before[count]:
        return ""
    return f"{(now[count] - before[count]) / seconds:,.1f}"


def _tail(buckets: Sequence[Sequence[Any]]) -> str:
    """Return the bound that TAIL of the durations are below, since the start."""
    total = buckets[-1][1] if buckets else 0
    for bound, count in buckets:
        if total and count >= TAIL * total:
            return f"≤ {show_seconds(float(bound))}" if bound != "+Inf" else "over a minute"
    return ""


def _longest(running: Sequence[Mapping[str, Any]]) -> str:
    if not running:
        return ""
    run = max(running, key=lambda run: run["seconds"])
    return f"{run['key']} for {show_seconds(run['seconds'])}{', stuck' if run['stuck'] else ''}"
