"""Output: events as a table for people or as JSON lines for programs."""

from __future__ import annotations

import atexit
import errno
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import TextIOWrapper
from typing import Any, Protocol, TextIO

import msgspec
from rich.cells import cell_len
from rich.console import Console

from .._core.log_fields import FIELDS
from .._core.lost_lines import LOST_LINES
from ..deltas import DeletedFinalStateUnknown
from ..errors import AioInformerError, DecodeError
from ..objects.kube_object import KubeObject
from ..typed import Change

UNDECODABLE = "<undecodable>"

WIDEST = 100
"""Terminal columns up to which a cell widens its column; a longer status is truncated."""

LONGEST_LINE = 4_000
"""Characters of a log message, and of each line of a traceback. Container runtimes split lines of 16 KiB."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class OutputError(AioInformerError):
    """Standard output cannot be written.

    Attributes:
        is_closed: Whether the reader closed the pipe, which is no failure.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"the output cannot be written: {cause.strerror or cause}")
        self.is_closed = isinstance(cause, BrokenPipeError)


@contextmanager
def convert_write_errors() -> Iterator[None]:
    """Convert errors of writing to standard output.

    Raises:
        OutputError: Standard output cannot be written.
    """
    if sys.stdout is None:  # closed by the caller
        raise OutputError(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    try:
        yield
    except OSError as error:
        redirect_to_null(sys.stdout)
        raise OutputError(error) from error


class _State:
    is_writing = False
    is_interrupted = False


def write(text: str) -> None:
    """Write to standard output and block until it is written; call it inside ``convert_write_errors``."""
    try:
        _State.is_writing = True
        if _State.is_interrupted:
            raise _interrupt()
        sys.stdout.write(text)
        sys.stdout.flush()
    finally:
        _State.is_writing = False


def interrupt_writes() -> None:
    """Make the current write and all later writes fail with an OutputError; for signal handlers.

    Otherwise a write to a full pipe blocks the event loop, which has to end the program.
    """
    _State.is_interrupted = True
    if _State.is_writing:
        raise _interrupt()  # Python would retry the write after EINTR


def _interrupt() -> OSError:
    return OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))


def print_error(line: str) -> None:
    """Write a line to standard error; ignore errors of writing, but count the lost lines.

    A full disk may have room again, so later lines are tried. A closed pipe stays closed.
    """
    try:
        print(printable(line), file=sys.stderr)  # noqa: T201
    except OSError as error:
        LOST_LINES.record(error)
        if error.errno in _DISK_FULL:
            atexit.unregister(_flush_at_exit)  # once
            atexit.register(_flush_at_exit, sys.stderr)
        else:
            redirect_to_null(sys.stderr)


def _flush_at_exit(stream: TextIO) -> None:
    """Write what a full disk refused, or drop it: the interpreter would exit with 120."""
    try:
        if not stream.closed:
            stream.flush()
    except OSError:
        redirect_to_null(stream)


def redirect_to_null(stream: TextIO) -> None:
    """Redirect a failed stream to the null device, because the interpreter flushes it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class LogLines(logging.Handler):
    """Prints each log message on one line and its traceback indented, so that a server's text cannot forge a line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            head = (self.formatter or logging.Formatter()).formatMessage(record)
            print_error(f"{cut(head)}{_about(record)}")
            for line in text.removeprefix(head).splitlines():
                if line:
                    print_error(f"  {cut(line)}")
        except Exception:
            self.handleError(record)


def cut(line: str) -> str:
    """Return a line of at most LONGEST_LINE characters, and how long it was: a tenant's text may be a megabyte."""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line):,} characters)"


def _about(record: logging.LogRecord) -> str:
    """Return the object that a message of ``context.logger`` is about: ``" [websites default/a]"``."""
    fields = getattr(record, FIELDS, None)
    if not isinstance(fields, dict) or "controller" not in fields:
        return ""
    return f" [{fields['controller']} {'/'.join(filter(None, (fields['namespace'], fields['name'])))}]"


def replace_unencodable() -> None:
    """Print a question mark for characters that the output's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


class Screen(Console):
    """A rich console without markup that raises BrokenPipeError; rich itself would exit the process."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Printer(Protocol):
    """Prints events."""

    def event(
        self, kind: str, key: str, obj: KubeObject | None, initial: bool, changes: Sequence[Change] = ()
    ) -> None:
        """Print an ADDED, MODIFIED or DELETED event.

        Args:
            kind: The event.
            key: The object's key.
            obj: The object; None if its last state is unknown.
            initial: Whether it is in the initial list.
            changes: The changed fields to print.
        """
        ...

    def print_synced(self, count: int, resource_version: str) -> None:
        """Print that the initial list is complete."""
        ...


class JsonLines:
    """Prints each event as a JSON object on one line.

    Args:
        full: Whether lines contain the object.
    """

    def __init__(self, full: bool) -> None:
        self._full = full
        self._encoder = msgspec.json.Encoder()
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # JSON is UTF-8 in every locale

    def event(
        self, kind: str, key: str, obj: KubeObject | None, initial: bool, changes: Sequence[Change] = ()
    ) -> None:
        line: dict[str, Any] = {
            "type": kind,
            "key": key,
            "resourceVersion": "" if obj is None else obj.resource_version,
            "initial": initial,
        }
        if changes:
            line["changes"] = [_change_line(change) for change in changes]
        if self._full:
            try:
                line["object"] = None if obj is None else obj.to_dict()
            except DecodeError as error:
                line["error"] = str(error)
        self._write(line)

    def print_synced(self, count: int, resource_version: str) -> None:
        self._write({"type": "SYNCED", "count": count, "resourceVersion": resource_version})

    def _write(self, line: dict[str, Any]) -> None:
        write(one_json_line(self._encoder.encode(line).decode()) + "\n")


class Table:
    """Prints events in aligned columns under a header.

    Args:
        namespaced: Whether to print the namespace.
        wide: Whether to print version, uid and labels.
    """

    def __init__(self, namespaced: bool, wide: bool) -> None:
        self._namespaced = namespaced
        self._wide = wide
        self._widths = [9, 12, 28, 12, 6, 10, 36, 0] if wide else [9, 12, 28, 12, 0]
        self._begun = False

    def event(
        self, kind: str, key: str, obj: KubeObject | None, initial: bool, changes: Sequence[Change] = ()
    ) -> None:
        if not self._begun:
            self._begun = True
            header = ["EVENT", "NAMESPACE", "NAME", "STATUS", "AGE"]
            self._write([*header, "VERSION", "UID", "LABELS"] if self._wide else header)
        namespace, _, name = key.rpartition("/")
        status = "unknown" if obj is None else _read(status_of, obj)
        row = [kind, namespace, name, status if len(status) <= WIDEST else f"{status[: WIDEST - 1]}…"]
        if obj is not None:
            row.append(_read(age_of, obj))
            if self._wide:
                row += [obj.resource_version, obj.uid, _read(_labels_of, obj)]
        self._write(row)
        for change in changes:
            write(f"    {printable(str(change))}\n")

    def print_synced(self, count: int, resource_version: str) -> None:
        noun = "object" if count == 1 else "objects"
        print_error(f"synced: {count:,} {noun} at version {resource_version}")

    def _write(self, row: list[str]) -> None:
        cells = []
        for column, cell in enumerate(row):
            if column == 1 and not self._namespaced:
                continue
            cell = printable(cell)
            width = cell_len(cell)  # characters take zero to two terminal columns
            if width <= WIDEST:
                self._widths[column] = max(self._widths[column], width)
            cells.append(cell + " " * (self._widths[column] - width))
        write("  ".join(cells).rstrip() + "\n")


def _change_line(change: Change) -> dict[str, Any]:
    """Return a change for a JSON line; a value that is missing has no key."""
    values = {
        name: value
        for name, value in (("old", change.old), ("new", change.new))
        if value is not msgspec.UNSET
    }
    return {"field": change.field, **values}


def one_json_line(text: str) -> str:
    """Return JSON with terminal control characters as JSON's escapes, which mean the same."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def printable(text: str) -> str:
    """Return a text with line breaks and terminal control characters escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _read(what: Callable[[KubeObject], str], obj: KubeObject) -> str:
    try:
        return what(obj)
    except DecodeError:
        return UNDECODABLE


def status_of(obj: KubeObject) -> str:
    """Return an object's status in one word: its phase, its ready replicas, or its Ready condition.

    Raises:
        DecodeError: The object cannot be decoded.
    """
    if obj["metadata"].get("deletionTimestamp") is not None:
        return "Terminating"
    status = obj.get("status")
    spec = obj.get("spec")
    if not isinstance(status, Mapping):
        return "-"
    if isinstance(status.get("phase"), str):
        return str(status["phase"])
    if isinstance(spec, Mapping) and "replicas" in spec:
        return f"{status.get('readyReplicas', 0)}/{spec['replicas']}"
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, Mapping) and condition.get("type") == "Ready":
            return "Ready" if condition.get("status") == "True" else "NotReady"
    return "-"


def age_of(obj: KubeObject) -> str:
    """Return an object's age: ``"42s"``, ``"7m"``, ``"3h"``, ``"12d"``.

    Raises:
        DecodeError: The object cannot be decoded.
    """
    created = obj.metadata.creation_timestamp
    if created is None:
        return "-"
    seconds = max(0, int((datetime.now(created.tzinfo) - created).total_seconds()))
    for unit, size, limit in (("s", 1, 120), ("m", 60, 120 * 60), ("h", 3600, 48 * 3600)):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def _labels_of(obj: KubeObject) -> str:
    return ",".join(f"{name}={value}" for name, value in obj.metadata.labels.items()) or "<none>"


def last_state(obj: KubeObject | DeletedFinalStateUnknown[KubeObject]) -> tuple[str, KubeObject | None]:
    """Return the key and the last known state of a deleted object."""
    return (obj.key, obj.obj) if isinstance(obj, DeletedFinalStateUnknown) else (obj.key, obj)
