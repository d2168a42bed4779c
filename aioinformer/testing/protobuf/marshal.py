"""Encode JSON objects as protobuf messages, byte for byte as Go's generated marshallers do.

Fields are in the order of their numbers. A field that is no pointer, list or map in Go is written even if empty.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.objects.protobuf.schema import FieldSchema, schema
from aioinformer.objects.protobuf.wire import PIECE, VARINT, write_varint
from aioinformer.testing.errors import MarshalError
from aioinformer.testing.protobuf.values import NUMBERS, PIECES, Write, piece, tag

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

_POINTERS = ("there", "null")
"""The values of `FieldSchema.shown` for pointers in Go."""


@lru_cache(maxsize=2048)
def marshaller(name: str) -> Marshaller:
    """Return the shared marshaller of a message."""
    return Marshaller(name)


class Marshaller:
    """Encodes one type of message. Call ``marshaller`` to get an instance.

    Args:
        name: The message's name in the schema.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._fields = [_field(field) for field in schema().fields(name)]

    def __call__(self, obj: Object) -> bytes:
        """Return the encoded message; fields that Kubernetes does not have are left out.

        Raises:
            MarshalError: A value has the wrong type.
        """
        if not isinstance(obj, dict):
            raise MarshalError(f"{obj!r:.80} is no {self._name}")
        fields: list[bytes] = []
        for name, write, absent in self._fields:
            value = obj.get(name) if name else obj
            try:
                fields.append(absent if value is None else write(value))
            except MarshalError:
                raise
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                raise MarshalError(f"{name} of a {self._name} cannot be {value!r:.80}: {error}") from error
        return b"".join(fields)


class _Field(NamedTuple):
    """A field: its name in JSON, its encoder, and the bytes to write if JSON lacks it."""

    name: str
    write: Write
    absent: bytes


def _field(field: FieldSchema) -> _Field:
    if field.is_map:
        return _Field(field.name, _map(field.number, *_one(2, field.of)), b"")
    write, zero = _one(field.number, field.of)
    if field.is_list:
        return _Field(field.name, _list(write, zero), b"")
    return _Field(field.name, write, b"" if field.shown in _POINTERS else zero())


def _one(number: int, type_: str) -> tuple[Write, Callable[[], bytes]]:
    """Return the encoder of a single value and a function that returns its zero."""
    if type_ in NUMBERS:
        begin, of_number = tag(number, VARINT), NUMBERS[type_]
        return lambda value: begin + of_number(value), lambda: begin + b"\0"
    begin = tag(number, PIECE)
    if type_ in PIECES:
        of_piece, empty = PIECES[type_]
        zero = b"" if empty is None else piece(number, empty)
        return lambda value: _piece(begin, of_piece(value)), lambda: zero
    # Messages can be recursive, so look up each marshaller when a value is written.
    return (
        lambda value: _piece(begin, marshaller(type_)(value)),
        lambda: _piece(begin, marshaller(type_)({})),
    )


def _piece(begin: bytes, data: bytes) -> bytes:
    return b"%b%b%b" % (begin, write_varint(len(data)), data)


def _list(write: Write, zero: Callable[[], bytes]) -> Write:
    def write_all(values: list[Any]) -> bytes:
        if not isinstance(values, list):
            raise TypeError("it is no list")
        return b"".join(zero() if value is None else write(value) for value in values)

    return write_all


def _map(number: int, write: Write, zero: Callable[[], bytes]) -> Write:
    def write_entries(entries: dict[str, Any]) -> bytes:
        return b"".join(
            piece(number, piece(1, key.encode()) + (zero() if value is None else write(value)))
            for key, value in sorted(entries.items())
        )

    return write_entries
