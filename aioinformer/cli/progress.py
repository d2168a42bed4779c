"""The progress of waiting, on standard error, until there are events to print."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from .._core.tasks import finish
from ..errors import SyncTimeout
from .output import print_error, printable

T = TypeVar("T")


class Progress:
    """Shows what the command waits for: live on a terminal, otherwise every 5 s.

    Args:
        timeout: Seconds for all waits together; None for no limit.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self._timeout = timeout
        self._began = _now()
        self._spinner = Spinner("dots")
        console = Console(stderr=True)
        # Rich must not capture standard output, which may not be the terminal.
        self._live = Live(
            self._spinner, console=console, transient=True, redirect_stdout=False, refresh_per_second=12.5
        )

    async def show_during(self, work: Coroutine[Any, Any, T], state: Callable[[], object]) -> T:
        """Await some work and show its state meanwhile.

        Args:
            work: The work.
            state: Returns the state to show.

        Raises:
            SyncTimeout: The work did not finish in time.
        """
        remaining = None if self._timeout is None else self._began + self._timeout - _now()
        showing = asyncio.create_task(self._show(state))
        try:
            with anyio.move_on_after(remaining):
                return await work
            raise SyncTimeout(f"not synced after {self._timeout:g} s: {state()}")
        finally:
            await finish(showing)

    async def _show(self, state: Callable[[], object]) -> None:
        if sys.stderr.isatty():
            with self._live:
                while True:
                    self._spinner.update(text=Text(printable(str(state()))))
                    await asyncio.sleep(0.2)
        while True:
            await asyncio.sleep(5)
            print_error(str(state()))

    def end(self) -> None:
        """Remove the display from the terminal, so that events can be printed."""
        self._live.stop()


def _now() -> float:
    return asyncio.get_running_loop().time()
