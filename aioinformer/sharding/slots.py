"""Slots: the fixed parts of the key space, and how the API server is asked for some of them (KEP-5866)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b

UID_FIELD = "object.metadata.uid"

MOST_SLOTS = 1024
"""Each slot may need a range of its own in the URL of a request."""

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF


def fnv1a(text: str) -> int:
    """Return the 64-bit FNV-1a hash of a text, as the API server computes it for sharded lists."""
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return value


def slot_of(uid: str, slots: int) -> int:
    """Return the slot of a uid, as the API server selects it."""
    return fnv1a(uid) * slots >> 64


def slot_of_text(text: str, slots: int) -> int:
    """Return the slot of another text that objects are grouped by, also of texts that differ in their ends only."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) * slots >> 64


def first_hash(slot: int, slots: int) -> int:
    """Return the lowest hash of a slot. That of the slot after the last one is 2**64."""
    return -((-slot << 64) // slots)


def runs_of(chosen: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of adjacent slots: the first slot of each, and the slot after its last one."""
    begin: int | None = None
    end = 0
    for slot in sorted(chosen):
        if begin is not None and slot == end:
            end += 1
            continue
        if begin is not None:
            yield begin, end
        begin, end = slot, slot + 1
    if begin is not None:
        yield begin, end


def selector_of(chosen: Collection[int], slots: int) -> str:
    """Return the ``shardSelector`` of some slots by uid; ``""`` for all. Adjacent slots are one range."""
    if len(chosen) == slots:
        return ""
    return " || ".join(
        f"shardRange({UID_FIELD}, '{_hex(first_hash(begin, slots))}', '{_hex(first_hash(end, slots))}')"
        for begin, end in runs_of(chosen)
    )


def show_slots(chosen: Iterable[int]) -> str:
    """Return slots as people read them: ``"0-3, 7"``; ``"none"`` for none."""
    runs = (str(begin) if end == begin + 1 else f"{begin}-{end - 1}" for begin, end in runs_of(chosen))
    return ", ".join(runs) or "none"


def _hex(value: int) -> str:
    return f"0x{value:016x}"
