"""Waiting until events have shown what one waits for (client-go ``tools/watch/until.go``)."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

import anyio

from .._core.checks import require_timeout
from .._core.tasks import maybe_await
from ..client.error_mapping import status_error
from ..errors import ConfigError, UntilTimeout, WatchClosedError
from ..handlers import callable_name
from ..informer import SharedIndexInformer
from ..objects.keys import key_and_version
from ..objects.kube_object import KubeObject
from ..objects.meta import ERROR, Object, WatchEvent
from ..protocols import ListerWatcher
from ..store import Indexer
from .informer_events import InformerEvents
from .retry_watcher import RetryWatcher

T = TypeVar("T")

Condition = Callable[[WatchEvent[Object]], bool | Awaitable[bool]]
"""Whether an event is the one; plain or async. What it raises ends the wait."""

Precondition = Callable[[Indexer[T]], bool | Awaitable[bool]]
"""Whether the cache shows already that there is nothing to wait for; plain or async."""


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
    """Watch from a version on until every condition was met, one after the other.

        event = await until(pods, created["metadata"]["resourceVersion"], is_ready, timeout=60)

    The event that met a condition is looked at by the next one first. Broken watches are gone on with, see
    RetryWatcher.

    Args:
        list_watch: What to watch; a field selector for one object's name keeps others away.
        resource_version: Where to begin: the version of an object that was written, or of a list, as for RetryWatcher.
        *conditions: What is waited for; each is given events that are no errors.
        object_type: What an object is.
        timeout: Seconds; None waits for ever.

    Returns:
        The event that met the last condition.

    Raises:
        UntilTimeout: It took longer.
        ApiError: The watch cannot go on: the version has expired, or watching is not permitted.
        ConfigError: No conditions, no version to watch from, or ``timeout`` is no duration.
    """
    async with RetryWatcher(list_watch, resource_version, object_type) as events:
        return await until_without_retry(events, *conditions, timeout=timeout)


async def until_without_retry(
    events: AsyncIterable[WatchEvent[T]], *conditions: Condition[T], timeout: float | None = None
) -> WatchEvent[T]:
    """As ``until``, on events that somebody else brings. Closing them is the caller's.

    Raises:
        WatchClosedError: The events ended before the conditions were met.
        UntilTimeout: It took longer.
        ApiError: An ERROR event came.
        ConfigError: There are no conditions, or ``timeout`` is no duration.
    """
    progress = _Progress(conditions, lambda: repr(events))
    with progress.within(timeout):
        return await progress.run(events)


async def until_with_sync(
    informer: SharedIndexInformer[T],
    *conditions: Condition[T],
    precondition: Precondition[T] | None = None,
    timeout: float | None = None,
) -> WatchEvent[T] | None:
    """As ``until``, on what an informer knows and will learn.

    The informer is somebody's who runs it; one that has not started yet is waited for. Its cached objects come first,
    as ADDED events.

    Args:
        informer: Who tells.
        *conditions: What is waited for.
        precondition: Asked once the informer has synced, and before the conditions are: if the cache shows already
            what is waited for, there is no event to wait for.
        timeout: Seconds; None waits for ever.

    Returns:
        The event that met the last condition; None if the precondition did.

    Raises:
        UntilTimeout: It took longer; the message says what the informer is doing.
        StoppedError: The informer has stopped, before this or before it had synced.
        WatchClosedError: The informer stopped before the conditions were met.
        ConfigError: There are no conditions, or ``timeout`` is no duration.
    """
    progress = _Progress(conditions, lambda: informer.name, lambda: f"; {informer.state}")
    with progress.within(timeout):
        async with InformerEvents(informer) as events:
            if precondition is not None:
                await informer.wait_synced()
                if await maybe_await(precondition(informer.indexer)):
                    return None
            return await progress.run(events)


class _Progress(Generic[T]):
    """How far a wait has come.

    Args:
        conditions: What is waited for.
        name: On whom, for messages.
        state: What those say of him in the end.
    """

    def __init__(
        self, conditions: tuple[Condition[T], ...], name: Callable[[], str], state: Callable[[], str] = str
    ) -> None:
        if not conditions:
            raise ConfigError("until needs a condition at least")
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
            while await maybe_await(self._conditions[self._met](event)):
                self._met += 1
                if self._met == len(self._conditions):
                    return event
        raise WatchClosedError(f"{self._name()} ended before {self._describe()}", self._event)

    @contextmanager
    def within(self, timeout: float | None) -> Iterator[None]:
        require_timeout(timeout)
        with anyio.move_on_after(timeout) as scope:
            yield
        if scope.cancelled_caught:
            text = f"{self._name()}: after {timeout:g} s not {self._describe()}{self._state()}"
            raise UntilTimeout(text, self._event)

    def _describe(self) -> str:
        condition = callable_name(self._conditions[self._met])
        text = f"condition {self._met + 1} of {len(self._conditions)} ({condition}) was met"
        if self._event is None:
            return f"{text}; there was no event"
        key, version = key_and_version(self._event.object)
        return f"{text}; the last event was {self._event.type} of {key} at {version}"
