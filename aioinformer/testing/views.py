"""How objects are shown: as they are, as rows of a table, or their metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import load
from aioinformer.testing.tables import columns, row

if TYPE_CHECKING:
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredObject

_META = "meta.k8s.io/v1"


class PlainView:
    """Objects as they are; their bytes go out unread."""


class MetadataView:
    """`PartialObjectMetadata`: what informers that only want metadata ask for."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource

    def one(self, stored: StoredObject) -> bytes:
        """An object."""
        return msgspec.json.encode(self._partial(stored)) + b"\n"

    def page(self, items: list[StoredObject], version: str, token: str, remaining: int | None) -> bytes:
        """A list."""
        listed = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": _META,
            "metadata": _list_metadata(version, token, remaining),
            "items": [self._partial(stored) for stored in items],
        }
        return msgspec.json.encode(listed) + b"\n"

    def line(self, kind: str, stored: StoredObject) -> bytes:
        """A line of a watch."""
        return msgspec.json.encode({"type": kind, "object": self._partial(stored)}) + b"\n"

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """A bookmark's line."""
        partial = {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}
        return msgspec.json.encode({"type": "BOOKMARK", "object": partial}) + b"\n"

    def _partial(self, stored: StoredObject) -> dict[str, Any]:
        return partial_metadata(load(self._resource, stored))


class TableView:
    """`Table`: what `kubectl get` asks for. In a watch only the first table names the columns.

    Args:
        resource: What the rows are.
        include: What of its object comes with a row: `"None"`, `"Object"`, or else its metadata.
    """

    def __init__(self, resource: ResourceType, include: str = "") -> None:
        self._resource = resource
        self._include = include
        self._named = False

    def one(self, stored: StoredObject) -> bytes:
        """An object."""
        return self._encode([stored], {"resourceVersion": str(stored.resource_version)})

    def page(self, items: list[StoredObject], version: str, token: str, remaining: int | None) -> bytes:
        """A list."""
        return self._encode(items, _list_metadata(version, token, remaining))

    def line(self, kind: str, stored: StoredObject) -> bytes:
        """A line of a watch."""
        table = self._table([stored], {"resourceVersion": str(stored.resource_version)})
        if self._named:
            del table["columnDefinitions"]
        self._named = True
        return msgspec.json.encode({"type": kind, "object": table}) + b"\n"

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """A bookmark's line."""
        table = self._table([], metadata)
        if self._named:
            del table["columnDefinitions"]
        return msgspec.json.encode({"type": "BOOKMARK", "object": table}) + b"\n"

    def _encode(self, items: list[StoredObject], metadata: dict[str, Any]) -> bytes:
        return msgspec.json.encode(self._table(items, metadata)) + b"\n"

    def _table(self, items: list[StoredObject], metadata: dict[str, Any]) -> dict[str, Any]:
        rows = []
        for stored in items:
            obj = load(self._resource, stored)
            shown: dict[str, Any] = {"cells": row(self._resource, obj)}
            if self._include != "None":
                shown["object"] = obj if self._include == "Object" else partial_metadata(obj)
            rows.append(shown)
        return {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": metadata,
            "columnDefinitions": columns(self._resource),
            "rows": rows,
        }


def partial_metadata(obj: dict[str, Any]) -> dict[str, Any]:
    """An object's metadata as an object of its own."""
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def _list_metadata(version: str, token: str, remaining: int | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": version}
    if token:
        metadata["continue"] = token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return metadata


def negotiate(accept: str, resource: ResourceType, include: str = "") -> PlainView | MetadataView | TableView:
    """The view that an Accept header asks for, with the parameter `includeObject`.

    Raises:
        StatusError: 406 if nothing in it can be served.
    """
    if not accept or accept == "*/*" or accept.startswith("application/json,"):
        return PlainView()
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        if media in ("*/*", "application/*") or (media == "application/json" and not _shape(parameters)):
            return PlainView()
        if media != "application/json":
            continue
        shape = _shape(parameters)
        if shape == "Table":
            return TableView(resource, include)
        if shape in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return MetadataView(resource)
    raise StatusError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json",
        details={},
    )


def _shape(parameters: list[str]) -> str:
    """The `as` parameter, where its version is one that is served."""
    given: dict[str, str] = {}
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        given[name] = value
    return given.get("as", "") if given.get("v", "v1") in ("v1", "v1beta1") else "unknown"
