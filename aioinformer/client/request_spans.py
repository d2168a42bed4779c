"""Spans of requests about objects and collections."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from .._core.spans import KIND, NAMESPACE, OBJECT, RESOURCE, SUBRESOURCE, span
from ..objects.api_resources import built_in_resources


def request_span(
    verb: str,
    api_version: str,
    plural: str,
    namespace: str = "",
    name: str = "",
    *,
    kind: str = "",
    subresource: str = "",
    is_current: bool = True,
) -> AbstractContextManager[object]:
    """Return a context manager that makes a span of a request.

    Args:
        verb: ``"list"``, ``"watch"``, ``"get"``, ``"create"``, ``"update"``, ``"patch"`` or ``"delete"``.
        api_version: ``"apps/v1"``.
        plural: ``"deployments"``.
        namespace: ``""`` for all namespaces, and for cluster-scoped objects.
        name: The object's name; ``""`` for a collection.
        kind: The kind; ``""`` for that of the built-in resource.
        subresource: Such as ``"status"``.
        is_current: As for ``span``.
    """
    group = api_version.rpartition("/")[0]
    attributes = {
        RESOURCE: f"{plural}.{group}" if group else plural,
        SUBRESOURCE: subresource,
        KIND: kind or kind_of(api_version, plural),
        NAMESPACE: namespace,
        OBJECT: name,
    }
    return span(f"{verb} {plural}", attributes, is_current=is_current)


@cache
def _kinds() -> dict[tuple[str, str], str]:
    return {(resource.api_version, resource.plural): resource.kind for resource in built_in_resources()}


def kind_of(api_version: str, plural: str) -> str:
    """Return the kind of a built-in resource; ``""`` of another."""
    return _kinds().get((api_version, plural), "")
