"""The settings of an operator: a Struct, read from environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..errors import ConfigError
from ..objects.nesting import DECODE_ERRORS, decode_any, reader_of
from .mistakes import Mistakes

_CONTAINERS = (
    msgspec.inspect.CollectionType,
    msgspec.inspect.DictType,
    msgspec.inspect.StructType,
    msgspec.inspect.TypedDictType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.NamedTupleType,
    msgspec.inspect.TupleType,
)
UNREAD: Final = object()
"""In place of settings: of a manager that is examined and never runs."""


def variable_of(operator: str, field: str) -> str:
    """Return the environment variable of a setting: ``STORAGE_OPERATOR_RECHECK``."""
    return re.sub(r"[^A-Z0-9]", "_", f"{operator}_{field}".upper())


def require_settings_class(settings: object) -> None:
    """Check that a class can be read from environment variables.

    Raises:
        ConfigError: It is not a msgspec.Struct, or has fields of a type that no text can be.
    """
    if not (isinstance(settings, type) and issubclass(settings, msgspec.Struct)):
        raise ConfigError(f"settings must be a class that extends msgspec.Struct, not {settings!r}")
    try:
        fields = msgspec.structs.fields(settings)
    except NameError:
        return  # names of types that the module defines later
    mistakes = Mistakes(f"the settings {settings.__name__}")
    for field in fields:
        try:
            reader_of(field.type)
        except TypeError as error:
            mistakes.add(f"the field {field.name} cannot be read from an environment variable: {error}")
    mistakes.raise_if_any()


def read_setting(text: str, kind: Any) -> Any:
    """Return the value of a setting.

    Numbers, bools and texts are written as they are, lists, dicts and Structs in JSON. Another class, such as Path, is
    called with the text.

    Args:
        text: What the environment variable has.
        kind: The type of the field.

    Raises:
        ConfigError: The text does not fit the type.
    """
    try:
        return msgspec.convert(text, kind, strict=False, dec_hook=_make)
    except UnicodeEncodeError:
        raise ConfigError("its bytes are not UTF-8") from None
    except msgspec.ValidationError as error:
        mistake = str(error)
    if text.lstrip()[:1] in ("[", "{"):
        try:
            plain = decode_any(text.encode())
            return msgspec.convert(plain, kind, strict=False, str_keys=True, dec_hook=_make)
        except DECODE_ERRORS as error:
            mistake = str(error)
    elif _is_written_in_json(msgspec.inspect.type_info(kind)):
        mistake += ': write it in JSON, such as ["a", "b"] or {"a": "b"}'
    raise ConfigError(mistake)


def _make(kind: Any, text: Any) -> Any:
    """Return an object of a class that msgspec does not know, of a text."""
    try:
        return kind(text)
    except Exception as error:  # its text may have the value
        raise ValueError(f"{getattr(kind, '__name__', kind)} refuses it ({type(error).__name__})") from None


def _is_written_in_json(info: msgspec.inspect.Type) -> bool:
    if isinstance(info, msgspec.inspect.UnionType):
        return any(map(_is_written_in_json, info.types))
    return isinstance(info, _CONTAINERS)


def settings_from(operator: str, settings: type[Any], environment: Mapping[str, str] = os.environ) -> Any:
    """Return the settings that environment variables give, and defaults for the rest.

    Args:
        operator: The operator's name, with which the variables begin.
        settings: The class.
        environment: The variables.

    Raises:
        ConfigError: A variable is missing or its value is invalid; the message has all mistakes, but no value.
    """
    mistakes = Mistakes(f"{operator}: the environment")
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(settings):
        variable = variable_of(operator, field.name)
        if (text := environment.get(variable)) is None:
            if field.required:
                mistakes.add(f"set {variable}, which has no default")
            continue
        try:
            values[field.name] = read_setting(text, field.type)
        except ConfigError as error:
            mistakes.add(f"{variable} is invalid: {error}")
    mistakes.raise_if_any()
    try:
        return settings(**values)
    except (TypeError, ValueError) as error:  # of its __post_init__
        raise ConfigError(f"{operator}: {settings.__name__}: {error}") from error
