"""The only writer of YAML for users and kubectl: what every reader of YAML 1.1 or 1.2 reads is what was written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z/].*")
"""Texts that begin so are no number, date or sign in any version of YAML; some of them are in _WORDS."""
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"})
"""Texts that a reader takes for a boolean, null or a number, in lower case."""


def dump_yaml(objects: Iterable[Any]) -> str:
    """Return objects as YAML documents.

    Texts are quoted unless they begin with a letter or a slash, because readers differ: kubectl takes ``1e3``, ``0o7``
    and ``08`` for numbers, and ``y`` for a boolean.
    """
    return yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120
    )


class _Dumper(yaml.SafeDumper):
    """Writes each value out where it is used, texts of several lines as blocks, and lists of texts on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _style(text: str) -> str | None:
    """Return the style of a text: a block, quotes, or None where it may be plain."""
    lines = text.split("\n")
    if not all(line.isprintable() for line in lines):
        return '"'
    if len(lines) > 1:
        return "|" if _is_plain_block(lines) else '"'
    return None if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else '"'


def _is_plain_block(lines: list[str]) -> bool:
    """Return whether lines need no indicator of their indentation, and have no spaces at their ends."""
    return bool(lines[0]) and lines[0][0] != " " and all(line == line.rstrip() for line in lines)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=_style(value))


def _list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(value, str) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
