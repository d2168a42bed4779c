"""The ``Warning`` headers in responses of the server (client-go ``rest/warnings.go``)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice

from .._core.cancellation import CALL_ERRORS

logger = logging.getLogger(__name__)

WarningHandler = Callable[[str], object]
"""Called with the text of each warning, on the event loop."""

_REMEMBERED = 500
"""Warnings of all servers that are not logged again."""

_LONGEST = 1000
"""Characters kept of a warning. An API server sends at most 4096 bytes of warnings in a response."""

_MOST = 100
"""Warnings read from one response."""

_WARNING = re.compile(r'\s*(\d{3}) \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?\s*(?:,|$)')


def warnings_of(headers: Iterable[str]) -> list[str]:
    """Return the texts of a response's warnings, with spaces for unprintable characters.

    Args:
        headers: The values of the ``Warning`` headers. As in client-go, only code 299 counts, and values that do not
            follow RFC 7234 are skipped.
    """
    matches = (match for header in headers for match in _parse(header))
    return [_printable(match[2]) for match in islice(matches, _MOST) if match[1] == "299" and match[2]]


def _parse(header: str) -> Iterator[re.Match[str]]:
    """Yield code and quoted text of each warning in a header. Stops at the first invalid one."""
    position = 0
    while warning := _WARNING.match(header, position):
        yield warning
        position = warning.end()


def _printable(quoted: str) -> str:
    text = re.sub(r"\\(.)", r"\1", quoted[:_LONGEST])
    return "".join(character if character.isprintable() else " " for character in text)


def report_warnings(server: str, texts: Iterable[str], handler: WarningHandler | None) -> None:
    """Call a handler with each warning, or log each once.

    Args:
        server: The server's URL.
        texts: The warnings.
        handler: The function to call; None to log. An exception from it is logged once, and the request continues.
    """
    for text in texts:
        if handler is None:
            _log_once(server, text)
            continue
        try:
            handler(text)
        except CALL_ERRORS:
            _log_failure_once(server, text)


@lru_cache(_REMEMBERED)
def _log_once(server: str, text: str) -> None:
    logger.warning("%s warns: %s", server, text)


@lru_cache(_REMEMBERED)
def _log_failure_once(server: str, text: str) -> None:
    logger.exception("%s: on_warning failed on the warning %r", server, text)
