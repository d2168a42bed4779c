"""The command line: ``aioinformer init``, ``run``, ``manifests``, ``doctor``, ``watch``, ``demo`` and ``bench``."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from .messages import LIST_UNFINISHED, NO_REPORT


def main() -> None:
    """Run the command line; if its dependencies are missing, say how to install them."""
    if sys.stderr is None:  # closed by the caller; print would write to stdout
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until exit
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from .app import app
        from .output import OutputError, redirect_to_null
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"aioinformer: the command line needs {error.name}: pip install 'aioinformer[cli]'")
    try:
        app(prog_name="aioinformer")
    except OSError as error:  # from printing the help
        redirect_to_null(sys.stdout)
        sys.exit(f"aioinformer: {OutputError(error)}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C before the event loop runs, with the same exit code and message as later."""
    command = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    unfinished = LIST_UNFINISHED if "--until-synced" in sys.argv else NO_REPORT if command == "bench" else ""
    if unfinished:
        print(f"aioinformer: {unfinished}", file=sys.stderr)  # noqa: T201
    sys.exit(128 + number if unfinished else 0)
