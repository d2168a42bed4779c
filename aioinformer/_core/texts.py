"""Texts of others that become ours: in conditions, Events, answers, metrics and logs."""

from __future__ import annotations


def valid_text(text: str) -> str:
    """Return a text that UTF-8 and JSON can hold: half a surrogate pair becomes ``?``.

    Python reads a file name that is not UTF-8 as a text with half pairs.
    """
    return text if text.isascii() else text.encode(errors="replace").decode()
