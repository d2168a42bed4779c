"""Reads messages as dicts that equal the decoded JSON, by the schema."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

from ..kube_object import Wanted
from .schema import FieldSchema, kind_inside, schema
from .values import NUMBERS, PIECES, Read, read_raw
from .wire import PIECE, VARINT, WireError, long_number, piece, skip, text

logger = logging.getLogger(__name__)

Fields = dict[str, Any]

_TEXT, _ONE, _LIST, _MAP, _EMBEDDED, _NUMBER, _NUMBERS = range(7)
"""How to read a field. The frequent ones come first, in the order of the checks in ``read``."""

_Field = tuple[int, str, bool, Any, Any]
"""One of the above; the name in JSON; whether an empty value is left out; the reader of the value, or of its elements;
JSON's value for a missing one, or the Message that makes it. (Unpacking a NamedTuple is slower.)"""

_KEY, _VALUE = 1 << 3 | PIECE, 2 << 3 | PIECE

_ALL = 1 << 32
"""Greater than the tags of all fields."""


@lru_cache(maxsize=2048)
def message(name: str, wanted: Wanted = (), embeds: bool = False) -> Message:
    """Return the reader of a message type; see ``Message``."""
    return Message(name, wanted, embeds)


class Message:
    """Reads messages of one type. Get one from ``message``.

    Args:
        name: The type's name in the schema.
        wanted: The fields to read; empty for all.
        embeds: Whether JSON in the message stays ``msgspec.Raw``, for a message that becomes JSON.
    """

    __slots__ = ("_embeds", "_fields", "_last", "_name", "_zero_messages", "_zeros")

    def __init__(self, name: str, wanted: Wanted = (), embeds: bool = False) -> None:
        self._name = name
        self._embeds = embeds
        self._fields: dict[int, _Field] = {}
        self._zeros: Fields = {}
        self._zero_messages: dict[str, Message] = {}
        names = dict(wanted)
        for field in schema().fields(name):
            if not field.name:
                self._add_embedded(field, wanted)
            elif not wanted or field.name in names:
                self._add(field, names.get(field.name, ()))
        self._last = max(self._fields, default=0) if wanted else _ALL

    def read(self, data: bytes, at: int, end: int, into: Fields | None = None) -> Fields:
        """Read the message between two offsets; ``found`` are the fields of the message that embeds it.

        Raises:
            WireError, IndexError: It is not a message.
            ValueError: A time is out of range, or JSON in a field is invalid.
        """
        fields, last = self._fields, self._last
        if into is None:
            into = self._zeros.copy()
        while at < end:
            # Varints of one and two bytes are read here, because they are frequent.
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag = tag & 0x7F | data[at] << 7
                at += 1
                if tag > 0x3FFF:
                    tag, at = long_number(data, at - 2)
            if tag > last:  # API servers write fields in the order of their numbers
                at = end
                break
            if tag & 5:  # neither a varint nor length-delimited, so not in the schema
                at = skip(tag & 7, data, at, end)
                if last == _ALL:
                    _warn_of_unknown_field(self._name, tag >> 3)
                continue
            size = data[at]
            at += 1
            if size > 0x7F:
                size = size & 0x7F | data[at] << 7
                at += 1
                if size > 0x3FFF:
                    size, at = long_number(data, at - 2)
            if tag not in fields:
                if tag & PIECE:
                    at += size
                if last == _ALL:
                    _warn_of_unknown_field(self._name, tag >> 3)
                continue
            how, name, drops_empty, read, zero = fields[tag]
            if how >= _NUMBER:
                if how == _NUMBERS:
                    into[name] = [*(into.get(name) or ()), read(size)]
                elif size or not drops_empty:
                    into[name] = read(size)
                continue
            begin = at
            at += size
            if at > end:
                break
            if how == _TEXT:
                if size or not drops_empty:
                    try:  # it costs less than an argument of decode
                        into[name] = data[begin:at].decode()
                    except UnicodeDecodeError:
                        into[name] = text(data, begin, at)
            elif how == _ONE:
                if size or not drops_empty:
                    into[name] = read(data, begin, at)
            elif how == _LIST:
                if (listed := into.get(name)) is not None:
                    listed.append(read(data, begin, at))
                else:
                    into[name] = [read(data, begin, at)]
            elif how == _EMBEDDED:
                read(data, begin, at, into)
            else:
                if (entries := into.get(name)) is None:
                    entries = into[name] = {}
                _enter(entries, data, begin, at, read, zero)
        if at != end:
            raise WireError(f"a field of {self._name} ends behind it")
        for name, zero in self._zero_messages.items():
            if name not in into:
                into[name] = zero.zero()
        return into

    def zero(self) -> Fields:
        """Return JSON's value for a missing message."""
        return self.read(b"", 0, 0)

    def _add_embedded(self, field: FieldSchema, wanted: Wanted) -> None:
        """Add a message whose fields JSON has among those of this message."""
        embedded = message(field.type, wanted, self._embeds)
        if embedded._fields:
            self._fields[field.number << 3 | PIECE] = (_EMBEDDED, "", False, embedded.read, embedded)
            self._zeros |= embedded._zeros
            self._zero_messages |= embedded._zero_messages

    def _add(self, field: FieldSchema, wanted: Wanted) -> None:
        read: Any
        if field.of in NUMBERS:
            (read, zero), tag = NUMBERS[field.of], field.number << 3 | VARINT
            how = _NUMBERS if field.is_list else _NUMBER
        else:
            (read, zero), tag = (
                self._reader(field.of, () if field.is_map else wanted),
                field.number << 3 | PIECE,
            )
            how = (
                _LIST if field.is_list else _MAP if field.is_map else _TEXT if field.of == "string" else _ONE
            )
        self._fields[tag] = (how, field.name, field.shown == "set", read, zero)
        if field.shown == "null" or (field.shown == "always" and (field.is_list or field.is_map)):
            self._zeros[field.name] = None
        elif field.shown == "always" and isinstance(zero, Message):
            self._zero_messages[field.name] = zero
        elif field.shown == "always":
            self._zeros[field.name] = zero

    def _reader(self, type_: str, wanted: Wanted) -> tuple[Read, Any]:
        """Return a length-delimited type's reader, and JSON's value for a missing one or the Message that makes it."""
        if type_ == "raw" and self._embeds:
            return read_raw, None
        if type_ in PIECES:
            return PIECES[type_]
        within = message(type_, wanted, self._embeds)
        type_meta = kind_inside(type_)
        if type_meta is None:
            return within.read, within
        return lambda data, at, end: {**type_meta, **within.read(data, at, end)}, within


def _enter(entries: Fields, data: bytes, at: int, end: int, read: Read, zero: Any) -> None:
    """Add an entry to a map. The entry is a message with the key as field 1 and the value as field 2."""
    key, value = "", zero.zero() if isinstance(zero, Message) else zero
    while at < end:
        tag = data[at]
        begin, at = piece(data, at + 1, end)
        if tag == _KEY:
            key = text(data, begin, at)
        elif tag == _VALUE:
            value = read(data, begin, at)
    entries[key] = value


@lru_cache(maxsize=1024)
def _warn_of_unknown_field(name: str, number: int) -> None:
    """Warn, once for each field, that the server knows fields that the schema does not have."""
    logger.warning(
        "there are fields that Kubernetes %s does not have, such as number %d of %s: objects read as protobuf "
        "lack them; read as JSON they have them",
        schema().version, number, name,
    )  # fmt: skip
