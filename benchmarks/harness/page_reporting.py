"""Keep the host from reclaiming free memory while a run measures.

The host of a virtual machine may reclaim the guest's free memory (the kernel's page reporting). The next allocation
then waits for the host: 10 µs per page instead of 2. This doubles the cost of syncing a large collection and blocks an
event loop for 20 ms, which is not caused by the measured client.
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
"""The kernel's parameter: free memory is reported in blocks of 2**order pages."""
LARGEST_ORDER = 10
"""The largest block order. A higher value turns reporting off."""

BLOCK = 2**30
"""Bytes per mapping."""
RESERVED = 2 * 2**30
"""Bytes that are left to other processes."""

KEPT = "The host of this virtual machine reclaims free memory; this was turned off during the run."
TAKEN = (
    "The host of this virtual machine reclaims free memory: allocating new memory costs up to ten times "
    "as much as normal, which affects all figures of syncs and of lag."
)


@contextmanager
def keep_memory(console: Console, order: Path = ORDER, most: int | None = None) -> Iterator[str]:
    """Turn page reporting off, if the machine has it, and touch all free memory once. This takes a minute.

    Args:
        console: For progress and warnings.
        order: The file of the kernel's parameter. Its value is restored afterwards.
        most: Bytes to touch; None for what is free.

    Yields:
        A note for the report; ``""`` on machines without page reporting.
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
        console.print(f"{TAKEN} To turn this off, run as root. ({error})", markup=False)
        yield TAKEN
        return
    try:
        touch(console, _free() if most is None else most)
        yield KEPT
    finally:
        order.write_text(str(before))


def touch(console: Console, size: int) -> None:
    """Allocate this many bytes from the host, and free them."""
    with ExitStack() as stack:
        for _ in track(range(size // BLOCK), "getting memory back from the host", console=console):
            populated = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
            stack.enter_context(mmap.mmap(-1, BLOCK, flags=populated))


def _free() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - RESERVED
