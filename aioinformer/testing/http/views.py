"""Views of objects in answers: whole objects, rows of a table, or metadata only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.objects.meta import WatchEventType
from aioinformer.testing.errors import StatusError, bad_request, field_invalid
from aioinformer.testing.storage.codec import load, raw, raw_item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.http.encodings import Encoding
    from aioinformer.testing.http.listing import Page
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredObject

META_GROUP = "meta.k8s.io"
PARTIAL = "PartialObjectMetadata"


class View(ABC):
    """The form in which a client sees a resource's objects.

    Attributes:
        resource: The resource.
        encoding: The encoding of the answers.
    """

    def __init__(self, resource: ResourceType, encoding: Encoding) -> None:
        self.resource = resource
        self.encoding = encoding

    @abstractmethod
    def one(self, stored: StoredObject) -> bytes:
        """Return an object as a body."""

    @abstractmethod
    def page(self, page: Page) -> Iterator[bytes]:
        """Return a list as a body in pieces; see ``Encoding.page``."""

    @abstractmethod
    def event(self, kind: WatchEventType, stored: StoredObject) -> bytes:
        """Return an event of a watch."""

    @abstractmethod
    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """Return a bookmark of a watch."""

    def error(self, status: Object) -> bytes:
        """Return an ERROR event of a watch."""
        return self.encoding.event(WatchEventType.ERROR, status)


class PlainView(View):
    """Whole objects, whose stored JSON is sent without decoding. Call ``plain_view`` to get an instance."""

    def one(self, stored: StoredObject) -> bytes:
        return self.encoding.body(raw(self.resource, stored))

    def page(self, page: Page) -> Iterator[bytes]:
        resource = self.resource
        metadata: dict[str, Any] = _list_metadata(page)
        listed: Object
        if resource.custom:  # the real server sorts its fields and always sends a token
            metadata = dict(sorted({"continue": "", **metadata}.items()))
            listed = {"apiVersion": resource.api_version, "items": [], "kind": f"{resource.kind}List"}
            listed["metadata"] = metadata
        else:
            if page.shards:  # the real server says it of whole objects of built-in kinds only
                metadata["shardInfo"] = {"selector": page.shards}
            listed = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
            listed |= {"metadata": metadata, "items": []}
        return self.encoding.page(listed, (raw_item(resource, stored) for stored in page.items))

    def event(self, kind: WatchEventType, stored: StoredObject) -> bytes:
        return self.encoding.event(kind, raw(self.resource, stored))

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        resource = self.resource
        if resource.custom:
            metadata = dict(sorted(metadata.items()))
            bookmark = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        else:
            bookmark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return self.encoding.event(WatchEventType.BOOKMARK, bookmark)


@lru_cache(maxsize=256)
def plain_view(resource: ResourceType, encoding: Encoding) -> PlainView:
    """Return the shared view of a resource, so that all its watches share encoded events."""
    return PlainView(resource, encoding)


class MetadataView(View):
    """`PartialObjectMetadata`, which metadata-only informers request.

    Args:
        resource: The resource.
        encoding: The encoding of the answers.
        version: The version of the group `meta.k8s.io`.
        of_lists: True if the client accepts `PartialObjectMetadataList` only, False for `PartialObjectMetadata` only.
    """

    def __init__(self, resource: ResourceType, encoding: Encoding, version: str, *, of_lists: bool) -> None:
        super().__init__(resource, encoding)
        self._api_version = f"{META_GROUP}/{version}"
        self._of_lists = of_lists

    def one(self, stored: StoredObject) -> bytes:
        """Return an object as a body.

        Raises:
            StatusError: 406 if the client accepts lists only.
        """
        if self._of_lists:
            name = _name_in_go(self.resource, "")
            message = f"you requested {PARTIAL}List, but the requested object is not a list (*{name})"
            raise StatusError(406, message=message)
        return self.encoding.body(self._partial(stored))

    def page(self, page: Page) -> Iterator[bytes]:
        """Return a list as a body in pieces.

        Raises:
            StatusError: 406 if the client accepts objects only.
        """
        if not self._of_lists:
            name = _name_in_go(self.resource, "List")
            message = f"you requested {PARTIAL}, but the requested object is a list (*{name})"
            raise StatusError(406, message=message)
        listed = {
            "kind": f"{PARTIAL}List",
            "apiVersion": self._api_version,
            "metadata": _list_metadata(page),
            "items": None,  # Go encodes an empty list so
        }
        return self.encoding.page(listed, (self._partial(stored) for stored in page.items))

    def event(self, kind: WatchEventType, stored: StoredObject) -> bytes:
        """Return an event, or nothing if the client accepts lists only."""
        return b"" if self._of_lists else self.encoding.event(kind, self._partial(stored))

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        """Return a bookmark, or nothing if the client accepts lists only."""
        bookmark = partial_metadata({"metadata": metadata}, self._api_version)
        return b"" if self._of_lists else self.encoding.event(WatchEventType.BOOKMARK, bookmark)

    def _partial(self, stored: StoredObject) -> Object:
        return partial_metadata(load(self.resource, stored), self._api_version)


class TableView(View):
    """`Table`, which `kubectl get` requests. In a watch only the first table has column definitions.

    Args:
        resource: The resource.
        version: The version of the group `meta.k8s.io`.
        include: The part of the object in each row: `"None"`, `"Object"`, or `"Metadata"` or nothing for its metadata.
        encoding: The encoding of the answers.

    Raises:
        StatusError: 400 for another part.
    """

    def __init__(self, resource: ResourceType, version: str, include: str, encoding: Encoding) -> None:
        super().__init__(resource, encoding)
        self._api_version = f"{META_GROUP}/{version}"
        if include not in ("", "None", "Object", "Metadata"):
            why = "must be 'Metadata', 'Object', 'None', or empty"
            said = field_invalid("includeObject", include, why)["message"]
            raise bad_request(f"Unable to convert to Table as requested: includeObject: {said}")
        self._include = include
        self._columns_sent = False

    def one(self, stored: StoredObject) -> bytes:
        return self.encoding.body(self._table_of(stored))

    def page(self, page: Page) -> Iterator[bytes]:
        rows = []
        for row in self._rows(page.items):
            rows.append(row)
            yield b""  # other tasks may run
        yield self.encoding.body(self._table(rows, _list_metadata(page)))

    def event(self, kind: WatchEventType, stored: StoredObject) -> bytes:
        table = self._table_of(stored)
        if self._columns_sent:
            table["columnDefinitions"] = None
        self._columns_sent = True
        return self.encoding.event(kind, table)

    def bookmark(self, metadata: dict[str, Any]) -> bytes:
        table = self._table([], metadata)
        if self._columns_sent:
            table["columnDefinitions"] = None
        return self.encoding.event(WatchEventType.BOOKMARK, table)

    def _table_of(self, stored: StoredObject) -> Object:
        return self._table([*self._rows([stored])], {"resourceVersion": str(stored.resource_version)})

    def _rows(self, items: list[StoredObject]) -> Iterator[Object]:
        from aioinformer.testing.tables import conditions, in_table_order, row  # slow to import

        for obj in in_table_order(self.resource, (load(self.resource, stored) for stored in items)):
            shown: dict[str, Any] = {"cells": row(self.resource, obj)}
            if rows_conditions := conditions(self.resource, obj):
                shown["conditions"] = rows_conditions
            shown["object"] = self._show(obj)
            yield shown

    def _table(self, rows: list[Object], metadata: dict[str, Any]) -> Object:
        from aioinformer.testing.tables import columns  # slow to import

        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": columns(self.resource),
            "rows": rows,
        }

    def _show(self, obj: Object) -> Object | None:
        """Return the part of an object that its row has."""
        match self._include:
            case "None":
                return None
            case "Object":
                return obj
        return partial_metadata(obj, self._api_version)


def partial_metadata(obj: Object, api_version: str) -> Object:
    """Return an object's metadata as a PartialObjectMetadata."""
    return {"kind": PARTIAL, "apiVersion": api_version, "metadata": obj["metadata"]}


def _list_metadata(page: Page) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(page.resource_version)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _name_in_go(resource: ResourceType, suffix: str) -> str:
    """Return the Go type of a kind, as the real server's messages show it."""
    if resource.custom:
        return f"unstructured.Unstructured{suffix}"
    return f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}{suffix}"
