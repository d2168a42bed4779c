"""Paths of objects and collections at the API server, from keys or objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..errors import ConfigError, KeyFuncError
from ..listwatch.collection import Collection
from ..objects.api_resources import is_cluster_scoped
from ..objects.keys import meta_namespace_key_func, namespace_of, split_meta_namespace_key

SET_NAMESPACE = "set its metadata.namespace"
"""The advice for an object; a key gets the namespace in front."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The paths of one resource.

    Args:
        collection: The resource, in all namespaces.
        namespaced: Whether its objects live in namespaces.
    """

    collection: Collection
    namespaced: bool

    def key_of(self, target: Any) -> str:
        """Return the key of a target, which is a key or an object.

        Raises:
            ConfigError: The name is missing or invalid in a path, or the namespace does not fit the resource's scope.
        """
        try:
            key = target if isinstance(target, str) else meta_namespace_key_func(target)
            namespace, name = split_meta_namespace_key(key)
        except KeyFuncError as error:
            raise ConfigError(f"{self.collection}: {error}") from error
        self._check(namespace, name, "pass 'namespace/name'" if target is key else SET_NAMESPACE)
        return key

    def of(self, key: str, subresource: str = "") -> str:
        """Return the path of an object or of a subresource. Pass a key from ``key_of``."""
        namespace, name = split_meta_namespace_key(key)
        path = f"{self.within(namespace)}/{quote(name, safe='')}"
        return f"{path}/{quote(subresource, safe='')}" if subresource else path

    def for_new(self, obj: Any) -> tuple[str, str]:
        """Return ``(path, key)`` of the collection to create an object in; the key is for messages.

        Raises:
            ConfigError: As for ``key_of``; the name may be missing, since the server can generate it.
        """
        namespace = namespace_of(obj)
        try:
            key = meta_namespace_key_func(obj)
        except KeyFuncError:
            key = f"{namespace}/" if namespace else ""
        self._check(namespace, key.rpartition("/")[2] or "generated", SET_NAMESPACE)
        return self.within(namespace), key

    def within(self, namespace: str) -> str:
        """Return the path of the collection in a namespace; ``""`` for all namespaces."""
        path = self.collection.path
        if not namespace:
            return path
        root, _, plural = path.rpartition("/")
        return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}"

    def _check(self, namespace: str, name: str, advice: str) -> None:
        if self.namespaced and not namespace:
            raise ConfigError(
                f"{self.collection} are namespaced, and {name!r} has no namespace: {advice}; if they are "
                "cluster-scoped, create the resource with namespaced=False"
            )
        if namespace and not self.namespaced:
            why = (
                ""
                if is_cluster_scoped(self.collection.group, self.collection.plural)
                else " (namespaced=False)"
            )
            raise ConfigError(
                f"{self.collection} are cluster-scoped{why}, but {name!r} has the namespace {namespace!r}"
            )
        for part in (namespace, name) if namespace else (name,):
            # Such a name changes the path: deleting "default/.." must not delete a namespace.
            if not part.isprintable() or part in ("", ".", "..") or "/" in part or "%" in part:
                raise ConfigError(f"{self.collection}: {part!r} is not a valid name")
