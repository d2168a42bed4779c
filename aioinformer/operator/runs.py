"""Running reconciles and their deadlines: one timer for all, since all have the same timeout."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import msgspec

from .._core.timers import DeadlineTimer
from .requests import Result

CANCEL_GRACE = 10.0
"""Seconds that a cancelled reconcile may take to end before it counts as stuck."""


class Run(msgspec.Struct, eq=False):
    """One reconcile.

    Attributes:
        key: The object's key.
        task: The worker that runs it.
        started: Loop time when it started.
        due: Loop time of its deadline.
        is_overdue: Whether it was cancelled because of its timeout.
        is_withdrawn: Whether it was cancelled because its object does not need it any more.
        is_stuck: Whether it was cancelled, for any reason, and has not ended in time.
        attempt: How often in a row it was tried, once it has failed.
        describe: Returns what log messages of the reconcile say of it.
        has_ended: Whether it has ended. Tasks that it left behind may log later.
        result: What it returned, if it succeeded.
    """

    key: str
    task: asyncio.Task[None]
    started: float
    due: float = math.inf
    is_overdue: bool = False
    is_withdrawn: bool = False
    is_stuck: bool = False
    attempt: int = 0
    describe: Callable[[Run], Mapping[str, object]] | None = None
    has_ended: bool = False

    def log_fields(self) -> Mapping[str, object]:
        """Return the fields of a log message; none when the reconcile has ended."""
        return {} if self.has_ended or self.describe is None else self.describe(self)

    result: Result | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A snapshot of a reconcile.

    Attributes:
        key: The object's key.
        seconds: Seconds since it started.
        overdue: Whether it was cancelled because of its timeout.
        stuck: Whether it ignores its cancellation.
        withdrawn: Whether it was cancelled because its object does not need it any more.
    """

    key: str
    seconds: float
    overdue: bool
    stuck: bool
    withdrawn: bool = False

    def __str__(self) -> str:
        text = f"{self.key} for {self.seconds:.1f} s"
        if self.stuck:
            return f"{text}, ignores its cancellation"
        return f"{text}, was cancelled" if self.overdue or self.withdrawn else text


class Runs:
    """The running reconciles of a controller.

    Args:
        timeout: Seconds that each may take; None for no limit.
        on_stuck: Called with a reconcile that ignores its cancellation.
    """

    def __init__(self, timeout: float | None, on_stuck: Callable[[Run], None]) -> None:
        self._timeout = timeout
        self._on_stuck = on_stuck
        self._running: dict[str, Run] = {}  # in the order of their start
        self._cancelled: dict[str, Run] = {}  # likewise, in the order of their cancellation
        self._timer = DeadlineTimer(self._check_deadlines)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._running) + len(self._cancelled)

    def begin(self, run: Run) -> None:
        """Record that a reconcile starts."""
        self._running[run.key] = run
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if self._timeout is not None:
            run.due = run.started + self._timeout
            if run.due < self._timer.deadline:
                self._timer.fire_by(run.due)

    def end(self, run: Run) -> None:
        """Record that a reconcile has ended."""
        run.has_ended = True
        (self._running if run.key in self._running else self._cancelled).pop(run.key, None)

    def withdraw(self, key: str) -> None:
        """Cancel the reconcile of a key, if there is one that was not cancelled before."""
        if (run := self._running.get(key)) is not None:
            run.is_withdrawn = True
            self._cancel(run, asyncio.get_running_loop().time() + CANCEL_GRACE)
            self._timer.fire_by(run.due)

    def interrupt(self) -> None:
        """Cancel all reconciles that were not cancelled before, because their workers end."""
        for run in list(self._running.values()):
            self._cancel(run, math.inf)

    @property
    def state(self) -> tuple[RunState, ...]:
        """The running reconciles, the oldest first. May be read in any thread."""
        now = self._loop.time() if self._loop is not None else 0.0
        return tuple(
            RunState(
                key=run.key,
                seconds=now - run.started,
                overdue=run.is_overdue,
                stuck=run.is_stuck,
                withdrawn=run.is_withdrawn,
            )
            for run in self._all
        )

    @property
    def _all(self) -> tuple[Run, ...]:
        return (*self._cancelled.values(), *self._running.values())

    @property
    def workers(self) -> set[asyncio.Task[None]]:
        """The workers that reconcile now."""
        return {run.task for run in self._all}

    @property
    def stuck(self) -> list[Run]:
        """The reconciles that ignore their cancellation."""
        return [run for run in self._all if run.is_stuck]

    def mark_stuck(self, tasks: Collection[asyncio.Task[None]]) -> list[Run]:
        """Mark the reconciles of tasks that ignore their cancellation as stuck, and return them."""
        stuck = [run for run in self._all if run.task in tasks]
        for run in stuck:
            run.is_stuck = True
        return stuck

    def close(self) -> None:
        """Stop watching the deadlines."""
        self._timer.cancel()

    def _check_deadlines(self, now: float) -> None:
        for run in list(self._cancelled.values()):
            if not run.is_stuck and run.due <= now:
                run.is_stuck = True
                self._on_stuck(run)
        for run in list(self._running.values()):
            if run.due > now:
                self._timer.fire_by(run.due)  # the others are due later
                break
            run.is_overdue = True
            self._cancel(run, now + CANCEL_GRACE)
        for run in self._cancelled.values():
            if not run.is_stuck and run.due < math.inf:
                self._timer.fire_by(run.due)

    def _cancel(self, run: Run, due: float) -> None:
        """Cancel a reconcile once. It is stuck if it has not ended when due."""
        self._cancelled[run.key] = self._running.pop(run.key)
        run.due = due
        run.task.cancel()
