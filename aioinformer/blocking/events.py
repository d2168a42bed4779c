"""Events: an informer's notifications as a plain iterator."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import anyio

from .._core.checks import require_timeout
from ..errors import StoppedError
from ..watchtools import InformerEvent, InformerEvents
from .loop_thread import LoopThread

T = TypeVar("T")

MOST_FETCHED = 256
"""Events that one call of the event loop brings, where they wait; the others wait where the backlog policy acts."""


class Events(Generic[T]):
    """An iterator over an informer's notifications; it starts with the cached objects. ``Informer.events`` returns one.

        for event in pods.events():
            print(event.type, event.object.key)

    Iterating registers it. It ends when the informer ends, or after ``timeout`` seconds without an event; a further
    loop then continues where this one ended. ``close()``, or leaving it as a context manager, removes the registration;
    so does the garbage collector. Several threads may iterate: each event goes to one of them.

    An event is what ``InformerEvents`` yields.

    Args:
        make: Returns the InformerEvents.
        loop: The informer's event loop.
        timeout: Seconds without an event after which an iteration ends; None waits without limit.
    """

    def __init__(
        self, make: Callable[[], InformerEvents[T]], loop: LoopThread, timeout: float | None = None
    ) -> None:
        require_timeout(timeout)
        self._make = make
        self._loop = loop
        self._timeout = timeout
        self._events: InformerEvents[T] | None = None
        self._leave: Callable[[], object] | None = None
        self._fetched: deque[InformerEvent[T]] = deque()  # kept here, an interrupted call loses none
        self._has_ended = False

    def __enter__(self) -> Self:
        """Register it.

        Raises:
            StoppedError: The informer has stopped, or this was closed.
            InformerError: The factory was not started.
        """
        if self._has_ended:
            raise StoppedError(f"{self!r} have ended: call events() again")
        if self._events is None:
            self._loop.call(self._register)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "blocking events" if self._events is None else f"blocking {self._events!r}"

    def __iter__(self) -> Self:
        if not self._has_ended:
            self.__enter__()
        return self

    def __next__(self) -> InformerEvent[T]:
        """Return the next event.

        Raises:
            StopIteration: There was none for ``timeout`` seconds, the informer has ended, or this was closed.
            ForkedError: It was registered before this process was forked.
        """
        self._loop.require_same_process()
        if self._events is None:
            self.__iter__()
        while True:
            try:
                return self._fetched.popleft()
            except IndexError:
                if self._has_ended:
                    raise StopIteration from None
            try:
                if not self._loop.call(self._fetch):
                    raise StopIteration
            except StoppedError:  # the factory was shut down
                self._has_ended = True

    def close(self) -> None:
        """Remove the registration; iterations end. May be called again."""
        self._has_ended = True
        self._fetched.clear()
        if self._leave is not None:
            self._leave()

    async def _register(self) -> None:
        if self._events is not None:
            return  # another thread has done it
        events = self._make()
        await events.__aenter__()
        self._events = events
        finalizer = weakref.finalize(self, self._loop.post, _make_leave(events))
        finalizer.atexit = False  # the event loop may have ended
        self._leave = finalizer

    async def _fetch(self) -> bool:
        """Wait for events; return whether there are any, or none will come."""
        events = self._events
        assert events is not None
        try:
            with anyio.move_on_after(self._timeout) as scope:
                self._fetched.append(await anext(events))
            with anyio.move_on_after(0):  # those that do not have to be waited for
                while self._fetched and len(self._fetched) < MOST_FETCHED:
                    self._fetched.append(await anext(events))
        except StopAsyncIteration:
            self._has_ended = True
            return True
        return bool(self._fetched) or not scope.cancelled_caught


def _make_leave(events: InformerEvents[Any]) -> Callable[[], Any]:
    """Return an async function that leaves the events, without a reference to an Events."""

    async def leave() -> None:
        await events.__aexit__(None, None, None)

    return leave
