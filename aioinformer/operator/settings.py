"""The settings of an operator: a Struct, read from environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import ConfigError
from .mistakes import Mistakes


def variable_of(operator: str, field: str) -> str:
    """Return the environment variable of a setting: ``STORAGE_OPERATOR_RECHECK``."""
    return re.sub(r"[^A-Z0-9]", "_", f"{operator}_{field}".upper())


def require_settings_class(settings: object) -> None:
    """Check that a class can be read from environment variables.

    Raises:
        ConfigError: It is not a msgspec.Struct.
    """
    if not (isinstance(settings, type) and issubclass(settings, msgspec.Struct)):
        raise ConfigError(f"settings must be a class that extends msgspec.Struct, not {settings!r}")


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
            values[field.name] = msgspec.convert(text, field.type, strict=False)
        except msgspec.ValidationError as error:
            mistakes.add(f"{variable} is invalid: {error}")
    mistakes.raise_if_any()
    try:
        return settings(**values)
    except (TypeError, ValueError) as error:  # of its __post_init__
        raise ConfigError(f"{operator}: {settings.__name__}: {error}") from error
