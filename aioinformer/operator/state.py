"""Snapshots of a controller and a manager, for people, JSON and Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Any

import msgspec

from ..errors import SyncTimeout, message_of
from ..informer import InformerState
from ..metrics import Histogram, Sample
from ..reflector.state import POLLING
from ..sharding import ShardingState
from ..workqueue import WorkQueueState
from .runs import RunState
from .triggers import TriggerState
from .webhook_counts import WebhookState

SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
"""Bounds of the histogram of reconcile durations, as in controller-runtime."""


@dataclass(slots=True)
class Counts:
    """Results of reconciles.

    Attributes:
        success: Reconciles that succeeded without a requeue.
        requeue: Reconciles that asked for a requeue with back-off.
        requeue_after: Reconciles that asked for a requeue after a time.
        error: Reconciles that failed, including terminal failures and timeouts.
        terminal: Reconciles that failed and are not retried.
        timeout: Reconciles that took too long.
        withdrawn: Runs of ``Operator.task`` that were cancelled because their objects are gone or do not match.
        interrupted: Reconciles that were cancelled because the controller stopped or lost leadership.
        given_up: Keys that are not retried any more, because their objects are gone and they kept failing.
        succeeded_at: When the last reconcile that succeeded began, by ``perf_counter``; None before the first.
        seconds: Durations.
    """

    success: int = 0
    requeue: int = 0
    requeue_after: int = 0
    error: int = 0
    terminal: int = 0
    timeout: int = 0
    withdrawn: int = 0
    interrupted: int = 0
    given_up: int = 0
    succeeded_at: float | None = None
    seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))

    @property
    def total(self) -> int:
        """Reconciles that have ended."""
        return self.success + self.requeue + self.requeue_after + self.error

    @property
    def last_success(self) -> float | None:
        """When the last reconcile that succeeded began, in seconds since the epoch; None before the first."""
        return None if self.succeeded_at is None else time() - (perf_counter() - self.succeeded_at)

    def samples(self, controller: str) -> Iterator[Sample]:
        """Yield the metrics, with controller-runtime's names."""
        labels = {"controller": controller}
        prefix = "controller_runtime"
        for result in ("success", "requeue", "requeue_after", "error"):
            yield Sample(
                f"{prefix}_reconcile_total", "counter", {**labels, "result": result}, getattr(self, result)
            )
        yield Sample(f"{prefix}_reconcile_errors_total", "counter", labels, self.error)
        yield Sample(f"{prefix}_terminal_reconcile_errors_total", "counter", labels, self.terminal)
        yield Sample(f"{prefix}_reconcile_timeouts_total", "counter", labels, self.timeout)
        yield Sample("aioinformer_given_up_keys_total", "counter", labels, self.given_up)
        if (last_success := self.last_success) is not None:
            name = "aioinformer_last_success_timestamp_seconds"
            yield Sample(name, "gauge", labels, last_success)
        yield from self.seconds.samples(f"{prefix}_reconcile_time_seconds", labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingKey:
    """An object whose last reconcile failed.

    Attributes:
        key: The object's key.
        error: The last error's message.
        where: The file and line of the reconciler's code that raised it; ``""`` if it was raised elsewhere.
        seconds: Seconds since that error.
        tries: How often in a row it failed or was queued again with a back-off.
    """

    key: str
    error: str
    where: str
    seconds: float
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """A snapshot of a controller.

    Attributes:
        name: The controller's name.
        working: Whether its workers run. They wait for the caches and for leadership.
        workers: Workers that run.
        concurrency: The configured number of workers; None for one for each object.
        running: Running reconciles.
        queue: The work queue.
        reconciles: Reconciles that have ended, including failed ones.
        failed: Reconciles that failed.
        terminal: Reconciles that failed and are not retried.
        timed_out: Reconciles that took too long.
        failing: Keys whose last reconcile failed.
        failing_seconds: Seconds that the longest failing key fails; 0 if none does, and on standby.
        queued_seconds: Seconds that the longest waiting key waits for a worker; 0 if none does, and on standby.
        unfit: Objects to reconcile that do not fit their class.
        last_success: When the last reconcile that succeeded began, in seconds since the epoch; None before the first.
        given_up: Keys that are not retried any more, because their objects are gone and they kept failing.
        last_error: The last error of a reconcile. Later successes do not clear it.
        last_error_key: The key of that reconcile.
        last_error_seconds: Seconds since that error.
        worker_error: The error that ended a worker or source, which ends the manager; None if there was none.
        triggers: What triggers reconciles.
        unsynced: Informers that have not synced yet. The controller waits for them.
        sync_error: Why the other controllers work without waiting for these informers; None while they wait.
    """

    name: str
    working: bool
    workers: int
    concurrency: int | None
    running: tuple[RunState, ...]
    queue: WorkQueueState
    reconciles: int
    failed: int
    terminal: int
    timed_out: int
    failing: int
    last_error: BaseException | None
    last_error_key: str | None
    worker_error: BaseException | None
    triggers: tuple[TriggerState, ...]
    unsynced: tuple[str, ...] = ()
    sync_error: SyncTimeout | None = None
    last_error_seconds: float | None = None
    given_up: int = 0
    failing_seconds: float = 0.0
    queued_seconds: float = 0.0
    unfit: int = 0
    last_success: float | None = None

    @property
    def stuck(self) -> tuple[RunState, ...]:
        """Reconciles that ignore their cancellation."""
        return tuple(run for run in self.running if run.stuck)

    def __str__(self) -> str:
        doing = f"waiting for caches: {', '.join(self.unsynced)}" if self.unsynced else "standing by"
        text = f"{self.name}: " + (f"{self.workers} workers" if self.working else doing)
        text += f", {self.queue}, {self.reconciles} reconciles"
        if self.failed:
            since = f", for up to {self.failing_seconds:.0f} s" if self.failing else ""
            text += f", {self.failed} failed ({self.failing} keys still do{since})"
        if self.unfit:
            text += f", {self.unfit} objects do not fit their class"
        if self.given_up:
            text += f", {self.given_up} keys given up, whose objects are gone"
        if self.last_error is not None:
            text += f", last: {self.last_error_key}: {self.last_error!r}{_ago(self.last_error_seconds)}"
        if self.running:
            text += f"; at {', '.join(map(str, self.running[:3]))}"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerState:
    """A snapshot of a manager.

    Attributes:
        ended: Whether it has run and ended.
        leading: Whether it is the leader; None without leader election.
        election_error: Why the last attempt to acquire or renew the lease failed; None if it succeeded.
        sharding: What it knows of the slots; None without sharding.
        informers: Its informers.
        controllers: Its controllers.
        webhooks: Its operator's webhooks.
    """

    ended: bool
    leading: bool | None
    election_error: Exception | None = None
    sharding: ShardingState | None = None
    informers: tuple[InformerState, ...]
    controllers: tuple[ControllerState, ...]
    webhooks: tuple[WebhookState, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as plain dicts and strings, ready for JSON; errors as their texts."""
        state: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str, str_keys=True)
        return state

    def __str__(self) -> str:
        """Return two tables, for people."""
        informers: list[tuple[str, ...]] = [
            ("INFORMER", "SYNCED", "OBJECTS", "PHASE", "IDLE", "LAST ERROR"),
            *(_informer_row(informer) for informer in self.informers),
        ]
        controllers: list[tuple[str, ...]] = [
            (
                "CONTROLLER",
                "WORKERS",
                "QUEUED",
                "DELAYED",
                "RUNNING",
                "DONE",
                "FAILED",
                "FAILING",
                "LAST ERROR",
            ),
            *(_controller_row(controller) for controller in self.controllers),
        ]
        return "\n\n".join(filter(None, (self._describe_standing(), _table(informers), _table(controllers))))

    def _describe_standing(self) -> str:
        if self.ended:
            return "ended"
        missing = [informer.name for informer in self.informers if not informer.synced]
        goes_on = self.leading or any(
            controller.working or controller.sync_error for controller in self.controllers
        )
        if missing and not goes_on:  # it does not take part in the election before its caches have synced
            return f"waiting for caches: {', '.join(missing)}"
        error = "" if self.election_error is None else f": {message_of(self.election_error)}"
        if self.sharding is not None:
            return str(self.sharding)
        if self.leading is False:
            return f"standing by{error}"
        triggers = [trigger for controller in self.controllers for trigger in controller.triggers]
        unfed = ", ".join(trigger.name for trigger in triggers if not trigger.synced)
        waiting = f"waiting for the first list to go through {unfed}" if unfed and goes_on else ""
        return "; ".join(filter(None, (f"leading{error}" if self.leading else "", waiting)))


def _informer_row(state: InformerState) -> tuple[str, ...]:
    return (
        state.name,
        "yes" if state.synced else "no",
        ", ".join(
            (
                str(state.objects),
                *([f"{state.undecodable} undecodable"] if state.undecodable else ()),
                *([f"{state.rejected} dropped"] if state.rejected else ()),
            )
        ),
        POLLING if state.polling else str(state.phase),
        "-" if state.idle_seconds is None else f"{state.idle_seconds:.1f}s",
        _text(state.last_error),
    )


def _controller_row(state: ControllerState) -> tuple[str, ...]:
    return (
        state.name,
        str(state.workers) if state.concurrency is None else f"{state.workers}/{state.concurrency}",
        str(state.queue.depth),
        str(state.queue.delayed),
        str(len(state.running)),
        str(state.reconciles),
        str(state.failed),
        str(state.failing),
        "-"
        if state.last_error is None
        else f"{state.last_error_key}: {_text(state.last_error)}{_ago(state.last_error_seconds)}",
    )


def _ago(seconds: float | None) -> str:
    return "" if seconds is None else f" ({seconds:.0f} s ago)"


def _text(error: BaseException | None) -> str:
    if error is None:
        return "-"
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text if len(text) <= 60 else f"{text[:60]}…"


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
