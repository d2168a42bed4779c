"""What a log message is about: the reconcile or webhook call during which it is written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Protocol

from .spans import trace_fields

FIELDS = "fields"
"""The attribute of a LogRecord that has its fields."""


class LogSource(Protocol):
    """Work that log messages are about."""

    def log_fields(self) -> Mapping[str, object]:
        """Return the fields, as a log message needs them; none when the work has ended."""
        ...


log_source: ContextVar[LogSource | None] = ContextVar("aioinformer_log_source", default=None)
"""The work of the running task, and of the tasks and threads that it started."""


def log_fields() -> dict[str, object]:
    """Return the fields of a message that is logged now: those of the work, and of the current trace."""
    source = log_source.get()
    return {**({} if source is None else source.log_fields()), **trace_fields()}


class WorkLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records have the fields of the work in ``record.fields``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = kwargs.get("extra") or {}
        kwargs["extra"] = {**extra, FIELDS: {**log_fields(), **(extra.get(FIELDS) or {})}}
        return msg, kwargs
