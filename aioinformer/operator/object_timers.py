"""Calls at fixed times for each object: ``Operator.timer``. It is a Controller, so that back-off, leadership, states
and metrics are the same."""

from __future__ import annotations

import logging
import math
from datetime import datetime
from time import time
from typing import Any, Generic, NamedTuple, TypeVar

from .._core.cancellation import maybe_await
from .._core.failure_log import FailureLog
from ..errors import InvalidResultError, ReconcileError, shorten
from ..events import EventRecorder
from ..objects.keys import uid_of
from ..resources import CachedResource
from ..workqueue import RateLimiter
from .controller import Controller
from .controller_options import TIMEOUT
from .metadata import CREATION_TIMESTAMP, DELETION_TIMESTAMP, UID, read_metadata, require_fields
from .object_tasks import Matches, is_wanted
from .predicates import Change, is_recreated
from .requests import Reconcile, Request, Result

logger = logging.getLogger(__name__)

T = TypeVar("T")

SHORTEST_WAIT = 0.001
"""Seconds to the next call when it is due at once; 0 would ask for a back-off."""


class Due(NamedTuple):
    """The next call for an object.

    Attributes:
        uid: The object's uid.
        at: Seconds since the epoch.
    """

    uid: str
    at: float


def first_due(created: float, every: float, now: float) -> float:
    """Return when an object that is new to this process is due; all times in seconds since the epoch.

    Calls are due when the object is created, and then every so many seconds. So a restart moves no call, and not all
    objects are due at once. An object that is younger than one period is due now: its first call may not have happened.
    """
    age = now - created
    return now if age < every else next_due(created, every, now)


def next_due(created: float, every: float, now: float) -> float:
    """Return the first of the times after now at which an object is due."""
    return created + (math.floor((now - created) / every) + 1) * every


class ObjectTimers(Controller[T], Generic[T]):
    """Calls a function for each object of a collection that exists and matches, every so many seconds.

    Args:
        name: As for Controller.
        function: Called for an object. An error is retried after a back-off, until the call succeeds.
        resource: The objects.
        every: Seconds between calls, counted from the creation of the object.
        matches: Returns whether the timer is for an object; None for all.
        rate_limiter: As for Controller.
        concurrency: How many calls may run at the same time.
        timeout: Seconds after which a call is cancelled, and has failed; None for no limit.
        recorder: As for Controller.

    Guarantees:
        It is never called twice at once for one object. Times that pass while a call runs or waits are left out; that
        is logged.
    """

    def __init__(
        self,
        name: str,
        function: Reconcile[T],
        resource: CachedResource[T],
        every: float,
        matches: Matches[T] | None = None,
        *,
        rate_limiter: RateLimiter[str] | None = None,
        concurrency: int = 1,
        timeout: float | None = TIMEOUT,
        recorder: EventRecorder | None = None,
    ) -> None:
        fields = (UID, CREATION_TIMESTAMP, DELETION_TIMESTAMP)
        require_fields(resource.informer.object_type, fields, f"the timer {name}")
        self._matches = matches
        super().__init__(
            name,
            self._call_if_due,
            resource,
            predicate=self._changes_need,
            rate_limiter=rate_limiter,
            concurrency=concurrency,
            timeout=timeout,
            recorder=recorder,
        )
        self._function = function
        self._every = every
        self._due: dict[str, Due] = {}
        self._left_out = FailureLog(f"{name}: calls that were left out", logger)

    async def _call_if_due(self, request: Request[T]) -> Result | None:
        key, obj, every = request.key, request.object, self._every
        if not is_wanted(obj, self._matches):
            self._due.pop(key, None)
            return None
        uid, created, now = uid_of(obj), created_at(obj), time()
        due = self._due.get(key)
        if due is None or due.uid != uid:
            due = self._due[key] = Due(uid, first_due(created, every, now))
        if due.at > now:
            return Result(requeue_after=due.at - now)
        result = await maybe_await(self._function(request))
        if result is not None:
            raise InvalidResultError(
                f"{self.name}: the timer returned {shorten(result)} for {key}: return None"
            )
        now = time()
        following = next_due(created, every, now)
        if (left_out := round((following - due.at) / every) - 1) > 0:
            error = ReconcileError(f"{self.name}: {key} was called too late: {left_out} calls were left out")
            self._left_out.log(error, "%s", error, level=logging.WARNING)
        self._due[key] = Due(uid, following)
        return Result(requeue_after=max(following - now, SHORTEST_WAIT))

    def _changes_need(self, change: Change[T]) -> bool:
        """Return whether a change makes an object need calls, or need none."""
        if change.old is None or change.new is None or is_recreated(change):
            return True
        return is_wanted(change.old, self._matches) != is_wanted(change.new, self._matches)


def created_at(obj: Any) -> float:
    """Return when an object was created, in seconds since the epoch; 0 if it does not say."""
    created = read_metadata(obj, CREATION_TIMESTAMP)
    if isinstance(created, str):
        created = datetime.fromisoformat(created)
    return 0.0 if created is None else created.timestamp()
