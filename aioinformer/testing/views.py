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

_GROUP = "meta.k8s.io"
_VERSIONS = ("v1", "v1beta1")


class PlainView:
    """Objects as they are; their bytes go out unread."""


class MetadataView:
    """`PartialObjectMetadata`: what informers that only want metadata ask for.

    Args:
        resource: What the objects are.
        version: Of the group `meta.k8s.io`.
        of_lists: Whether `PartialObjectMetadataList` was asked for, which an object is not; nor is a list the other.
    """

    def __init__(self, resource: ResourceType, version: str, *, of_lists: bool) -> None:
        self._resource = resource
        self._api_version = f"{_GROUP}/{version}"
        self._of_lists = of_lists

    def one(self, stored: StoredObject) -> bytes:
        """An object.

        Raises:
            StatusError: 406 if a list was asked for.
        """
        if self._of_lists:
            name = _name_in_go(self._resource, "")
            raise _not_acceptable(
                f"you requested PartialObjectMetadataList, but the requested object is not a list (*{name})"
            )
        return msgspec.json.encode(self._partial(stored)) + b"\n"

    def page(self, items: list[StoredObject], version: str, token: str, remaining: int | None) -> bytes:
        """A list.

        Raises:
            StatusError: 406 if an object was asked for.
        """
        if not self._of_lists:
            name = _name_in_go(self._resource, "List")
            raise _not_acceptable(
                f"you requested PartialObjectMetadata, but the requested object is a list (*{name})"
            )
        listed = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": self._api_version,
            "metadata": _list_metadata(version, token, remaining),
            "items": [self._partial(stored) for stored in items] or None,  # as Go has it
        }
        return msgspec.json.encode(listed) + b"\n"

    def line(self, kind: str, stored: StoredObject) -> bytes:
        """A line of a watch; nothing if lists were asked for."""
        return self._event(kind, self._partial(stored))

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """A bookmark's line."""
        return self._event("BOOKMARK", partial_metadata({"metadata": metadata}, self._api_version))

    def _event(self, kind: str, partial: dict[str, Any]) -> bytes:
        return b"" if self._of_lists else msgspec.json.encode({"type": kind, "object": partial}) + b"\n"

    def _partial(self, stored: StoredObject) -> dict[str, Any]:
        return partial_metadata(load(self._resource, stored), self._api_version)


class TableView:
    """`Table`: what `kubectl get` asks for. In a watch only the first table names the columns.

    Args:
        resource: What the rows are.
        version: Of the group `meta.k8s.io`.
        include: What of its object comes with a row: `"None"`, `"Object"`, or else its metadata.
    """

    def __init__(self, resource: ResourceType, version: str, include: str = "") -> None:
        self._resource = resource
        self._api_version = f"{_GROUP}/{version}"
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
                shown["object"] = (
                    obj if self._include == "Object" else partial_metadata(obj, self._api_version)
                )
            rows.append(shown)
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": columns(self._resource),
            "rows": rows,
        }


def partial_metadata(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """An object's metadata as an object of its own."""
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj["metadata"]}


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
        shape, version = _shape(parameters)
        if media in ("*/*", "application/*") or (media == "application/json" and not shape):
            return PlainView()
        if media != "application/json" or version not in _VERSIONS:
            continue
        if shape == "Table":
            return TableView(resource, version, include)
        if shape in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return MetadataView(resource, version, of_lists=shape.endswith("List"))
    raise _not_acceptable("only the following media types are accepted: application/json")


def _shape(parameters: list[str]) -> tuple[str, str]:
    """The `as` parameter, and its version where that is of the group that is served."""
    given = {name: value for name, _, value in (parameter.partition("=") for parameter in parameters)}
    return given.get("as", ""), given.get("v", "v1") if given.get("g", _GROUP) == _GROUP else ""


def _not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message, details={})


def _name_in_go(resource: ResourceType, suffix: str) -> str:
    """The type by which the real server knows a kind."""
    if resource.custom:
        return f"unstructured.Unstructured{suffix}"
    return f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}{suffix}"
