"""Fast readers of metadata, which is the same for all kinds and needs no schema."""

from __future__ import annotations

from .wire import PIECE, WireError, long_number, pieces, skip, text, write_varint

METADATA = 1 << 3 | PIECE
LABELS, ANNOTATIONS, MANAGED_FIELDS = (number << 3 | PIECE for number in (11, 12, 17))

_FIRST = tuple(number << 3 | PIECE for number in range(1, 7))
"""name, generateName, namespace, selfLink, uid, resourceVersion: API servers write all of them, even empty ones."""

Head = tuple[str, str, str, str, int | None]
"""Name, namespace, uid and resourceVersion, ``""`` if missing; and the offset of the metadata's other fields, None if
they do not follow these."""


def read_head(data: bytes) -> Head:
    """Read the head of an object, and check the lengths of all its top-level fields.

    Raises:
        WireError, IndexError, ValueError: It is not an object.
    """
    try:
        size = data[1]
        at = 2
        if size > 0x7F:
            size = size & 0x7F | data[2] << 7
            at = 3
        end_of_metadata = at + size
        # The six texts begin at a to f, after a tag and a length of one byte each: one decode reads them all.
        a = at + 2
        b = a + data[a - 1] + 2
        c = b + data[b - 1] + 2
        d = c + data[c - 1] + 2
        e = d + data[d - 1] + 2
        f = e + data[e - 1] + 2
        rest = f + data[f - 1]
        tags = data[a - 2], data[b - 2], data[c - 2], data[d - 2], data[e - 2], data[f - 2]
        sizes = data[a - 1] | data[b - 1] | data[c - 1] | data[d - 1] | data[e - 1] | data[f - 1]
        if tags != _FIRST or sizes > 0x7F or rest > end_of_metadata or data[0] != METADATA:
            return _read_any_head(data)
        at, end = end_of_metadata, len(data)
        while at < end:
            size = data[at + 1]
            if data[at] & 0x87 != PIECE:  # a varint, or a tag of several bytes
                return _read_any_head(data)
            at += 2
            if size > 0x7F:
                size = size & 0x7F | data[at] << 7
                at += 1
                if size > 0x3FFF:
                    size, at = long_number(data, at - 2)
            at += size
    except IndexError:
        return _read_any_head(data)
    if at != end:
        return _read_any_head(data)
    try:
        head = data[a:rest].decode("ascii")
    except UnicodeDecodeError:
        return _read_any_head(data)
    return head[: b - a - 2], head[c - a : d - a - 2], head[e - a : f - a - 2], head[f - a :], rest


def texts(data: bytes, wanted: int, at: int | None) -> dict[str, str] | None:
    """Read labels or annotations alone; None if they are not encoded as API servers do.

    Args:
        data: The object.
        wanted: LABELS or ANNOTATIONS.
        at: The offset from ``read_head``.

    Raises:
        IndexError, ValueError: It is not an object.
    """
    if at is None:
        return None
    end, begin = long_number(data, 1)
    end += begin
    entries: dict[str, str] = {}
    while at < end:
        tag = data[at]
        size = data[at + 1]
        at += 2
        if size > 0x7F:
            size, at = long_number(data, at - 1)
        if tag < wanted:
            if tag & 7 == PIECE:
                at += size
            continue
        if tag > wanted:
            break
        # An entry is a message with the key as field 1 and the value as field 2.
        middle = at + 2 + data[at + 1]
        if data[at] != 10 or data[middle] != 18 or middle > at + 0x81:
            return None
        value = middle + 2
        while data[value - 1] > 0x7F:  # a length of several bytes
            value += 1
        begin = at + 2
        at += size
        try:  # it costs less than an argument of decode
            entries[data[begin:middle].decode()] = data[value:at].decode()
        except UnicodeDecodeError:
            entries[text(data, begin, middle)] = text(data, value, at)
    return entries


def without_managed_fields(data: bytes, rest: int | None) -> tuple[bytes, int | None]:
    """Return an object without metadata.managedFields, and the new offset of the metadata's other fields.

    managedFields are the last field of the metadata. An object without them is returned as it is.

    Args:
        data: The object.
        rest: The offset from ``read_head``.

    Raises:
        WireError, IndexError: It is not an object.
    """
    if data[0] != METADATA:
        return data, rest
    end, begin = long_number(data, 1)
    end += begin
    at = rest or begin
    while at < end:
        start = at
        tag = data[at]
        if tag > 0x7F:
            tag, at = long_number(data, at)
            if tag == MANAGED_FIELDS:
                head = b"%c%b" % (METADATA, write_varint(start - begin))
                lean = b"%b%b%b" % (head, data[begin:start], data[end:])
                return lean, None if rest is None else rest + len(head) - begin
            at = skip(tag & 7, data, at, end)
            continue
        size = data[at + 1]
        at += 2
        if size > 0x7F:
            size, at = long_number(data, at - 1)
        if tag & 7 == PIECE:
            at += size
    return data, rest


def _read_any_head(data: bytes) -> Head:
    """Read the head of an object of any field order."""
    head: dict[int, str] = {}
    for tag, begin, end in pieces(data, 0, len(data)):
        if tag == METADATA:
            # API servers accept RBAC names with invalid UTF-8, and write U+FFFD in JSON.
            head = {
                field: data[start:stop].decode(errors="replace")
                for field, start, stop in pieces(data, begin, end)
                if field in _FIRST
            }
    if not head:
        raise WireError("it has no metadata")
    name, _, namespace, _, uid, version = (head.get(number, "") for number in _FIRST)
    return name, namespace, uid, version, None
