"""Wait until events meet conditions (client-go ``tools/watch/until.go``)."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar, overload

from .._core.callables import callable_name
from .._core.cancellation import maybe_await, time_limit
from .._core.checks import require_timeout
from ..client.error_mapping import status_error
from ..errors import ConfigError, UntilTimeout, WatchClosedError
from ..informer import SharedIndexInformer
from ..objects.keys import key_and_version
from ..objects.kube_object import KubeObject
from ..objects.meta import ERROR, UNDECODABLE, Object, WatchEvent
from ..objects.undecodable import UndecodableObject
from ..protocols import ListerWatcher
from ..reflector import RetryWatcher
from ..store import Indexer
from .informer_events import InformerEvents

T = TypeVar("T")

Condition = Callable[[WatchEvent[Object]], bool | Awaitable[bool]]
"""Returns whether an event meets the condition; plain or async. An error in it ends the wait."""

Precondition = Callable[[Indexer[T]], bool | Awaitable[bool]]
"""Returns whether the cache shows that waiting is unnecessary; plain or async."""


@overload
async def until(
    list_watch: ListerWatcher,
    resource_version: str,
    *conditions: Condition[KubeObject],
    timeout: float | None = None,
) -> WatchEvent[KubeObject]: ...


@overload
async def until(
    list_watch: ListerWatcher,
    resource_version: str,
    *conditions: Condition[T],
    object_type: type[T],
    timeout: float | None = None,
) -> WatchEvent[T]: ...


async def until(
    list_watch: ListerWatcher,
    resource_version: str,
    *conditions: Condition[Any],
    object_type: type[Any] = KubeObject,
    timeout: float | None = None,
) -> WatchEvent[Any]:
    """Watch from a version on until all conditions were met, one after another.

        event = await until(pods, created["metadata"]["resourceVersion"], is_ready, timeout=60)

    The event that meets a condition is also the first that the next condition sees. Broken watches are resumed, as by
    RetryWatcher.

    Args:
        list_watch: The collection to watch; use a field selector to watch one object.
        resource_version: The version to start from: that of a written object, or of a list, as for RetryWatcher.
        *conditions: The conditions. They see all events except errors, and states that do not fit the object type.
        object_type: The type of objects.
        timeout: Seconds; None waits for ever.

    Returns:
        The event that met the last condition.

    Raises:
        UntilTimeout: The timeout has passed.
        ApiError: The watch cannot continue: the version has expired, or watching is not permitted.
        ConfigError: There are no conditions, or the version or the timeout is invalid.
    """
    async with RetryWatcher(list_watch, resource_version, object_type) as events:
        return await until_without_retry(events, *conditions, timeout=timeout)


async def until_without_retry(
    events: AsyncIterable[WatchEvent[T]], *conditions: Condition[T], timeout: float | None = None
) -> WatchEvent[T]:
    """Wait like ``until`` on an iterator of events, which the caller closes.

    Raises:
        WatchClosedError: The events ended before the conditions were met.
        UntilTimeout: The timeout has passed.
        ApiError: There was an ERROR event.
        ConfigError: There are no conditions, or the timeout is invalid.
    """
    progress = _Progress(conditions, lambda: repr(events))
    async with progress.within(timeout):
        return await progress.run(events)


async def until_with_sync(
    informer: SharedIndexInformer[T],
    *conditions: Condition[T],
    precondition: Precondition[T] | None = None,
    timeout: float | None = None,
) -> WatchEvent[T] | None:
    """Wait like ``until`` on the notifications of an informer.

    The caller runs the informer; if it has not started yet, this waits for it. Its cached objects come first, as ADDED
    events.

    Args:
        informer: The informer.
        *conditions: The conditions.
        precondition: Called once the informer has synced, before any condition: if it returns True for the cache, the
            wait ends.
        timeout: Seconds; None waits for ever.

    Returns:
        The event that met the last condition; None if the precondition was met.

    Raises:
        UntilTimeout: The timeout has passed; the message has the informer's state.
        StoppedError: The informer stopped before this call, or before it had synced.
        WatchClosedError: The informer stopped before the conditions were met.
        ConfigError: There are no conditions, or the timeout is invalid.
    """
    progress = _Progress(conditions, lambda: informer.name, lambda: f"; {informer.state}")
    async with progress.within(timeout), InformerEvents(informer) as events:
        if precondition is not None:
            await informer.wait_synced()
            if await maybe_await(precondition(informer.indexer)):
                return None
        return await progress.run(events)


class _Progress(Generic[T]):
    """How many conditions were met so far.

    Args:
        conditions: The conditions.
        name: Returns the name of the source of events, for messages.
        state: Returns a description of that source, for the message of a timeout.
    """

    def __init__(
        self, conditions: tuple[Condition[T], ...], name: Callable[[], str], state: Callable[[], str] = str
    ) -> None:
        if not conditions:
            raise ConfigError("until needs at least one condition")
        self._conditions = conditions
        self._name = name
        self._state = state
        self._met = 0
        self._event: WatchEvent[T] | None = None

    async def run(self, events: AsyncIterable[WatchEvent[T]]) -> WatchEvent[T]:
        async for event in events:
            if event.type == ERROR:
                raise status_error(event.object)
            self._event = event
            if event.type == UNDECODABLE:
                continue
            while await maybe_await(self._conditions[self._met](event)):
                self._met += 1
                if self._met == len(self._conditions):
                    return event
        raise WatchClosedError(f"{self._name()} ended before {self._describe()}", self._event)

    def within(self, timeout: float | None) -> AbstractAsyncContextManager[object]:
        require_timeout(timeout)

        def late() -> UntilTimeout:
            text = f"{self._name()}: after {timeout:g} s not {self._describe()}{self._state()}"
            return UntilTimeout(text, self._event)

        return time_limit(timeout, late)

    def _describe(self) -> str:
        condition = callable_name(self._conditions[self._met])
        text = f"condition {self._met + 1} of {len(self._conditions)} ({condition}) was met"
        if self._event is None:
            return f"{text}; there was no event"
        key, version = key_and_version(self._event.object)
        text = f"{text}; the last event was {self._event.type} of {key} at {version}"
        obj: Any = self._event.object
        return f"{text}: {obj.error}" if isinstance(obj, UndecodableObject) else text
