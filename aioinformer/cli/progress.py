"""How far an informer is, on standard error, until there is something to print."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ..informer import SharedIndexInformer
from .output import printable, tell


class Progress:
    """An informer's state: live on a terminal, now and then elsewhere."""

    def __init__(self, informer: SharedIndexInformer[Any]) -> None:
        self._informer = informer
        self._spinner = Spinner("dots")
        console = Console(stderr=True)
        # Standard output may lead elsewhere, and its lines are to be as they are.
        self._live = Live(
            self._spinner, console=console, transient=True, redirect_stdout=False, refresh_per_second=12.5
        )

    async def show(self) -> None:
        """Show it until cancelled."""
        if sys.stderr.isatty():
            with self._live:
                while True:
                    self._spinner.update(text=Text(printable(str(self._informer.state))))
                    await asyncio.sleep(0.2)
        while True:
            await asyncio.sleep(5)
            tell(str(self._informer.state))

    def end(self) -> None:
        """Take it off the terminal, for what is printed there."""
        self._live.stop()
