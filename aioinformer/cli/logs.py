"""Logs of a running operator: lines for people, or JSON objects for programs."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import msgspec

from .output import LogLines, print_error


class JsonLog(logging.Handler):
    """Prints each log message as a JSON object on one line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line: dict[str, Any] = {
                "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
            }
            if record.exc_info:
                line["traceback"] = logging.Formatter().formatException(record.exc_info)
            print_error(msgspec.json.encode(line).decode())
        except Exception:
            self.handleError(record)


def set_up(*, is_json: bool, level: int) -> None:
    """Log everything from a level on."""
    handler = JsonLog() if is_json else LogLines()
    logging.basicConfig(
        level=level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[handler],
        force=True,
    )
