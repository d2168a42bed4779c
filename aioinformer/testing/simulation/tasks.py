"""Descriptions of what tasks await."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

MOST_PLACES = 8
"""How many functions of a traceback are shown: the last ones."""


def describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """Return a line for each unfinished task: its name and its coroutines, innermost last."""
    tasks = sorted(asyncio.all_tasks(loop), key=hash)
    return "\n".join(f"  {task.get_name()}: {describe(task)}" for task in tasks) or "  there are no tasks"


def describe(task: asyncio.Task[Any]) -> str:
    """Return a task's coroutines, innermost last, and what the innermost coroutine awaits."""
    steps = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is None:
            break
        steps.append(_place(frame.f_code, frame.f_lineno))
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    if awaited is not None and not steps:
        steps.append(repr(awaited))
    elif awaited is not None:
        steps.append(type(awaited).__name__)
    return " > ".join(steps)


def describe_traceback(raised: TracebackType) -> str:
    """Return the functions of a traceback; the last raised the error."""
    places = [_place(frame.f_code, line) for frame, line in traceback.walk_tb(raised)]
    if len(places) > MOST_PLACES:
        places[:-MOST_PLACES] = ["…"]
    return " > ".join(places)


def _place(code: CodeType, line: int) -> str:
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{line})"
