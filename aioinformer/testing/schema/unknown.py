"""Fields that a schema does not know, and what a request's `fieldValidation` makes of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.schema.node import OF_EVERY_OBJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.testing.schema.node import Node


class FieldCheck:
    """Collects the unknown and duplicate fields of a request.

    Args:
        validation: `"Strict"`, `"Warn"` or `"Ignore"`; empty means Warn.
        duplicates: The duplicate fields of the body, which decoding has dropped.
    """

    def __init__(self, validation: str = "Ignore", duplicates: list[str] | None = None) -> None:
        self._validation = validation or "Warn"
        self._faults = duplicates or []
        self._notes: list[str] = []

    def note(self, texts: Iterable[str]) -> None:
        """Take further warnings for the answer."""
        self._notes += texts

    def check(self, unknown: Iterable[str]) -> str:
        """Take the paths of the unknown fields of an object; return the message of a refusal, or `""`."""
        if self._validation == "Ignore":
            return ""
        self._faults += [f'unknown field "{path}"' for path in unknown]
        refused = self._validation == "Strict" and self._faults
        return f"strict decoding error: {', '.join(self._faults)}" if refused else ""

    @property
    def warnings(self) -> list[str]:
        """The warnings for the answer."""
        faults = self._faults if self._validation == "Warn" else []
        return [*faults, *self._notes]


def unknown_fields(node: Node, value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that a schema does not know, such as `spec.containers[0].imag`.

    Args:
        node: The schema.
        value: The value; parts of the wrong type are skipped.
        path: The value's own path.
    """
    if isinstance(value, list):
        if node.items is not None:
            for number, element in enumerate(value):
                yield from unknown_fields(node.items, element, f"{path}[{number}]")
    elif isinstance(value, dict):
        known_here = OF_EVERY_OBJECT if node.is_embedded or not path else ()
        for name, member in value.items():
            below = f"{path}.{name}" if path else name
            known = node.properties.get(name, node.items)
            if known is not None:
                yield from unknown_fields(known, member, below)
            elif node.properties and not node.preserves_unknown and name not in known_here:
                yield below


def duplicate_fields(body: bytes, decoded: Any) -> list[str]:
    """Return the fields that a JSON body has twice, such as `duplicate field "spec.replicas"`.

    Args:
        body: Valid JSON.
        decoded: What it holds, where a duplicate key is missing.
    """
    if _key_count(body) == _key_count(msgspec.json.encode(decoded)):
        return []
    return list(_duplicates(json.loads(body, object_pairs_hook=_Pairs), ""))


def _key_count(body: bytes) -> int:
    """Return a number that a duplicate key raises: of the keys, if no space is before the colons."""
    return body.count(b'":')


class _Pairs(list[tuple[str, Any]]):
    """The fields of a JSON object, also those that it has twice."""


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen, reported = set(), set()
        for name, member in value:
            below = f"{path}.{name}" if path else name
            if name not in seen:
                yield from _duplicates(member, below)
            elif name not in reported:
                reported.add(name)
                yield f'duplicate field "{below}"'
            seen.add(name)
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from _duplicates(element, f"{path}[{number}]")
