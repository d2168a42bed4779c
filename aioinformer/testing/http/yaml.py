"""YAML as the real server writes it: sorted keys, block style, and quotes where a plain text would be another type."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

_STRING = "tag:yaml.org,2002:str"

_NO_STRING = re.compile(
    r"[yYnN]|[-+]?0o?[0-7_]+|[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9]*)?"
)
"""Texts that Go's library quotes beyond those of PyYAML: old booleans, exponents, numbers to the base of 60."""


def dump(value: Any) -> bytes:
    """Return a value as YAML."""
    import yaml

    text: bytes = yaml.dump(
        value, Dumper=_dumper(), default_flow_style=False, allow_unicode=True, encoding="utf-8"
    )
    return text


@cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    base: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc,valid-type]
        """Writes no aliases, and texts as Go's library does."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_text(self, text: str) -> yaml.ScalarNode:
            style = None
            if "\n" in text:
                style = "|"
            elif _NO_STRING.fullmatch(text) or self.resolve(yaml.ScalarNode, text, (True, False)) != _STRING:
                style = '"'
            node: yaml.ScalarNode = self.represent_scalar(_STRING, text, style=style)
            return node

    Dumper.add_representer(str, Dumper.represent_text)
    return Dumper
