"""What is printed, and how: events as a table for people, as JSON lines for programs."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from io import TextIOWrapper
from typing import Any, Protocol, TextIO

import msgspec
from rich.cells import cell_len
from rich.console import Console

from ..deltas import DeletedFinalStateUnknown
from ..errors import AioInformerError, DecodeError
from ..objects.kube_object import KubeObject

UNDECODABLE = "<undecodable>"

WIDEST = 100
"""Up to how many columns of a terminal a cell makes its column wider; a longer status is cut."""


class OutputError(AioInformerError):
    """What is printed goes nowhere any more.

    Attributes:
        is_closed: Whether the reader has had enough, which is no failure.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"the output cannot be written: {cause.strerror or cause}")
        self.is_closed = isinstance(cause, BrokenPipeError)


@contextmanager
def printing() -> Iterator[None]:
    """Around what writes to standard output.

    Raises:
        OutputError: It cannot be written.
    """
    if sys.stdout is None:  # it was closed before this process began
        raise OutputError(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    try:
        yield
    except OSError as error:
        lead_nowhere(sys.stdout)
        raise OutputError(error) from error


class _State:
    is_writing = False
    is_interrupted = False


def write(text: str) -> None:
    """Write to standard output, for as long as its reader takes; to be called while ``printing``."""
    try:
        _State.is_writing = True
        if _State.is_interrupted:
            raise _interrupted()
        sys.stdout.write(text)
        sys.stdout.flush()
    finally:
        _State.is_writing = False


def interrupt_writes() -> None:
    """In a signal's handler: end a write that is under way, and would go on else, and all later ones with an
    OutputError. One of these would hold the loop, which ends the program, where nobody reads."""
    _State.is_interrupted = True
    if _State.is_writing:
        raise _interrupted()  # after EINTR it would go on


def _interrupted() -> OSError:
    return OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))


def tell(line: str) -> None:
    """Write one line to standard error. Where that is full nobody reads it, and nothing else changes."""
    try:
        print(printable(line), file=sys.stderr)  # noqa: T201
    except OSError:
        lead_nowhere(sys.stderr)


def lead_nowhere(stream: TextIO) -> None:
    """Of a stream that cannot be written: what is buffered is written once more when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class LogLines(logging.Handler):
    """Tells log records: the message in one line, a traceback in indented ones, so that no server's text is a line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            head = (self.formatter or logging.Formatter()).formatMessage(record)
            tell(head)
            for line in text.removeprefix(head).splitlines():
                if line:
                    tell(f"  {line}")
        except Exception:
            self.handleError(record)


def print_anything() -> None:
    """Let what the encoding of the output cannot say be a question mark: an event is worth more than a letter in it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


class Screen(Console):
    """Standard output by rich, with strings as they are. Rich would end the process where the reader has had enough."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Printer(Protocol):
    """Prints events."""

    def event(self, kind: str, key: str, obj: KubeObject | None, initial: bool) -> None:
        """One object was ADDED, MODIFIED or DELETED. The object is None where a deletion left nothing known."""
        ...

    def synced(self, count: int, resource_version: str) -> None:
        """Everything that was there at the beginning has been printed."""
        ...


class JsonLines:
    """One JSON object a line.

    Args:
        full: Whether lines carry the object.
    """

    def __init__(self, full: bool) -> None:
        self._full = full
        self._encoder = msgspec.json.Encoder()
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as JSON is, wherever it goes

    def event(self, kind: str, key: str, obj: KubeObject | None, initial: bool) -> None:
        line: dict[str, Any] = {
            "type": kind,
            "key": key,
            "resourceVersion": "" if obj is None else obj.resource_version,
            "initial": initial,
        }
        if self._full:
            try:
                line["object"] = None if obj is None else obj.to_dict()
            except DecodeError as error:
                line["error"] = str(error)
        self._write(line)

    def synced(self, count: int, resource_version: str) -> None:
        self._write({"type": "SYNCED", "count": count, "resourceVersion": resource_version})

    def _write(self, line: dict[str, Any]) -> None:
        text = self._encoder.encode(line).decode()
        if not text.isprintable():  # as JSON may have it: programs read the same, terminals do nothing
            text = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
        write(text + "\n")


class Table:
    """Aligned columns, a header once.

    Args:
        namespaced: Whether there is a column for the namespace.
        wide: Whether there are columns for version, uid and labels.
    """

    def __init__(self, namespaced: bool, wide: bool) -> None:
        self._namespaced = namespaced
        self._wide = wide
        self._widths = [9, 12, 28, 12, 6, 10, 36, 0] if wide else [9, 12, 28, 12, 0]
        self._begun = False

    def event(self, kind: str, key: str, obj: KubeObject | None, initial: bool) -> None:
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

    def synced(self, count: int, resource_version: str) -> None:
        noun = "object" if count == 1 else "objects"
        tell(f"synced: {count:,} {noun} at version {resource_version}")

    def _write(self, row: list[str]) -> None:
        cells = []
        for column, cell in enumerate(row):
            if column == 1 and not self._namespaced:
                continue
            cell = printable(cell)
            width = cell_len(cell)  # of a terminal, where letters take none to two
            if width <= WIDEST:
                self._widths[column] = max(self._widths[column], width)
            cells.append(cell + " " * (self._widths[column] - width))
        write("  ".join(cells).rstrip() + "\n")


def printable(text: str) -> str:
    """A text in one line that moves no cursor: what would is escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _read(what: Callable[[KubeObject], str], obj: KubeObject) -> str:
    try:
        return what(obj)
    except DecodeError:
        return UNDECODABLE


def status_of(obj: KubeObject) -> str:
    """One word on how an object is doing: its phase, its ready replicas, or its Ready condition.

    Raises:
        DecodeError: It cannot be read.
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
    """For how long an object has existed: ``"42s"``, ``"7m"``, ``"3h"``, ``"12d"``.

    Raises:
        DecodeError: It cannot be read.
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
    """Key and last known state of a deleted object."""
    return (obj.key, obj.obj) if isinstance(obj, DeletedFinalStateUnknown) else (obj.key, obj)
