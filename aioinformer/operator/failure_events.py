"""FailureEvents: Kubernetes Events about objects whose reconcile fails, for their owners."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from .._core.failure_log import FailureLog
from .._core.timers import call_every
from ..errors import AioInformerError, message_of
from ..events import EventRecorder
from ..events.references import describe
from ..informer import SharedIndexInformer
from ..listwatch.list_watch import ResourceListWatch
from ..objects.keys import is_deleting, type_of
from ..objects.protobuf import kind_of
from .failures import Failure

logger = logging.getLogger(__name__)

MOST_REPORTED = 1000
"""Failing objects of a controller that have Events at the same time, as many as a recorder's queue takes. If more fail,
the cause is a common one, which metrics and alerts show; an Event for each would be load for a server in trouble."""

REPEAT_AFTER = 300.0
"""Seconds after which the Event of an object that still fails is repeated, within the time in which a series ends."""
CHECK_EVERY = 10.0
"""Seconds between checks which Events to repeat."""
MOST_REPEATED = 50
"""Events that one check repeats, so that it does not block the event loop."""

RECONCILE, CLEAN_UP = "Reconcile", "CleanUp"
RECOVERED = "Recovered"


class FailureEvents:
    """Records a Warning about each object whose reconcile fails, as a series while it lasts, and a Normal one after it.

    Args:
        name: The controller's name.
        recorder: Writes the Events.
        informer: The informer of the objects.
    """

    def __init__(self, name: str, recorder: EventRecorder, informer: SharedIndexInformer[Any]) -> None:
        self._name = name
        self._recorder = recorder
        self._find = informer.store.find_any
        self._type = _type_of(informer)
        self._reported: OrderedDict[str, tuple[Failure, float]] = (
            OrderedDict()
        )  # the longest unrepeated first
        self._has_warned = False
        self._log = FailureLog(f"{name}: Events", logger)

    def failed(self, key: str, failure: Failure) -> None:
        """Record that the reconcile of an object failed."""
        if not failure.may_pass and self._has_room(key):
            self._warn(key, failure)

    def _warn(self, key: str, failure: Failure) -> None:
        obj = self._find(key)
        if obj is None:
            self.forget(key)
            return
        self._reported[key] = failure, asyncio.get_running_loop().time()
        self._reported.move_to_end(key)
        action = CLEAN_UP if is_deleting(obj) else RECONCILE
        self._record(key, obj, "Warning", failure.reason, failure.note, action)

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Repeat the Events of objects that still fail, until the block ends; then forget them."""
        try:
            with call_every(CHECK_EVERY, self._repeat):
                yield
        finally:
            self._reported.clear()

    def _repeat(self) -> None:
        due = asyncio.get_running_loop().time() - REPEAT_AFTER
        for key, (failure, at) in [*islice(self._reported.items(), MOST_REPEATED)]:
            if at > due:
                break
            self._warn(key, failure)

    def recovered(self, key: str) -> None:
        """Record that the reconcile of an object succeeded after failures."""
        obj = self._find(key) if key in self._reported else None
        self.forget(key)
        if obj is not None:
            self._record(key, obj, "Normal", RECOVERED, "it was reconciled, after failures", RECONCILE)

    def forget(self, key: str) -> None:
        """Forget that an object fails."""
        self._reported.pop(key, None)
        if not self._reported:
            self._has_warned = False

    def _has_room(self, key: str) -> bool:
        if key in self._reported or len(self._reported) < MOST_REPORTED:
            return True
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s: more than %d objects fail: others get no Events until some recover; /debug lists them all",
                self._name, MOST_REPORTED,
            )  # fmt: skip
        return False

    def _record(self, key: str, obj: Any, type: Any, reason: str, note: str, action: str) -> None:
        try:
            self._recorder.event(self._reference(key, obj), type, reason, note, action=action)
        except AioInformerError as error:
            line = "%s: no Event about %s was recorded: %s"
            self._log.log(error, line, self._name, key, message_of(error), level=logging.WARNING)

    def _reference(self, key: str, obj: Any) -> dict[str, str]:
        known = type_of(obj)
        return describe(obj, key, known if known[1] else self._type)


def _type_of(informer: SharedIndexInformer[Any]) -> tuple[str, str]:
    """Return apiVersion and kind of an informer's objects, for classes that lack them; ``""`` if they are unknown."""
    for list_watch in informer.list_watches.values():
        if isinstance(list_watch, ResourceListWatch):
            collection = list_watch.resource
            return collection.api_version, kind_of(collection.api_version, collection.plural)
    return "", ""
