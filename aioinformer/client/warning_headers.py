"""Warnings in answers: the server's ``Warning`` headers (client-go ``rest/warnings.go``)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice

logger = logging.getLogger(__name__)

WarningHandler = Callable[[str], object]
"""Called with the text of each warning, on the event loop."""

_REMEMBERED = 500
"""Warnings that are not logged again, of all servers together."""

_LONGEST = 1000
"""Characters of a warning that are kept. An API server sends at most 4096 bytes of warnings with an answer."""

_MOST = 100
"""Warnings of one answer that are read."""

_WARNING = re.compile(r'\s*(\d{3}) \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?\s*(?:,|$)')


def warnings_of(headers: Iterable[str]) -> list[str]:
    """Return the texts of an answer's warnings, without characters that a terminal would not show.

    Args:
        headers: The values of its ``Warning`` headers. As in client-go, only code 299 counts, and what is not
            written by RFC 7234 is left out.
    """
    found = (match for header in headers for match in _parsed(header))
    return [_printable(match[2]) for match in islice(found, _MOST) if match[1] == "299" and match[2]]


def _parsed(header: str) -> Iterator[re.Match[str]]:
    """Yield code and quoted text of each warning in a header, up to one that cannot be parsed."""
    position = 0
    while warning := _WARNING.match(header, position):
        yield warning
        position = warning.end()


def _printable(quoted: str) -> str:
    text = re.sub(r"\\(.)", r"\1", quoted[:_LONGEST])
    return "".join(each if each.isprintable() else " " for each in text)


def hand_on(server: str, texts: Iterable[str], handler: WarningHandler | None) -> None:
    """Give warnings to a handler, or log each once.

    Args:
        server: Its URL.
        texts: What it warns of.
        handler: What is called; None to log. An exception from it is logged once, and the request goes on.
    """
    for text in texts:
        if handler is None:
            _log_once(server, text)
            continue
        try:
            handler(text)
        except Exception:
            _log_failure_once(server, text)


@lru_cache(_REMEMBERED)
def _log_once(server: str, text: str) -> None:
    logger.warning("%s warns: %s", server, text)


@lru_cache(_REMEMBERED)
def _log_failure_once(server: str, text: str) -> None:
    logger.exception("%s: on_warning failed on the warning %r", server, text)
