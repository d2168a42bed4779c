"""Where the embedded server is known to answer other than the real one, and why that is all right.

Everything that is not named here has to be equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .recording import Recorded

WORDS = "words"
"""Status code and reason are equal; message and details may differ."""

ANYTHING = "anything"
"""What is answered is another thing altogether."""


class Known(NamedTuple):
    """A known difference.

    Attributes:
        request: Matches the requests (as they are recorded) that it is about.
        differs: WORDS or ANYTHING.
        why: The reason.
    """

    request: str
    differs: str
    why: str


KNOWN: tuple[Known, ...] = ()


def known(request: str) -> Known | None:
    """The difference that a request is known for."""
    return next((each for each in KNOWN if re.search(each.request, request)), None)


def compare(embedded: Recorded, real: Recorded) -> tuple[Any, Any]:
    """What has to be equal of two answers to a request."""
    difference = known(embedded.request)
    if difference is not None and difference.differs == ANYTHING:
        return None, None
    ours, theirs = (_masked(_without_empty(each.body)) for each in (embedded, real))
    if difference is not None:
        ours, theirs = _without_words(ours), _without_words(theirs)
    return (embedded.status, ours), (real.status, _what_we_have(ours, theirs))


def _without_empty(value: Any) -> Any:
    """Go leaves out fields that are empty; the embedded server keeps what a client has written."""
    if isinstance(value, dict):
        left = {name: _without_empty(each) for name, each in value.items()}
        return {
            name: each
            for name, each in left.items()
            if name in _EMPTY_COUNTS or each not in ({}, [], "", None)
        }
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


_EMPTY_COUNTS = ("items", "continue", "labels")


def _masked(value: Any) -> Any:
    """Bookmarks come when the server likes. A table's columns have descriptions there, and ages pass."""
    if isinstance(value, list):
        return [_masked(each) for each in value if not _is_ordinary_bookmark(each)]
    if isinstance(value, dict):
        masked = {name: _masked(each) for name, each in value.items()}
        for column in masked.get("columnDefinitions", ()):
            column.pop("description", None)
        return masked
    return "AGE" if isinstance(value, str) and _AGE.fullmatch(value) else value


_AGE = re.compile(r"\d+s")


def _is_ordinary_bookmark(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and event.get("type") == "BOOKMARK"
        and "annotations" not in event["object"]["metadata"]
    )


def _without_words(status: Any) -> Any:
    if isinstance(status, dict) and status.get("kind") == "Status":
        return {name: each for name, each in status.items() if name not in ("message", "details")}
    return status


def _what_we_have(ours: Any, theirs: Any) -> Any:
    """The real server fills in defaults all over spec and status of built-in kinds: of those only what is here too."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return _side_by_side(_what_we_have, ours, theirs)
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return theirs
    result = dict(theirs)
    if isinstance(theirs.get("metadata"), dict):
        for part in ("spec", "status"):
            if isinstance(theirs.get(part), dict):
                result[part] = _shared(ours.get(part, {}), theirs[part])
                if not result[part] and part not in ours:
                    del result[part]
    for part in ("items", "object", "rows"):
        if part in theirs and part in ours:
            result[part] = _what_we_have(ours[part], theirs[part])
    return result


def _shared(ours: Any, theirs: Any) -> Any:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {name: _shared(ours[name], each) for name, each in theirs.items() if name in ours}
    if isinstance(ours, list) and isinstance(theirs, list):
        return _side_by_side(_shared, ours, theirs)
    return theirs


def _side_by_side(how: Callable[[Any, Any], Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
    paired = [how(mine, other) for mine, other in zip(ours, theirs, strict=False)]
    return paired + theirs[len(paired) :]
