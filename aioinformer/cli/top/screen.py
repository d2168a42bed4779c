"""The screen of ``aioinformer top``, by textual."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Static

from ...errors import AioInformerError, message_of
from ...operator.debug_page import Read
from ..output import printable
from .table import Table, shorten
from .tables import Reading, show

TABLES = ("informers", "handlers", "controllers", "slots", "failing")


class Top(App[None]):
    """Shows snapshots as tables.

    Args:
        read: Returns a snapshot.
        every: Seconds between snapshots.
    """

    TITLE = "aioinformer top"
    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit"), ("p", "pause", "Pause")]
    CSS = """
    #headline { height: auto; background: $primary-background; padding: 0 1; }
    .title { text-style: bold; padding: 1 1 0 1; }
    DataTable { height: auto; max-height: 20; }
    """

    def __init__(self, read: Read, every: float) -> None:
        super().__init__()
        self._read = read
        self._every = every
        self._before: Reading | None = None
        self.is_paused = False

    def compose(self) -> ComposeResult:
        yield Static(id="headline", markup=False)
        with VerticalScroll():
            for name in TABLES:
                yield Static(id=f"{name}-title", classes="title", markup=False)
                yield DataTable(id=name, cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        self.run_worker(self._show_snapshots(), exit_on_error=True)

    def action_pause(self) -> None:
        """Pause, or go on."""
        self.is_paused = not self.is_paused

    async def _show_snapshots(self) -> None:
        while True:
            if not self.is_paused:
                await self._show()
            await asyncio.sleep(self._every)

    async def _show(self) -> None:
        head = self.query_one("#headline", Static)
        try:
            now = Reading(asyncio.get_running_loop().time(), await self._read())
            if self.is_paused:  # meanwhile
                return
            headline, tables = show(self._before, now)
        except AioInformerError as error:
            head.update(shorten(message_of(error)))
            return
        head.update(printable(headline))
        for name, table in zip(TABLES, tables, strict=True):
            self._fill(name, table)
        self._before = now

    def _fill(self, name: str, table: Table) -> None:
        title, widget = self.query_one(f"#{name}-title", Static), self.query_one(f"#{name}", DataTable)
        title.display = widget.display = bool(table.rows)
        title.update(table.title)
        if not widget.columns:
            widget.add_columns(*table.columns)
        row = widget.cursor_row
        widget.clear()
        for cells in table.rows:
            widget.add_row(*(Text(shorten(cell)) for cell in cells))
        widget.move_cursor(row=min(row, len(table.rows) - 1))
