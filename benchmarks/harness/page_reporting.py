"""Keeps free memory from the host while a run measures.

The host of a virtual machine may take back what is free there (the kernel's page reporting). Whoever has it next waits
for the host: 10 µs a page instead of 2, which makes the sync of a large collection twice as dear, holds an event loop
for 20 ms, and is nobody's doing who is measured.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import track

ORDER = Path("/sys/module/page_reporting/parameters/page_reporting_order")
"""The kernel's parameter: free memory is given back in blocks of so many pages, as a power of two."""
LARGEST_ORDER = 10
"""Larger blocks there are not: where one is asked for, none is given back."""

BLOCK = 2**30
"""Bytes that are touched at once."""
LEFT = 2 * 2**30
"""Bytes that are left to all else."""

KEPT = "The host of this virtual machine takes free memory back, and was kept from it during the run."
TAKEN = (
    "The host of this virtual machine takes free memory back: new memory costs whoever asks for it up to ten times "
    "as much as it should, which is in all figures of syncs and of lag."
)


@contextmanager
def keeping_memory(console: Console, order: Path = ORDER, most: int | None = None) -> Iterator[str]:
    """Have free memory stay, if this is a machine where it does not, and touch it all once: a minute's work.

    Args:
        console: Is told.
        order: The kernel's parameter. What it was before it is again afterwards.
        most: Bytes to touch; None for what is free.

    Yields:
        What a report is to say of it; ``""`` where free memory stays anyhow.
    """
    try:
        before = int(order.read_text())
    except (OSError, ValueError):
        before = LARGEST_ORDER + 1
    if before > LARGEST_ORDER:
        yield ""
        return
    try:
        order.write_text(str(LARGEST_ORDER + 1))
    except OSError as error:
        console.print(f"{TAKEN} To have it kept, run this as root. ({error})", markup=False)
        yield TAKEN
        return
    try:
        touch(console, _free() if most is None else most)
        yield KEPT
    finally:
        order.write_text(str(before))


def touch(console: Console, size: int) -> None:
    """Have so many bytes from the host, and let go of them."""
    with ExitStack() as stack:
        for _ in track(range(size // BLOCK), "having memory back from the host", console=console):
            populated = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
            stack.enter_context(mmap.mmap(-1, BLOCK, flags=populated))


def _free() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - LEFT
