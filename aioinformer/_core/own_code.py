"""Find the line of a user's code that raised an error, and say it."""

from __future__ import annotations

import os
import traceback
from functools import lru_cache

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = (PACKAGE, os.path.dirname(os.__file__))


def own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame in the user's code: not in this package, an installed one, or Python's own."""
    summary = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if is_own(code.co_filename):
            summary = traceback.FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)
    return summary  # it reads the file only if its line is asked for


def shown_path(path: str) -> str:
    """Return a path relative to the current folder, if it is inside."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


@lru_cache(maxsize=1024)  # a failure asks for each frame of its traceback
def is_own(path: str) -> bool:
    """Return whether a file is the user's code: not in this package, an installed one, or Python's own."""
    if path.startswith("<") or "site-packages" in path or "dist-packages" in path:
        return False
    return not any(os.path.abspath(path).startswith(folder + os.sep) for folder in FOLDERS)


def failure_text(what: str, error: BaseException) -> str:
    """Return that a user's code failed, and why: its own last line in the traceback, and the error."""
    why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{what}: {shown_path(error.filename)}, line {error.lineno}: SyntaxError: {error.msg}"
    last = own_frame(error)
    if last is None:
        return f"{what}: {why}"
    code = f" ({last.line})" if last.line else ""
    return f"{what}: {shown_path(last.filename)}, line {last.lineno}{code}: {why}"
