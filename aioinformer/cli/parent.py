"""End the child of ``aioinformer run --dev`` with its parent, however the parent ends."""

from __future__ import annotations

import os
import signal
import threading
import time

OPTION = "--end-with-stdin"
"""Tells the child that its standard input is a pipe which the parent keeps open."""

STEPS = ((signal.SIGTERM, 3.0), (signal.SIGTERM, 15.0), (signal.SIGKILL, 0.0))
"""How a child ends: signals, and how many seconds it may take after each. The second one cancels reconciles."""


def end_with_stdin() -> None:
    """Watch standard input in a thread; when it ends, end this process by STEPS. A killed parent closes it, too."""
    threading.Thread(target=_watch, name="end with stdin", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    for number, patience in STEPS:
        os.kill(os.getpid(), number)
        time.sleep(patience)
