"""The resources that an operator declares, as far as they are known without a server."""

from __future__ import annotations

from typing import Any

from .._core.checks import LABEL, is_subdomain
from ..errors import ConfigError
from ..objects.api_resources import APIResource, built_in
from ..typed import CustomResource, crd
from ..typed.names import resource_of_class

Named = str | type[Any]
"""A resource: ``"pods"``, ``"deploy"``, ``"certificates.cert-manager.io"``, or the class of its objects."""


def declared(named: Named) -> APIResource:
    """Return the resource that a declaration names.

    Of a custom resource that is named by its plural and group, version and kind are empty, and it counts as namespaced:
    discovery finds them for a run.

    Raises:
        ConfigError: The name or the class is none of a resource; the message has all mistakes of a class.
    """
    if isinstance(named, type):
        if issubclass(named, CustomResource):
            crd(named)
        return resource_of_class(named)
    if not isinstance(named, str):
        raise ConfigError(f"a resource is named by a string or a class, not {named!r}")
    if (found := built_in(named)) is not None:
        return found
    plural, _, group = named.partition(".")
    if not (LABEL.fullmatch(plural) and "." in group and is_subdomain(group)):
        raise ConfigError(
            f"{named!r} is no built-in resource: for a custom one, pass its class, or its plural and group, as in "
            "'certificates.cert-manager.io'"
        )
    return APIResource(f"{group}/", plural, "", True)


def is_discovered(named: Named) -> bool:
    """Return whether only a server knows the resource's version and kind."""
    return isinstance(named, str) and built_in(named) is None


def has_status(named: Named) -> bool:
    """Return whether the resource may have a status, as far as that is known."""
    return not (isinstance(named, type) and issubclass(named, CustomResource)) or (
        "status" in named.__struct_fields__
    )


def shown(named: Named) -> str:
    """Return how a program names the resource, for messages."""
    return repr(named) if isinstance(named, str) else named.__name__
