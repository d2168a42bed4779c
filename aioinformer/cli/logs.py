"""Logs of a running operator: lines for people, or JSON objects for programs."""

from __future__ import annotations

import json
import logging
import math
import sys
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any

from .._core.log_fields import FIELDS, log_fields
from .._core.texts import valid_text
from ..errors import shorten
from .output import LONGEST_LINE, LogLines, cut, one_json_line, print_error

_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
"""Attributes of each record."""


class JsonLog(logging.Handler):
    """Prints each log message as a JSON object on one line, also one that cannot be formatted."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print_error(one_json_line(valid_text(_json_of(_line_of(record)))))
        except Exception:
            self.handleError(record)


def _line_of(record: logging.LogRecord) -> dict[str, Any]:
    line: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "message": cut(_message_of(record)),
    }
    if record.exc_info:
        traceback = logging.Formatter().formatException(record.exc_info)
        line["traceback"] = "\n".join(map(cut, traceback.split("\n")))
    if record.stack_info:
        line["stack"] = record.stack_info
    return line | {name: value for name, value in _fields_of(record).items() if name not in line}


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a record says beside its message: of the reconcile that logged it, and by ``extra``."""
    fields = log_fields()
    if record.exc_info and record.exc_info[0] is not None:
        fields["error_type"] = record.exc_info[0].__name__
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    given = extra.pop(FIELDS, None)
    return fields | extra | (given if isinstance(given, dict) else {})


def _json_of(line: dict[str, Any]) -> str:
    try:
        return json.dumps(line, ensure_ascii=False, default=_show, allow_nan=False)
    except Exception:  # NaN, a key that is no text, a value that contains itself
        texts = {
            name if isinstance(name, str) else _show(name): value if _is_plain(value) else _show(value)
            for name, value in line.items()
        }
        return json.dumps(texts, ensure_ascii=False)


def _show(value: object) -> str:
    return shorten(value, LONGEST_LINE)


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:
        return f"{_show(record.msg)} cannot be formatted with its arguments: {type(error).__name__}"


def set_up(*, is_json: bool, level: int) -> None:
    """Log everything from a level on, Python's warnings too."""
    handler = JsonLog() if is_json else LogLines()
    logging.basicConfig(
        level=level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[handler],
        force=True,
    )
    logging.captureWarnings(True)
    if is_json and isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8")  # JSON is UTF-8 in every locale


def is_json_log() -> bool:
    """Return whether the log is JSON, so that nothing else may be written to standard error."""
    return any(isinstance(handler, JsonLog) for handler in logging.getLogger().handlers)
