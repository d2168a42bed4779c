"""Wait until one object at the server meets a condition, without a cache (kubectl ``pkg/cmd/wait``)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

import anyio

from .._core.checks import require_timeout
from ..client.error_mapping import status_error
from ..client.transport import READ_TIMEOUT
from ..errors import ApiError, DecodeError, RefusedError, TransportError, UntilTimeout
from ..listwatch.list_watch import ResourceListWatch
from ..listwatch.pager import Listed, Pager
from ..objects.keys import resource_version_of, split_meta_namespace_key, uid_of
from ..objects.meta import DELETED, ERROR, ListResult
from ..objects.undecodable import UndecodableObject, undecodable
from ..reflector import RetryWatcher
from ..reflector.retry_watcher import MIN_RESTART_DELAY
from .endpoint import Endpoint
from .refusals import raise_refusals
from .wait_conditions import WaitCondition

T = TypeVar("T")


async def wait_for_condition(
    endpoint: Endpoint[T], object_type: type[T], key: str, condition: WaitCondition, timeout: float | None
) -> T | None:
    """Wait until an object meets a condition, and return it; None if its deletion is the condition."""
    require_timeout(timeout)
    states = _States(endpoint, object_type, key)
    with anyio.move_on_after(timeout):
        async with aclosing(states.follow()) as following:
            async for obj in following:
                if obj is None:
                    if condition.wants_deletion:
                        return None
                elif not isinstance(obj, UndecodableObject) and condition.is_met(obj):
                    met: T = obj
                    return met
    raise UntilTimeout(
        f"{endpoint} {key}: after {timeout:g} s {condition.text!r} is not met; {states.describe()}"
    )


class _States:
    """The states of one object, as the server has them."""

    def __init__(self, endpoint: Endpoint[Any], object_type: type[Any], key: str) -> None:
        namespace, name = split_meta_namespace_key(key)
        collection = endpoint.addresses.collection
        one = replace(collection, namespace=namespace or None, field_selector=f"metadata.name={name}")
        self._list_watch = ResourceListWatch(endpoint.client, one)
        self._pager = Pager(self._list_watch, self._decode, READ_TIMEOUT)
        self._codec = endpoint.codec
        self._object_type = object_type
        self._last: Any = None
        self._failure: Exception | None = None

    def describe(self) -> str:
        """Describe the last state for the message of a timeout."""
        if self._failure is not None:
            return f"the last request failed: {self._failure}"
        if self._last is None:
            return "the object does not exist"
        version = f"its last resourceVersion is {resource_version_of(self._last)}"
        return f"{version}; {self._last.error}" if isinstance(self._last, UndecodableObject) else version

    async def follow(self) -> AsyncGenerator[Any, None]:
        """Yield the object now and after each change; None while it does not exist.

        None also comes between two objects of the same name. The first list raises its errors; later ones are retried.
        """
        may_fail = False
        while True:
            try:
                listed = await self._list()
            except (ApiError, TransportError) as error:
                if not may_fail or isinstance(error, RefusedError):
                    raise
                self._failure = error
                await anyio.sleep(MIN_RESTART_DELAY)
                continue
            may_fail, self._failure = True, None
            for state in self._states(next(iter(listed.objects), None)):
                yield state
            async with RetryWatcher(self._list_watch, listed.resource_version, self._object_type) as events:
                async for event in events:
                    if event.type == ERROR:
                        end = status_error(event.object)
                        if end.is_expired:
                            break
                        raise end
                    for state in self._states(None if event.type == DELETED else event.object):
                        yield state

    async def _list(self) -> Listed:
        with raise_refusals("list", self._list_watch.description):
            return await self._pager.list("", 0)

    async def _decode(self, piece: ListResult) -> list[Any]:
        objects = []
        for item in piece.items:
            try:
                objects.append(self._codec.decode(item, piece.type_meta))
            except DecodeError as error:
                objects.append(undecodable(item, piece.type_meta, str(error)))
        return objects

    def _states(self, obj: Any) -> Iterator[Any]:
        last, self._last = self._last, obj
        if last is not None and obj is not None and uid_of(last) != uid_of(obj):
            yield None
        yield obj
