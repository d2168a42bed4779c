"""LoopThread: an event loop in a thread of its own, for code without one."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from inspect import isawaitable
from typing import Any, TypeVar, overload

import anyio
from anyio.from_thread import BlockingPortal

from .._core.forks import Process, current_process, require_same_process
from ..errors import AlreadyStartedError, InformerError, StoppedError, WrongEventLoopError, message_of

logger = logging.getLogger(__name__)

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, which other threads call through anyio's blocking portal.

    ``anyio.from_thread.start_blocking_portal`` would do, but in a forked child its generator waits for the parent's
    thread, for ever, at the latest when the child's interpreter collects it.

    Args:
        owner: What runs in it, for errors.
        use_uvloop: Whether the event loop is uvloop's.
    """

    def __init__(self, owner: object, *, use_uvloop: bool) -> None:
        self._owner = owner
        self._use_uvloop = use_uvloop
        self._process: Process | None = None
        self._thread: threading.Thread | None = None
        self._portal: BlockingPortal | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: set[Future[Any]] = set()
        self._has_ended = False
        self.has_failed = False
        """Whether the event loop has ended by itself, which the log explains."""
        self._posted: set[asyncio.Task[object]] = set()
        self._submitting = threading.Lock()  # the portal ends between calls: a later one would never return

    @property
    def was_forked(self) -> bool:
        """Whether this process was forked after the start: the thread runs in the parent only."""
        return self._process is not None and self._process.was_forked

    @property
    def was_started(self) -> bool:
        """Whether it was started, in this process or before a fork."""
        return self._thread is not None

    def require_same_process(self) -> None:
        """Check that this process was not forked since the start. Raises ForkedError."""
        require_same_process(self._process, repr(self._owner))

    def is_running(self) -> bool:
        """Return whether it was started, in this process, and has not ended."""
        return (
            self._portal is not None
            and not self.was_forked
            and self._thread is not None
            and self._thread.is_alive()
        )

    def start(self) -> None:
        """Start the thread, and return when its event loop runs.

        Raises:
            AlreadyStartedError: It was started before.
            ForkedError: It was started before this process was forked.
        """
        self.require_same_process()
        started: Future[BlockingPortal] = Future()
        with self._submitting:
            if self._thread is not None:
                raise AlreadyStartedError(
                    f"{self._owner!r} was started before, and runs once: create another one"
                )
            self._process = current_process()
            self._thread = threading.Thread(
                target=self._run, args=(started,), name="aioinformer", daemon=True
            )
        self._thread.start()
        try:
            self._portal = started.result()
        except BaseException:  # such as KeyboardInterrupt
            if not started.cancel() and started.exception() is None:
                self._portal = started.result()
                self.stop()
            raise

    @overload
    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T: ...

    @overload
    def call(self, function: Callable[..., T], *args: Any) -> T: ...

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function, plain or async, on the event loop, and return its result.

        If the wait is interrupted, as by KeyboardInterrupt, the call is cancelled.

        Raises:
            InformerError: It was not started.
            StoppedError: It was stopped, before or meanwhile.
            ForkedError: It was started before this process was forked.
            WrongEventLoopError: Called on that event loop, which would wait for itself.
            BaseException: What the function raised.
        """
        self.require_same_process()
        if self._thread is threading.current_thread():
            raise WrongEventLoopError(
                f"{self._owner!r}: a blocking call on its own event loop would wait for itself, and was refused: "
                "handlers may make such calls, which run in threads; functions that run on the event loop, such as "
                "transforms, index functions and what Factory.call got, may not"
            )
        with self._submitting:
            if self._portal is None:
                if self._thread is None:
                    raise InformerError(
                        f"{self._owner!r} was not started: enter it with `with`, or call start()"
                    )
                raise StoppedError(f"{self._owner!r} was shut down: create another one")
            try:
                future: Future[Any] = self._portal.start_task_soon(_outcome, function, args)
            except RuntimeError as error:
                raise StoppedError(f"{self._owner!r}: its event loop has ended; the log says why") from error
        self._calls.add(future)
        if self._has_ended:
            future.cancel()
        try:
            result, raised = future.result()
        except CancelledError:
            why = "it was shut down" if self._portal is None else "its event loop ended (the log says why)"
            raise StoppedError(
                f"{self._owner!r}: {why} during a call, or what was called has cancelled itself"
            ) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            self._calls.discard(future)
        if raised is not None:
            raise raised
        return result

    def call_if_running(self, function: Callable[..., T], *args: Any) -> T:
        """Call a plain function: on the event loop while it runs, and here before that and afterwards.

        Raises:
            ForkedError, WrongEventLoopError, BaseException: As ``call``.
        """
        if self._thread is not None and (self.was_forked or self._portal is not None):
            return self.call(function, *args)
        return function(*args)

    def post(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Call an async function on the event loop without waiting for it; do nothing where that does not run.

        For finalizers, which run in any thread, also on the event loop.
        """
        if self._loop is None or not self.is_running():
            return

        def begin() -> None:
            task = asyncio.ensure_future(function())
            self._posted.add(task)
            task.add_done_callback(self._posted.discard)

        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:  # it has just ended
            logger.debug("%r: its event loop ended before a clean-up", self._owner)

    def stop(self, timeout: float | None = None) -> None:
        """Cancel the calls that still run, end the event loop, and wait for the thread. May be called again.

        Args:
            timeout: Seconds to wait for the thread, which is then left behind, with an ERROR; None waits without limit.
        """
        if self._thread is None or self.was_forked:
            return
        with self._submitting:
            portal, self._portal = self._portal, None
            if portal is None:  # stopped before; it may have been left behind
                return
            with suppress(RuntimeError):  # it has ended by itself
                portal.start_task_soon(portal.stop, True)
        self._thread.join(timeout)
        if self._thread.is_alive():
            logger.error(
                "%r: its event loop did not end within %g s, and is left behind", self._owner, timeout
            )

    def _run(self, started: Future[BlockingPortal]) -> None:
        try:
            anyio.run(self._serve, started, backend_options={"use_uvloop": self._use_uvloop})
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
                return
            self.has_failed = True
            logger.error("%r: its event loop ended: %s", self._owner, message_of(error), exc_info=error)
        finally:
            self._has_ended = True
            for call in list(self._calls):  # an event loop that failed has left them
                call.cancel()

    async def _serve(self, started: Future[BlockingPortal]) -> None:
        self._loop = asyncio.get_running_loop()
        async with BlockingPortal() as portal:
            if started.set_running_or_notify_cancel():
                started.set_result(portal)
                await portal.sleep_until_stopped()


async def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """Return a function's result, or an error that would end the event loop: it belongs to the caller."""
    try:
        result = function(*args)
        return (await result if isawaitable(result) else result), None
    except (SystemExit, KeyboardInterrupt) as error:
        return None, error
