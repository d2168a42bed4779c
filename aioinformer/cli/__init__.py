"""The command line: ``aioinformer watch``, ``aioinformer demo`` and ``aioinformer bench``."""

from __future__ import annotations

import os
import sys

UNFINISHED = "interrupted before the whole list was printed"


def main() -> None:
    """Run the command line; without its extra say how to get it."""
    if sys.stderr is None:  # closed before this process began; print would take standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"aioinformer: the command line needs {error.name}: pip install 'aioinformer[cli]'")
    except KeyboardInterrupt:  # as when it runs
        if "--until-synced" in sys.argv:
            print(f"aioinformer: {UNFINISHED}", file=sys.stderr)  # noqa: T201
            sys.exit(130)
        return
    app(prog_name="aioinformer")
