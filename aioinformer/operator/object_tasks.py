"""Work that goes on as long as its object exists: ``Operator.task``. It is a Controller whose reconcile is the task, so
that back-off, leadership, states and metrics are the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from .._core.cancellation import CALL_ERRORS, maybe_await
from ..events import EventRecorder
from ..objects.keys import is_deleting, uid_of
from ..objects.undecodable import UndecodableObject
from ..resources import CachedResource
from ..workqueue import RateLimiter
from .controller import Controller
from .metadata import DELETION_TIMESTAMP, UID, require_fields
from .requests import Reconcile, Request, Result

logger = logging.getLogger(__name__)

T = TypeVar("T")

Matches = Callable[[T], bool]
"""Returns whether a task or timer is for an object."""

RECOVERED_AFTER = 60.0
"""Seconds after which a task that failed, and runs again, has recovered: its next back-off is a short one."""


def is_wanted(obj: Any, matches: Matches[Any] | None) -> bool:
    """Return whether an object, or None, needs its task or timer.

    It exists, is not marked for deletion, and matches.
    """
    return obj is not None and not is_deleting(obj) and (matches is None or bool(matches(obj)))


class ObjectTasks(Controller[T], Generic[T]):
    """Runs a coroutine for each object of a collection that exists and matches.

    Args:
        name: As for Controller.
        function: Runs for an object. If it returns None, it is not called again for this object; a Result is as for a
            reconcile, and an error starts it again after a back-off.
        resource: The objects.
        matches: Returns whether the task is for an object; None for all.
        rate_limiter: How long to wait before it starts again after an error: as for Controller.
        recorder: As for Controller.

    Guarantees:
        It never runs twice at once for one object. It is cancelled once when the object is gone or marked for deletion,
        is another with the same name, or does not match any more; and when the manager stops or loses leadership. It
        starts after the object's last change if it matches then. An object that does not fit its type starts no task,
        and ends none.
    """

    def __init__(
        self,
        name: str,
        function: Reconcile[T],
        resource: CachedResource[T],
        matches: Matches[T] | None = None,
        *,
        rate_limiter: RateLimiter[str] | None = None,
        recorder: EventRecorder | None = None,
    ) -> None:
        require_fields(resource.informer.object_type, (UID, DELETION_TIMESTAMP), f"the task {name}")
        super().__init__(
            name, self._run_task, resource, rate_limiter=rate_limiter, recorder=recorder, timeout=None
        )
        self._function = function
        self._matches = matches
        self._running: dict[str, str] = {}
        """The uids of the objects whose tasks run, by key."""
        self._returned: dict[str, str] = {}
        """Likewise of those whose tasks have returned, while they match."""
        self._workers.concurrency = None
        self._own.on_queued = self._withdraw_if_unwanted

    async def stop(self, grace_period: float) -> None:
        """Cancel the tasks, which would not end by themselves, and wait until they have ended."""
        await super().stop(0.0)

    async def _run_task(self, request: Request[T]) -> Result | None:
        key, obj = request.key, request.object
        uid = self._wanted_uid(obj)
        if uid is None:
            self._returned.pop(key, None)
        if uid is None or self._returned.get(key) == uid:
            return None
        self._running[key] = uid
        try:
            with self._recovering(key):
                result: Result | None = await maybe_await(self._function(request))
        finally:
            del self._running[key]
        if result is None:
            self._returned[key] = uid
        return result

    def _wanted_uid(self, obj: Any) -> str | None:
        """Return the uid of an object that needs a task, else None."""
        return uid_of(obj) if is_wanted(obj, self._matches) else None

    def _withdraw_if_unwanted(self, key: str) -> None:
        """Cancel the task of an object that has changed, if the object needs it no more.

        It asks the cache and not the change, so the order of changes does not matter. The change has queued the key:
        when the task has ended, it starts again if it is wanted then.
        """
        if (uid := self._running.get(key)) is None:
            return
        obj = self._store.find_any(key)
        if isinstance(obj, UndecodableObject) and obj.uid == uid:
            return
        try:
            is_wanted = self._wanted_uid(obj) == uid
        except CALL_ERRORS as error:
            self._own.record_failure(f"when= of the task {self.name} on {key}", error)
            return
        if not is_wanted:
            self._workers.withdraw(key)

    @contextmanager
    def _recovering(self, key: str) -> Iterator[None]:
        """Forget earlier failures of a key once it has run for a while."""
        if key not in self._workers.failing:
            yield
            return
        timer = asyncio.get_running_loop().call_later(RECOVERED_AFTER, self._workers.recover, key)
        try:
            yield
        finally:
            timer.cancel()
