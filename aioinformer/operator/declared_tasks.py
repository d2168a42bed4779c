"""A task or a timer as it was declared: its checks, and the controller that a run gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._core.callables import callable_name, require_arguments, require_plain
from .._core.checks import is_finite
from ..events import EventRecorder
from .context import Context
from .controller import Controller
from .controller_options import TIMEOUT
from .declarations import with_context
from .declared_controller import DeclaredController
from .mistakes import Mistakes
from .object_tasks import Matches, ObjectTasks
from .object_timers import ObjectTimers


@dataclass(frozen=True, eq=False)
class DeclaredTask(DeclaredController):
    """A task as it was declared: see ``Operator.task``."""

    when: Matches[Any] | None = None

    @property
    def title(self) -> str:
        """The name of its controller."""
        return self.options.get("name") or callable_name(self.reconcile).rpartition(".")[2]

    def _check_options(self, mistakes: Mistakes) -> None:
        super()._check_options(mistakes)
        if self.when is not None:
            mistakes.of(require_arguments, "when", self.when, ("obj",))
            if callable(self.when):
                mistakes.of(require_plain, "when", self.when)

    def controller(self, context: Context, recorder: EventRecorder | None = None) -> Controller[Any]:
        """Return a new controller, for one run."""
        return ObjectTasks(
            self.title,
            with_context(self.reconcile, context),
            context.resource(self.resource),
            self.when,
            rate_limiter=self.make_rate_limiter(),
            recorder=recorder,
        )


@dataclass(frozen=True, eq=False)
class DeclaredTimer(DeclaredTask):
    """A timer as it was declared: see ``Operator.timer``."""

    every: float = 0.0

    def _check_options(self, mistakes: Mistakes) -> None:
        super()._check_options(mistakes)
        if not is_finite(self.every) or self.every <= 0:
            mistakes.add(f"every must be a number of seconds above 0, not {self.every!r}")

    def controller(self, context: Context, recorder: EventRecorder | None = None) -> Controller[Any]:
        """Return a new controller, for one run."""
        return ObjectTimers(
            self.title,
            with_context(self.reconcile, context),
            context.resource(self.resource),
            self.every,
            self.when,
            rate_limiter=self.make_rate_limiter(),
            recorder=recorder,
            concurrency=self.options.get("concurrency", 1),
            timeout=self.options.get("timeout", TIMEOUT),
        )
