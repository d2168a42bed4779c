"""Look up the resource that a call names: by a class, by a name, or by apiVersion and plural."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .._core.checks import require_text
from ..errors import ConfigError
from ..objects.api_resources import APIResource, built_in, built_in_resources, did_you_mean, is_cluster_scoped
from ..objects.kube_object import KubeObject
from .client import Client

_MODEL = re.compile(r"lightkube\.models\.([a-z]+)_(v[0-9][a-z0-9]*)")


ResourceName = str | APIResource
"""What names a resource: ``"pods"``, ``"deploy"``, an APIResource; or an apiVersion, before a plural."""


class NamedResource(NamedTuple):
    """A resource as a call names it.

    Attributes:
        api_version: ``"apps/v1"``.
        plural: ``"deployments"``.
        object_type: The type of its objects.
        resource: What is known of it; None if the call named apiVersion and plural.
    """

    api_version: str
    plural: str
    object_type: Any
    resource: APIResource | None

    @property
    def kind(self) -> str:
        """The kind; ``""`` if it is not known."""
        return "" if self.resource is None else self.resource.kind

    def is_namespaced(self, said: bool) -> bool:
        """Return whether its objects live in namespaces.

        Args:
            said: What the call says; it counts if nothing else is known.
        """
        if self.resource is None:
            return said and not is_cluster_scoped(self.api_version.rpartition("/")[0], self.plural)
        return self.resource.namespaced


def look_up(client: Client, resource: Any, plural: Any = "", object_type: Any = None) -> NamedResource:
    """Return the resource that the first arguments of a call name.

    Args:
        client: Knows the resources that its discovery found.
        resource: A class, a name, an APIResource; or an apiVersion.
        plural: The plural after an apiVersion. After a name, the object type may take this place.
        object_type: The object type; None for the class, or for KubeObject.

    Raises:
        ConfigError: They name no resource; the message says what to write.
    """
    if isinstance(plural, str) and plural:
        require_text("api_version", resource, like="apps/v1")
        return NamedResource(resource, plural, object_type or KubeObject, None)
    if plural != "" and object_type is None:
        object_type = plural
    known = resource_of(client, resource)
    is_class = isinstance(resource, type)
    return NamedResource(
        known.api_version, known.plural, object_type or (resource if is_class else KubeObject), known
    )


def resource_of(client: Client, resource: Any) -> APIResource:
    """Return the resource that a class or a name means.

    Args:
        client: Knows the resources that its discovery found.
        resource: A CustomResource class, a class of lightkube-models, an APIResource; or the name of a built-in
            resource, or of one that ``client.discovery`` found: ``"deploy"``, ``"certificates.cert-manager.io"``.

    Raises:
        ConfigError: It means no resource.
    """
    if isinstance(resource, APIResource):
        return resource
    if isinstance(resource, type):
        return resource_of_class(resource)
    if not isinstance(resource, str):
        raise ConfigError(f"a resource must be a name or a class, not {resource!r}")
    known = client.discovery.known(resource) or built_in(resource)
    if known is None:
        raise ConfigError(
            f"{resource!r} is not the name of a built-in resource: give its api_version and plural, as in "
            f'("example.com/v1", "caves"), or its CustomResource class, or find it at the server first: '
            f"await client.discovery.find({resource!r}){did_you_mean(resource)}"
        )
    return known


def resource_of_class(kind: type) -> APIResource:
    """Return the resource of a CustomResource class, or of a class of lightkube-models.

    Raises:
        ConfigError: The class does not name a resource, or its names are wrong.
    """
    resource = getattr(getattr(kind, "__declaration__", None), "resource", None)  # of a CustomResource
    if isinstance(resource, APIResource):
        return resource
    if match := _MODEL.fullmatch(kind.__module__):
        wanted = (match[1].replace("core", ""), match[2], kind.__name__)
        for known in built_in_resources():
            if (known.group.partition(".")[0], known.version, known.kind) == wanted:
                return known
    raise ConfigError(
        f"{kind.__name__} does not name its resource: give a name or api_version and plural before it, as in "
        f'("pods", {kind.__name__}), in an Operator Kind("pods", {kind.__name__}); or make it a CustomResource if the '
        f'kind is yours: class {kind.__name__}(CustomResource, group="example.com", version="v1")'
    )
