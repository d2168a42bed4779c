"""Schedules of CronJobs: what is wrong with one, in the words of the real server's parser."""

from __future__ import annotations

import re

from aioinformer.testing.strconv import parse_int

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
# The lowest and highest values of the five fields, with their names.
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class _ScheduleError(Exception):
    """A part of a schedule is invalid."""


def schedule_fault(schedule: str) -> str:
    """Return what is wrong with a schedule, or `""`."""
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        is_known = schedule in _MACROS or re.fullmatch("@every ([0-9.]+(ns|us|ms|s|m|h))+", schedule)
        return "" if is_known else f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, limits in zip(fields, _FIELDS, strict=True):
            for part in field.split(","):
                _check_part(part, *limits)
    except _ScheduleError as error:
        return str(error)
    return ""


def _check_part(part: str, lowest: int, highest: int, names: dict[str, int]) -> None:
    """Check `*`, `*/step`, `number`, `low-high` or `low-high/step`."""
    span, *steps = part.split("/")
    if len(steps) > 1:
        raise _ScheduleError(f"too many slashes: {part}")
    if span in ("*", "?"):
        low, high = lowest, highest
    else:
        ends = span.split("-")
        if len(ends) > 2:
            raise _ScheduleError(f"too many hyphens: {part}")
        low, *rest = [names[end.lower()] if end.lower() in names else _number(end) for end in ends]
        high = rest[0] if rest else highest if steps else low
    if low < lowest:
        raise _ScheduleError(f"beginning of range ({low}) below minimum ({lowest}): {part}")
    if high > highest:
        raise _ScheduleError(f"end of range ({high}) above maximum ({highest}): {part}")
    if low > high:
        raise _ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {part}")
    if steps and _number(steps[0]) == 0:
        raise _ScheduleError(f"step of range should be a positive number: {part}")


def _number(text: str) -> int:
    try:
        number = parse_int(text, "Atoi")
    except ValueError as error:
        raise _ScheduleError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise _ScheduleError(f"negative number ({text}) not allowed: {text}")
    return number
