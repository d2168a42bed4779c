"""Shard selectors of lists and watches (KEP-5866), with the real server's grammar and messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.testing.errors import StatusError

if TYPE_CHECKING:
    from aioinformer.testing.storage.storage import StoredObject

UID, NAMESPACE = "object.metadata.uid", "object.metadata.namespace"

_END = 1 << 64
_TEXT = r"""(?:'([^']*)'|"([^"]*)")"""
_RANGE = re.compile(rf"\s*shardRange\(\s*([\w.]+)\s*,\s*{_TEXT}\s*,\s*{_TEXT}\s*\)\s*")
_HEX = re.compile(r"0x([0-9a-f]{16}|10000000000000000)")


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Ranges of the hash of one field; empty, it selects everything."""

    field: str = ""
    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> ShardSelector:
        """Parse a shard selector.

        Raises:
            StatusError: 500, as the real server answers.
        """
        fields: list[str] = []
        ranges = []
        for part in text.split("||"):
            match = _RANGE.fullmatch(part)
            if match is None:
                raise _invalid(f"{part.strip()!r} is not a shardRange(field, 'from', 'to')")
            field, *bounds = match.groups()
            if field not in (UID, NAMESPACE):
                raise _invalid(f'unsupported field path "{field}"; supported: {UID}, {NAMESPACE}')
            start, end = (bounds[0] or bounds[1] or ""), (bounds[2] or bounds[3] or "")
            for name, bound in (("hexStart", start), ("hexEnd", end)):
                if not _HEX.fullmatch(bound):
                    raise _invalid(f'{name} must be a 0x-prefixed 16-digit hex value, got "{bound}"')
            if int(start, 16) >= int(end, 16):
                raise _invalid(f"shard range start {start} must be less than end {end}")
            fields.append(field)
            ranges.append((int(start, 16), int(end, 16)))
        if len(set(fields)) > 1:
            raise _invalid(f'all shard ranges must use the same field, got "{fields[0]}" and "{fields[-1]}"')
        return cls(fields[0], tuple(ranges))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __str__(self) -> str:
        return " || ".join(
            f"shardRange({self.field}, '0x{start:016x}', '0x{end:016x}')" for start, end in self.ranges
        )

    def matches(self, stored: StoredObject) -> bool:
        """Return whether an object is in one of the ranges."""
        if not self.ranges:
            return True
        value = _hash(stored.uid if self.field == UID else stored.namespace)
        return any(start <= value < end for start, end in self.ranges)


def _hash(text: str) -> int:
    """Return the 64-bit FNV-1a hash of a text."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % _END
    return value


def _invalid(why: str) -> StatusError:
    return StatusError(500, "", f"invalid shard selector: {why}")
