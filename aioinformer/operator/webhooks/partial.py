"""Objects that a class cannot hold as they are: partial ones, and values that no Python object has.

A stand-in takes the place of what is missing, as Go's zero value does, and of a value such as a time of the year 0000.
Where a conversion moves a stand-in to a field of its result, the field is left out again, or gets the original value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin
from uuid import UUID

import msgspec
import msgspec.inspect as types

from ...errors import DecodeError
from ...objects.encoding import plain
from ...objects.models import ModelMismatchError, decode_hook, encode_hook, is_model, model_fields, read_field
from ...objects.reading_types import without_limits

MISSING = object()
"""The original of a stand-in for what is not there."""
_LEFT_OUT = object()

_DEEPEST = 200
"""Levels below which values are plain JSON: no class is nested as deeply."""


class _Text(str):
    __slots__ = ()


class _Whole(int):
    """Also stands in for a boolean, of which there are no others."""


class _Real(float):
    __slots__ = ()


class _Bytes(bytes):
    pass


class _Time(datetime):
    pass


class _List(list[Any]):
    pass


class _Set(set[Any]):
    pass


class _Dict(dict[Any, Any]):
    pass


class _Unheld(datetime):
    """Stands in for a time that Python cannot hold. It can be moved, and not be read: any result would be a guess."""

    def _refuse(self, *_: object) -> Any:
        raise DecodeError("it has a time that Python cannot hold, such as one of the year 0000")

    __add__ = __radd__ = __sub__ = __rsub__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = __ne__ = __hash__ = __str__ = __format__ = _refuse

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name) if name.startswith("_") else self._refuse()


class StandIns:
    """Reads one object into its class, and writes the result of its conversion."""

    def __init__(self) -> None:
        self._originals: dict[int, tuple[Any, Any]] = {}
        """What each stands in for, by its id. It is kept, so that the id stays its own."""
        self._is_partial = False
        self._values: set[tuple[type, Any]] = set()
        """The plain values that the object has, with their types."""

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, fields: dict[str, Any], kind: Any) -> Any:
        """Return an object as its class, with stand-ins.

        Raises:
            DecodeError: A field is of another JSON type.
        """
        self._values = {*_plain_values(fields)}
        return self._read(fields, _type_to_read(kind))

    def _read(self, value: Any, annotation: Any) -> Any:
        try:
            return msgspec.convert(value, annotation, str_keys=True, dec_hook=decode_hook)
        except (msgspec.ValidationError, RecursionError):
            annotation = _bare(annotation)
        except TypeError as error:
            raise DecodeError(f"a part of it fits no member of a union of models: {error}") from error
        if is_model(annotation) and isinstance(value, dict) and not annotation.__pydantic_root_model__:
            return self._read_model(value, annotation)
        kind = types.type_info(annotation)
        if isinstance(kind, types.UnionType):
            return self._read_member(value, annotation)
        if isinstance(kind, types.StructType) and isinstance(value, dict):
            return self._read_struct(value, annotation)
        arguments = get_args(annotation)
        if isinstance(kind, types.ListType) and isinstance(value, list):
            return [self._read(item, arguments[0]) for item in value]
        if isinstance(kind, types.DictType) and isinstance(value, dict):
            return {name: self._read(part, arguments[1]) for name, part in value.items()}
        if isinstance(kind, types.DateTimeType) and isinstance(value, str):
            return self._stands_in(_Unheld(1970, 1, 1, tzinfo=UTC), value)
        raise DecodeError(
            f"a {type(value).__name__} is no {kind.__class__.__name__.removesuffix('Type').lower()}"
        )

    def _read_member(self, value: Any, annotation: Any) -> Any:
        for member in get_args(annotation):
            if member is not type(None):
                try:
                    return self._read(value, member)
                except DecodeError:
                    continue
        raise DecodeError(f"a {type(value).__name__} fits no member of a union")

    def _read_struct(self, fields: dict[str, Any], annotation: Any) -> Any:
        values = {}
        for field in msgspec.structs.fields(annotation):
            value = fields.get(field.encode_name)
            if value is not None or (field.encode_name in fields and _is_nullable(field.type)):
                values[field.name] = self._read(value, field.type)
            elif field.required:
                values[field.name] = self._zero(field.type)
        return (get_origin(annotation) or annotation)(**values)

    def _read_model(self, fields: dict[str, Any], model: Any) -> Any:
        values = {}
        for encoded, name in model_fields(model)[0].items():
            value, annotation = fields.get(encoded), model.model_fields[name].annotation
            if value is not None or (encoded in fields and _is_nullable(annotation)):
                try:
                    values[encoded] = read_field(model, name, value)
                except ModelMismatchError:
                    values[encoded] = self._read(value, annotation)
            elif model.model_fields[name].is_required():
                values[encoded] = self._zero(annotation)
        return model.model_construct(**values)

    def _zero(self, annotation: Any) -> Any:
        """Return a stand-in for a missing value, which is like Go's zero value."""
        self._is_partial = True
        annotation = _bare(annotation)
        if is_model(annotation):
            return self._read_model({}, annotation)
        kind = types.type_info(annotation)
        if isinstance(kind, types.StructType):
            return self._read_struct({}, annotation)
        if isinstance(kind, types.UnionType):
            members = get_args(annotation)
            return None if type(None) in members else self._zero(members[0])
        if make := _ZEROS.get(type(kind)):
            return self._stands_in(make(), MISSING)
        if isinstance(kind, types.LiteralType) and isinstance(kind.values[0], int):
            return self._stands_in(_Whole(), MISSING)
        if isinstance(kind, (types.LiteralType, types.EnumType)):
            return self._stands_in(_Text(), MISSING)
        return None

    def _stands_in(self, stand_in: Any, original: Any) -> Any:
        self._originals[id(stand_in)] = stand_in, original
        return stand_in

    # -- writing -------------------------------------------------------------------------------------------

    def write(self, value: Any) -> dict[str, Any]:
        """Return a converted object as JSON values: stand-ins become what they stand for."""
        written = self._write(value, 0)
        return written if isinstance(written, dict) else {}

    def _write(self, value: Any, depth: int) -> Any:
        """Return a value as JSON; _LEFT_OUT for a stand-in of what is not there."""
        stand_in, original = self._originals.get(id(value), (None, None))
        if stand_in is not None and not (isinstance(value, (_List, _Set, _Dict)) and value):
            return _LEFT_OUT if original is MISSING else original
        if depth > _DEEPEST:
            return value
        if self._is_partial and not value and not self._is_there(value):
            return _LEFT_OUT  # made of what is not there, which Go's omitempty leaves out, too
        if isinstance(value, msgspec.Struct):
            return self._write_struct(value, depth)
        kind: Any = type(value)
        if is_model(kind) and not kind.__pydantic_root_model__:
            return self._write_model(value, depth)
        if isinstance(value, dict):
            return _without_left_out((name, self._write(part, depth + 1)) for name, part in value.items())
        if isinstance(value, (list, tuple, set, frozenset)):
            items = [written for item in value if (written := self._write(item, depth + 1)) is not _LEFT_OUT]
            return _LEFT_OUT if value and not items else items
        return plain(value)

    def _write_model(self, model: Any, depth: int) -> Any:
        """Return a pydantic model as JSON, which has no stand-ins."""
        parts: dict[str, Any] = {}
        has_own = False
        kind: Any = type(model)
        for encoded, name in model_fields(kind)[0].items():
            value = getattr(model, name, None)
            stands_in = id(value) in self._originals
            if value is None and not stands_in:
                continue
            part = parts[encoded] = self._write(value, depth + 1)
            if part is not _LEFT_OUT:
                default = kind.model_fields[name].get_default(call_default_factory=False)
                has_own |= stands_in or value != default or self._is_there(value)
        if self._is_partial and parts and not has_own:
            return _LEFT_OUT  # only defaults remain
        return _without_left_out(parts.items())

    def _write_struct(self, struct: msgspec.Struct, depth: int) -> Any:
        """Return a Struct as JSON. msgspec writes it without the parts that have parts, to keep its tag and names."""
        parts: dict[str, Any] = {}
        shell = copy(struct)
        has_own = False
        for field in msgspec.structs.fields(type(struct)):
            value = getattr(struct, field.name, None)
            stands_in = id(value) in self._originals
            if not value and not stands_in and struct.__struct_config__.omit_defaults:
                continue  # msgspec leaves it out, if it is the default
            if stands_in or self._is_partial or (value and _has_parts(value)):
                msgspec.structs.force_setattr(shell, field.name, msgspec.UNSET)
                if value is not None and value is not msgspec.UNSET:
                    part = parts[field.encode_name] = self._write(value, depth + 1)
                    if part is not _LEFT_OUT:
                        is_plain = not (stands_in or _has_parts(value))
                        has_own |= not is_plain or value != field.default or self._is_there(value)
        built = msgspec.to_builtins(shell, enc_hook=encode_hook)
        plain = {name: value for name, value in built.items() if value is not None}
        if self._is_partial and parts and not has_own and not plain:
            return _LEFT_OUT  # only defaults remain
        return _without_left_out((*plain.items(), *parts.items()))

    def _is_there(self, value: Any) -> bool:
        """Return whether the object has a plain value somewhere."""
        return (type(value), None if _has_parts(value) else value) in self._values


def _has_parts(value: Any) -> bool:
    return isinstance(value, _WITH_PARTS) or is_model(type(value))


_WITH_PARTS = (msgspec.Struct, dict, list, tuple, set, frozenset)
_ZEROS: dict[type, Any] = {
    types.StrType: _Text,
    types.BoolType: _Whole,
    types.IntType: _Whole,
    types.FloatType: _Real,
    types.BytesType: _Bytes,
    types.DateTimeType: lambda: _Time(1, 1, 1, tzinfo=UTC),
    types.DateType: lambda: date(1, 1, 1),
    types.TimeType: time,
    types.TimeDeltaType: timedelta,
    types.DecimalType: Decimal,
    types.UUIDType: lambda: UUID(int=0),
    types.ListType: _List,
    types.SetType: _Set,
    types.DictType: _Dict,
}


@lru_cache(maxsize=64)
def _type_to_read(kind: Any) -> Any:
    return without_limits(kind)


def _bare(annotation: Any) -> Any:
    """Return an annotation without what it says of the type."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _is_nullable(annotation: Any) -> bool:
    return type(None) in get_args(_bare(annotation)) or _bare(annotation) is Any


def _plain_values(value: Any) -> Iterator[tuple[type, Any]]:
    """Yield the plain values in a JSON value with their types, at any nesting; None for an empty list or object."""
    remaining = [value]
    while remaining:
        part = remaining.pop()
        if not isinstance(part, (dict, list)):
            yield type(part), part
        elif not part:
            yield type(part), None
        else:
            remaining += part.values() if isinstance(part, dict) else part


def _without_left_out(parts: Iterable[tuple[str, Any]]) -> Any:
    """Return the parts that are there; _LEFT_OUT if none is, and some would have been."""
    given = [*parts]
    kept = {name: part for name, part in given if part is not _LEFT_OUT}
    return _LEFT_OUT if given and not kept else kept
