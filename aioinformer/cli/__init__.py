"""The command line: ``aioinformer watch``, ``aioinformer demo`` and ``aioinformer bench``."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

UNFINISHED = "interrupted before the whole list was printed"
NO_REPORT = "interrupted before there was a report"


def main() -> None:
    """Run the command line; without its extra say how to get it."""
    if sys.stderr is None:  # closed before this process began; print would take standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    try:
        from .app import app
        from .output import OutputError, lead_nowhere
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"aioinformer: the command line needs {error.name}: pip install 'aioinformer[cli]'")
    try:
        app(prog_name="aioinformer")
    except OSError as error:  # of the help
        lead_nowhere(sys.stdout)
        sys.exit(f"aioinformer: {OutputError(error)}")


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Ctrl-C before anything runs that could be cancelled: ends as if it did."""
    command = next((each for each in sys.argv[1:] if not each.startswith("-")), "")
    unfinished = UNFINISHED if "--until-synced" in sys.argv else NO_REPORT if command == "bench" else ""
    if unfinished:
        print(f"aioinformer: {unfinished}", file=sys.stderr)  # noqa: T201
    sys.exit(128 + number if unfinished else 0)
