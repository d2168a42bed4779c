"""What is waited for, on standard error, until there is something to print."""

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
from .output import printable, tell

T = TypeVar("T")


class Progress:
    """Waits, and says for what: live on a terminal, now and then elsewhere.

    Args:
        timeout: Seconds for all waiting together; None for any.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self._timeout = timeout
        self._began = _now()
        self._spinner = Spinner("dots")
        console = Console(stderr=True)
        # Standard output may lead elsewhere, and its lines are to be as they are.
        self._live = Live(
            self._spinner, console=console, transient=True, redirect_stdout=False, refresh_per_second=12.5
        )

    async def during(self, work: Coroutine[Any, Any, T], state: Callable[[], object]) -> T:
        """Wait for some work.

        Args:
            work: It.
            state: Says what is waited for.

        Raises:
            SyncTimeout: It is not done in time.
        """
        left = None if self._timeout is None else self._began + self._timeout - _now()
        showing = asyncio.create_task(self._show(state))
        try:
            with anyio.move_on_after(left):
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
            tell(str(state()))

    def end(self) -> None:
        """Take it off the terminal, for what is printed there."""
        self._live.stop()


def _now() -> float:
    return asyncio.get_running_loop().time()
