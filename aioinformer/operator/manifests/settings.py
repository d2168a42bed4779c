"""The settings of the deployed operator: environment variables, and files from Secrets and ConfigMaps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ..._core.checks import require_object_name
from ...errors import ConfigError
from ..mistakes import Mistakes
from ..operator import Operator
from ..settings import read_setting, variable_of
from .installation import FromKey, Installation, Mount, Object

_Kind = Literal["configmap", "secret"]


def environment(operator: Operator, installation: Installation) -> list[Object]:
    """Return the variables of the container that are the operator's settings.

    Raises:
        ConfigError: The operator has no such setting, or a value does not fit it; the message has all mistakes.
    """
    _check(operator, installation.settings)
    return [
        {"name": variable_of(operator.name, field), **_value(setting)}
        for field, setting in installation.settings.items()
    ]


def missing_variables(operator: Operator, installation: Installation) -> list[str]:
    """Return the variables without which the operator does not start, and which the installation does not set."""
    fields = () if operator.settings is None else msgspec.structs.fields(operator.settings)
    return [
        variable_of(operator.name, field.name)
        for field in fields
        if field.required and field.name not in installation.settings
    ]


def volumes(mounts: Iterable[Mount]) -> tuple[list[Object], list[Object]]:
    """Return the volumes of a pod, and where its container mounts them."""
    made = [(f"settings-{number}", mount) for number, mount in enumerate(mounts)]
    return (
        [
            {"name": name, "secret": {"secretName": mount.name}}
            if mount.kind == "secret"
            else {"name": name, "configMap": {"name": mount.name}}
            for name, mount in made
        ],
        [{"name": name, "mountPath": mount.path, "readOnly": True} for name, mount in made],
    )


def parse_settings(values: Iterable[str], sources: Iterable[str]) -> dict[str, str | FromKey]:
    """Return the settings of ``--set`` and ``--set-from`` by their fields.

    Raises:
        ConfigError: One has another form, or a field is set twice.
    """
    settings: dict[str, str | FromKey] = {}
    given: list[tuple[str, str | FromKey]] = [*map(parse_setting, values), *map(parse_source, sources)]
    for field, setting in given:
        if field in settings:
            raise ConfigError(f"the setting {field} is given twice, by --set or --set-from: leave out one")
        settings[field] = setting
    return settings


def parse_setting(text: str) -> tuple[str, str]:
    """Return the field and the value of ``"recheck=20"``.

    Raises:
        ConfigError: It has no ``=``.
    """
    field, equals, value = text.partition("=")
    if not equals or not field:
        raise ConfigError(f"a setting must be FIELD=VALUE, like 'recheck=20', not {text!r}")
    return field, value


def parse_source(text: str) -> tuple[str, FromKey]:
    """Return the field and the source of ``"token=secret/dns/token"``.

    Raises:
        ConfigError: It is not of this form.
    """
    field, _, source = text.partition("=")
    parts = source.split("/")
    if not field or len(parts) != 3 or not parts[2]:
        raise ConfigError(
            f"a setting's source must be FIELD=secret/NAME/KEY or FIELD=configmap/NAME/KEY, not {text!r}"
        )
    return field, FromKey(_kind_of(parts[0], text), parts[1], parts[2])


def parse_mount(text: str) -> Mount:
    """Return the mount of ``"secret/NAME:/PATH"``.

    Raises:
        ConfigError: It is not of this form.
    """
    source, _, path = text.partition(":")
    kind, _, name = source.partition("/")
    if not name or not os.path.isabs(path):
        raise ConfigError(f"a mount must be secret/NAME:/PATH or configmap/NAME:/PATH, not {text!r}")
    return Mount(_kind_of(kind, text), name, path)


def _kind_of(kind: str, text: str) -> _Kind:
    if kind == "secret":
        return "secret"
    if kind == "configmap":
        return "configmap"
    raise ConfigError(f"{text!r} names a {kind!r}: use secret or configmap")


def _value(setting: str | FromKey) -> Object:
    if isinstance(setting, str):
        return {"value": setting}
    reference = "secretKeyRef" if setting.kind == "secret" else "configMapKeyRef"
    return {"valueFrom": {reference: {"name": setting.name, "key": setting.key}}}


def _check(operator: Operator, given: Mapping[str, str | FromKey]) -> None:
    """Check the names of settings, and the values that are known.

    Raises:
        ConfigError: Some are invalid.
    """
    fields = () if operator.settings is None else msgspec.structs.fields(operator.settings)
    known = {field.name: field for field in fields}
    mistakes = Mistakes("the manifests")
    for name, setting in given.items():
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none: pass settings= to its Operator"
            mistakes.add(f"{operator.name} has no setting {name!r}; {has}")
        elif isinstance(setting, FromKey):
            mistakes.of(require_object_name, "the name of a setting's source", setting.name)
        else:
            try:
                read_setting(setting, known[name].type)
            except ConfigError as error:
                mistakes.add(f"the setting {name} is invalid: {error}")
    mistakes.raise_if_any()
