"""What answers show of objects: all of them, rows of a table, or their metadata alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.encodings import JSON, Encoding
from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import load, raw, raw_item
from aioinformer.testing.tables import columns, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.listing import Page
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredObject

META_GROUP = "meta.k8s.io"
PARTIAL = "PartialObjectMetadata"


class View(ABC):
    """What a client is shown of a resource.

    Attributes:
        resource: What the objects are.
        encoding: How they are written.
    """

    def __init__(self, resource: ResourceType, encoding: Encoding) -> None:
        self.resource = resource
        self.encoding = encoding

    @abstractmethod
    def one(self, stored: StoredObject) -> bytes:
        """An object, as a body."""

    @abstractmethod
    def page(self, page: Page) -> Iterator[bytes]:
        """A list, as a body in pieces; see ``Encoding.page``."""

    @abstractmethod
    def event(self, kind: str, stored: StoredObject) -> bytes:
        """An event of a watch."""

    @abstractmethod
    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """A bookmark of a watch."""

    def error(self, status: Object) -> bytes:
        """What tells a watch of an error."""
        return self.encoding.event("ERROR", status)


class PlainView(View):
    """Objects as they are; their JSON goes out unread. Get one by ``plain_view``."""

    def one(self, stored: StoredObject) -> bytes:
        return self.encoding.body(raw(self.resource, stored))

    def page(self, page: Page) -> Iterator[bytes]:
        resource = self.resource
        metadata: dict[str, Any] = _list_metadata(page)
        listed: Object
        if resource.custom:  # which are listed in the order of the alphabet, with a token in any case
            metadata = dict(sorted({"continue": "", **metadata}.items()))
            listed = {"apiVersion": resource.api_version, "items": [], "kind": f"{resource.kind}List"}
            listed["metadata"] = metadata
        else:
            listed = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
            listed |= {"metadata": metadata, "items": []}
        return self.encoding.page(listed, (raw_item(resource, stored) for stored in page.items))

    def event(self, kind: str, stored: StoredObject) -> bytes:
        return self.encoding.event(kind, raw(self.resource, stored))

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        resource = self.resource
        if resource.custom:
            metadata = dict(sorted(metadata.items()))
            bookmark = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        else:
            bookmark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return self.encoding.event("BOOKMARK", bookmark)


@lru_cache(maxsize=256)
def plain_view(resource: ResourceType, encoding: Encoding) -> PlainView:
    """The one of a resource: what is kept of an event for a view is there for all watches."""
    return PlainView(resource, encoding)


class MetadataView(View):
    """`PartialObjectMetadata`: what informers that only want metadata ask for.

    Args:
        resource: What the objects are.
        encoding: How they are written.
        version: Of the group `meta.k8s.io`.
        of_lists: Whether `PartialObjectMetadataList` was asked for, which an object is not; nor is a list the other.
    """

    def __init__(self, resource: ResourceType, encoding: Encoding, version: str, *, of_lists: bool) -> None:
        super().__init__(resource, encoding)
        self._api_version = f"{META_GROUP}/{version}"
        self._of_lists = of_lists

    def one(self, stored: StoredObject) -> bytes:
        """An object.

        Raises:
            StatusError: 406 if a list was asked for.
        """
        if self._of_lists:
            name = _name_in_go(self.resource, "")
            message = f"you requested {PARTIAL}List, but the requested object is not a list (*{name})"
            raise StatusError(406, message=message)
        return self.encoding.body(self._partial(stored))

    def page(self, page: Page) -> Iterator[bytes]:
        """A list.

        Raises:
            StatusError: 406 if an object was asked for.
        """
        if not self._of_lists:
            name = _name_in_go(self.resource, "List")
            message = f"you requested {PARTIAL}, but the requested object is a list (*{name})"
            raise StatusError(406, message=message)
        listed = {
            "kind": f"{PARTIAL}List",
            "apiVersion": self._api_version,
            "metadata": _list_metadata(page),
            "items": None,  # as Go has it
        }
        return self.encoding.page(listed, (self._partial(stored) for stored in page.items))

    def event(self, kind: str, stored: StoredObject) -> bytes:
        """An event; nothing if lists were asked for."""
        return b"" if self._of_lists else self.encoding.event(kind, self._partial(stored))

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """A bookmark; likewise."""
        bookmark = partial_metadata({"metadata": metadata}, self._api_version)
        return b"" if self._of_lists else self.encoding.event("BOOKMARK", bookmark)

    def _partial(self, stored: StoredObject) -> Object:
        return partial_metadata(load(self.resource, stored), self._api_version)


class TableView(View):
    """`Table`: what `kubectl get` asks for. In a watch only the first table names the columns.

    Args:
        resource: What the rows are.
        version: Of the group `meta.k8s.io`.
        include: What of its object comes with a row: `"None"`, `"Object"`, or else its metadata.
    """

    def __init__(self, resource: ResourceType, version: str, include: str = "") -> None:
        super().__init__(resource, JSON)
        self._api_version = f"{META_GROUP}/{version}"
        self._include = include
        self._named = False

    def one(self, stored: StoredObject) -> bytes:
        return self.encoding.body(self._table([stored], {"resourceVersion": str(stored.resource_version)}))

    def page(self, page: Page) -> Iterator[bytes]:
        yield self.encoding.body(self._table(page.items, _list_metadata(page)))

    def event(self, kind: str, stored: StoredObject) -> bytes:
        table = self._table([stored], {"resourceVersion": str(stored.resource_version)})
        if self._named:
            del table["columnDefinitions"]
        self._named = True
        return self.encoding.event(kind, table)

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        table = self._table([], metadata)
        if self._named:
            del table["columnDefinitions"]
        return self.encoding.event("BOOKMARK", table)

    def _table(self, items: list[StoredObject], metadata: dict[str, Any]) -> Object:
        rows = []
        for stored in items:
            obj = load(self.resource, stored)
            shown: dict[str, Any] = {"cells": row(self.resource, obj)}
            if self._include != "None":
                shown["object"] = (
                    obj if self._include == "Object" else partial_metadata(obj, self._api_version)
                )
            rows.append(shown)
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": columns(self.resource),
            "rows": rows,
        }


def partial_metadata(obj: Object, api_version: str) -> Object:
    """An object's metadata as an object of its own."""
    return {"kind": PARTIAL, "apiVersion": api_version, "metadata": obj["metadata"]}


def _list_metadata(page: Page) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(page.resource_version)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _name_in_go(resource: ResourceType, suffix: str) -> str:
    """The type by which the real server knows a kind."""
    if resource.custom:
        return f"unstructured.Unstructured{suffix}"
    return f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}{suffix}"
