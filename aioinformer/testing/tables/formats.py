"""The formats of cells: ages and durations, labels and selectors, shortened lists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.testing.objects import value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.testing.objects import Object

    Cell = Callable[[Object], Any]

_YEAR = 365 * 24


def at(path: str, default: Any = "") -> Cell:
    """Return a cell with the value at a path, such as ``spec.nodeName``; `default` if it is missing."""
    steps = tuple(path.split("."))

    def cell(obj: Object) -> Any:
        value = value_at(obj, steps)
        return default if value is None else value

    return cell


def size(path: str) -> Cell:
    """Return a cell with the number of entries of a list or map."""
    return lambda obj: len(at(path, ())(obj))


def join(path: str, default: str = "") -> Cell:
    """Return a cell with the texts of a list; `default` for an empty list."""
    return lambda obj: ",".join(at(path, ())(obj)) or default


def age_at(path: str, default: str = "<unknown>") -> Cell:
    """Return a cell with the time since the time at a path."""
    return lambda obj: age(at(path)(obj), default)


def age(since: Any, default: str = "<unknown>") -> str:
    """Return the time since a time; `default` if there is none."""
    begun = parse_time(since)
    return default if begun is None else duration((datetime.now(UTC) - begun).total_seconds())


def parse_time(text: Any) -> datetime | None:
    """Return a time of an object, or None if the text is none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def duration(seconds: float) -> str:
    """Return a duration in kubectl's format, with two units at most."""
    passed = int(seconds)
    minutes, hours = passed // 60, passed // 3600
    days = hours // 24
    if passed < -1:
        return "<invalid>"
    if passed < 120:
        return f"{max(passed, 0)}s"
    if minutes < 10:
        return _two(minutes, "m", passed % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 2 * _YEAR:
        return f"{days}d"
    return _two(days // 365, "y", days % 365 if hours < 8 * _YEAR else 0, "d")


def _two(many: int, unit: str, few: int, small_unit: str) -> str:
    return f"{many}{unit}{few}{small_unit}" if few else f"{many}{unit}"


def labels(pairs: dict[str, str] | None) -> str:
    """Return labels as a selector; ``<none>`` without any."""
    return ",".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or "<none>"


def selector(wanted: Object | None) -> str:
    """Return a label selector as text, empty for an empty one."""
    terms = {key: f"{key}={value}" for key, value in ((wanted or {}).get("matchLabels") or {}).items()}
    parts = [*terms.items(), *map(_term, (wanted or {}).get("matchExpressions") or ())]
    return ",".join(text for _, text in sorted(parts, key=lambda term: term[0]))


def labels_at(path: str) -> Cell:
    """Return a cell with the labels at a path as a selector."""
    return lambda obj: labels(at(path, None)(obj))


def selector_at(path: str, empty: str = "<none>") -> Cell:
    """Return a cell with the label selector at a path; `empty` for an empty one."""
    return lambda obj: selector(at(path, None)(obj)) or empty


def _term(expression: Object) -> tuple[str, str]:
    key, values = str(expression["key"]), ",".join(sorted(expression.get("values") or ()))
    match expression["operator"]:
        case "Exists":
            return key, key
        case "DoesNotExist":
            return key, f"!{key}"
        case operator:
            return key, f"{key} {operator.lower()} ({values})"


def shorten(texts: Sequence[str], *, most: int = 3, empty: str = "", separator: str = ",") -> str:
    """Return the first of some texts and the number of the others."""
    shown = separator.join(texts[:most])
    return f"{shown} + {len(texts) - most} more..." if len(texts) > most else shown or empty


def name_of_class(*annotations: str) -> Cell:
    """Return a cell with the name of a class; each of these annotations can make it the default class."""

    def cell(obj: Object) -> str:
        metadata = obj["metadata"]
        given = metadata.get("annotations") or {}
        is_default = any(given.get(annotation) == "true" for annotation in annotations)
        return f"{metadata['name']} (default)" if is_default else str(metadata["name"])

    return cell
