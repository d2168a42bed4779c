"""What an operator's author may name a resource by: a class, or a name that every cluster knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ..errors import ConfigError
from ..objects.kube_object import KubeObject

Named = str | type[Any]
"""A resource: ``"pods"``, ``"deploy"``, ``"deployments.apps"``, or the class of its objects."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource that was named.

    Attributes:
        group: Its API group; ``""`` for the core group.
        version: The version to read and write.
        plural: ``"deployments"``.
        kind: ``"Deployment"``.
        namespaced: Whether its objects live in namespaces.
        object_type: The type of its objects.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    object_type: type[Any] = KubeObject

    @property
    def api_version(self) -> str:
        """``"v1"``, ``"apps/v1"``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def kind_of(named: Named) -> Kind:
    """Return the resource that a class or a name means.

    Raises:
        ConfigError: The name is unknown, or the class has no resource.
    """
    if not isinstance(named, str):
        raise ConfigError(f"{named!r} is no resource: pass a CustomResource class, or a name such as 'pods'")
    found = _built_in().get(named.lower())
    if found is None:
        raise ConfigError(f"there is no built-in resource {named!r}: for a custom one, pass its class")
    return found


@cache
def _built_in() -> dict[str, Kind]:
    from ..testing.builtin import BUILTIN

    names: dict[str, Kind] = {}
    for each in BUILTIN:
        kind = Kind(each.group, each.version, each.plural, each.kind, each.namespaced)
        for name in (each.plural, each.kind.lower(), *each.short_names, f"{each.plural}.{each.group}"):
            names.setdefault(name, kind)
    return names
