"""The files of an operator's project: the operator reports what it has loaded, and ``--dev`` waits for changes."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from .._core.files import replace_file
from .._core.own_code import is_own, shown_path
from ..errors import ConfigError

logger = logging.getLogger(__name__)

OPTION = "--report-sources"
"""Names the file into which the operator writes the paths of its project's files."""

POLL = 0.5
"""Seconds between checks of the files, and of the modules that are loaded."""
SOON = 5.0
"""Seconds after the operator was loaded. A change so soon may be its own."""
LONGEST_PAUSE = 60.0
MOST_FILES = 2_000
"""Files of one folder that are watched."""

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})

Times = dict[str, int]
"""When each file was changed; 0 for a file that does not exist."""


class Report(msgspec.Struct):
    """What the operator writes.

    Attributes:
        times: The files of its project, and when they were changed.
        is_loaded: Whether it could be loaded. If not, some of its modules are missing.
    """

    times: Times
    is_loaded: bool


class Sources:
    """The files of a project, in the process of ``--dev``.

    Args:
        module: The operator's module. Until the operator has reported its files, the Python files beside it count.
        report: The file that the operator writes.

    Raises:
        ConfigError: There is no such module.
    """

    def __init__(self, module: str, report: Path) -> None:
        top = module.partition(".")[0]
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        spec = importlib.util.find_spec(top)
        if spec is None or (spec.origin is None and not spec.submodule_search_locations):
            raise ConfigError(f"there is no module {top!r} in {os.getcwd()} or where Python looks")
        folders = spec.submodule_search_locations or [os.path.dirname(spec.origin or "")]
        self.report = report
        self._seen = times_of(path for folder in folders for path in _files_in(folder, ".py"))
        self._restarts = 0  # in a row, soon after a start

    async def wait_changed(self) -> None:
        """Wait until a file is changed or removed. If that happens soon after each start, wait longer each time."""
        loaded, is_loaded = time.monotonic(), False
        while True:
            await asyncio.sleep(POLL)
            if self._take_report() and not is_loaded:
                loaded, is_loaded = time.monotonic(), True
            now = times_of(self._seen)
            changed = [path for path, changed_at in self._seen.items() if now[path] != changed_at]
            self._seen = now
            if changed:
                await self._pause(shown_path(min(changed)), time.monotonic() - loaded)
                return

    def _take_report(self) -> bool:
        """Take the files that the operator has reported, besides the known ones if it failed; return whether it did."""
        try:
            content = self.report.read_bytes()
            self.report.unlink()
        except FileNotFoundError:
            return False
        report = msgspec.json.decode(content, type=Report)
        known = self._seen  # the operator may have read a file before its last change
        if report.is_loaded:
            self._seen = {path: known.get(path, changed_at) for path, changed_at in report.times.items()}
        else:
            self._seen = report.times | known
        return True

    async def _pause(self, path: str, seconds: float) -> None:
        self._restarts = self._restarts + 1 if seconds < SOON else 0
        if self._restarts < 2:
            logger.info("%s has changed: restarting", path)
            return
        pause = min(2.0 ** (self._restarts - 2), LONGEST_PAUSE)
        logger.warning(
            "%s has changed: restarting in %g s, because files changed soon after each of the last %d starts. Does the "
            "operator write them? Then let it write elsewhere",
            path, pause, self._restarts,
        )  # fmt: skip
        await asyncio.sleep(pause)
        self._seen = times_of(self._seen)


def report_sources(report: Path, *, is_loaded: bool) -> None:
    """Write the paths of the project's files; if it was loaded, again whenever modules were loaded, from a thread."""
    if not is_loaded:  # the module that failed is not among the loaded ones
        _write(report, project_files() | {*_files_in(os.getcwd(), ".py")}, is_loaded=False)
        return
    known = len(sys.modules)
    _write(report, project_files(), is_loaded=True)

    def follow() -> None:
        nonlocal known
        while True:
            time.sleep(POLL)
            if len(sys.modules) != known:
                known = len(sys.modules)
                try:
                    _write(report, project_files(), is_loaded=True)
                except OSError:  # the folder is gone, and --dev with it
                    return

    threading.Thread(target=follow, name="report sources", daemon=True).start()


def _write(report: Path, paths: Iterable[str], *, is_loaded: bool) -> None:
    replace_file(report, msgspec.json.encode(Report(times_of(paths), is_loaded)))


def project_files() -> set[str]:
    """Return the files of the loaded modules that are not installed, and the data files beside them."""
    modules = {
        os.path.abspath(path)
        for module in list(sys.modules.values())
        if isinstance(path := getattr(module, "__file__", None), str) and is_own(path)
    }
    folders = {os.path.dirname(path) for path in modules}
    outer = [folder for folder in folders if not any(folder.startswith(other + os.sep) for other in folders)]
    data = {path for folder in outer for path in _files_in(folder) if not path.endswith((".py", ".pyc"))}
    return modules | data


def times_of(paths: Iterable[str]) -> Times:
    """Return when each file was changed; 0 for a file that does not exist."""
    return {path: _changed_at(path) for path in paths}


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _files_in(folder: str, suffix: str = "") -> Iterator[str]:
    """Yield the files of a folder and of those inside, up to MOST_FILES; not hidden ones, nor those of environments."""
    return islice((path for path in _walk(folder) if path.endswith(suffix)), MOST_FILES)


def _walk(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in _SKIPPED
            and not name.startswith(".")
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(place, name) for name in files if not name.startswith("."))
