"""Objects that belong to the event loop, and the process, that started them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Never

from ..errors import WrongEventLoopError
from .forks import Process, current_process, require_same_process


def require_running_loop(what: object) -> asyncio.AbstractEventLoop:
    """Return the running event loop.

    Args:
        what: What needs it, for the error.

    Raises:
        WrongEventLoopError: There is none.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise WrongEventLoopError(
            f"{what} needs asyncio's event loop, and none is running here: use it in a coroutine, "
            f"such as main() in asyncio.run(main()); {BLOCKING}"
        ) from None


BLOCKING = "code without an event loop uses aioinformer.blocking"
"""Where code without an event loop finds the same, for errors."""


class AsyncOnly:
    """A context manager for ``async with`` only; a plain ``with`` says so."""

    if not TYPE_CHECKING:  # type checkers refuse a plain ``with`` themselves

        def __enter__(self) -> Never:
            raise WrongEventLoopError(
                f"{self!r} needs `async with`, in a coroutine such as main() in asyncio.run(main()); {BLOCKING}"
            )

        def __exit__(self, *exc_info: object) -> None:
            """Do nothing: ``__enter__`` has raised."""


class InOneLoop(AsyncOnly):
    """An object that belongs to one event loop of one process."""

    _loop: asyncio.AbstractEventLoop | None = None
    _own_process: Process | None = None  # in which that loop runs

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked after the object was started, which runs in the parent process only."""
        return self._own_process is not None and self._own_process.was_forked

    def require_own_loop(self) -> None:
        """Check that the object's own event loop calls; the first caller's loop becomes that.

        Raises:
            ForkedError: The process was forked since.
            WrongEventLoopError: Another event loop or thread calls, or no event loop runs here.
        """
        require_same_process(self._own_process, repr(self))
        own = self._loop
        if own is None:
            self._loop, self._own_process = require_running_loop(repr(self)), current_process()
            return
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is own:
            return
        if own.is_closed():
            where = f"a coroutine, as none is running here; {BLOCKING}" if running is None else "this one"
            raise WrongEventLoopError(
                f"{self!r} ran in another event loop, which has ended: create it again in {where}"
            )
        if running is None:
            raise WrongEventLoopError(
                f"{self!r} runs in an event loop, and none is running here: call it in that event loop, by "
                f"asyncio.run_coroutine_threadsafe or loop.call_soon_threadsafe; {BLOCKING}"
            )
        raise WrongEventLoopError(
            f"{self!r} runs in another event loop; from this one, call it by asyncio.run_coroutine_threadsafe or "
            "loop.call_soon_threadsafe with that loop"
        )
