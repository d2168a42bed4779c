"""Options, results and events of list and watch (k8s.io/apimachinery ``metav1``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import msgspec

from .._core.checks import require_count, require_text
from ..errors import ConfigError, DecodeError

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # which type checkers have themselves

    Object = TypeVar("Object", default=Any, covariant=True)
else:
    from typing import TypeVar

    Object = TypeVar("Object", covariant=True)


class WatchEventType(StrEnum):
    """The type of a watch event. A server may send others: they stay plain strings, and are errors that name them."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"
    UNDECODABLE = "UNDECODABLE"
    """An event of RetryWatcher and InformerEvents whose object is an UndecodableObject."""
    SYNCED = "SYNCED"
    """An event of InformerEvents and ChangeFeed that follows the last object of the initial list."""
    NO_EVENT = ""
    """A watch line that is not an event; its object is the line."""

    __repr__ = str.__repr__


ADDED = WatchEventType.ADDED
MODIFIED = WatchEventType.MODIFIED
DELETED = WatchEventType.DELETED
BOOKMARK = WatchEventType.BOOKMARK
ERROR = WatchEventType.ERROR
UNDECODABLE = WatchEventType.UNDECODABLE
SYNCED = WatchEventType.SYNCED
NO_EVENT = WatchEventType.NO_EVENT
"""Names for the members: before Python 3.12 the lookup on an enum is slow."""

OBJECT_EVENTS = (MODIFIED, ADDED, DELETED, BOOKMARK)
"""The types of events with an object of the collection, or a bookmark; the most frequent first."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation, with value ``"true"``, of the bookmark that ends a WatchList's initial events (KEP-3157)."""

NOT_OLDER_THAN = "NotOlderThan"

PARTIAL_KIND = "PartialObjectMetadata"
"""The kind of objects from a request for metadata only."""

_EPOCH = datetime.fromtimestamp(0, UTC)

_MATCHES = ("", NOT_OLDER_THAN, "Exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Options of a list or watch request (``metav1.ListOptions``). Empty values are not sent.

    Attributes:
        resource_version: ``""`` for the most recent state, ``"0"`` for any state, else for a list at least this
            version, for a watch events after it.
        resource_version_match: ``"NotOlderThan"``, ``"Exact"`` or ``""``.
        limit: Objects per page; 0 for all in one page.
        continue_token: The token of the next page, from the page before.
        label_selector: As kubectl's ``-l``.
        field_selector: As kubectl's ``--field-selector``.
        allow_watch_bookmarks: Request BOOKMARK events.
        send_initial_events: Request a watch that begins with the collection's objects (WatchList).
        timeout_seconds: Seconds after which the server ends a watch.
        shard_selector: The hash ranges of objects to read, as in KEP-5866. A server that does not know it ignores it.
        read_item: Decodes a list's item from its bytes, and the list's apiVersion and kind. A ListerWatcher that has to
            scan the items anyway may call it and return objects in place of bytes. It raises DecodeError for bytes
            that are not one whole JSON object. Not sent, and not compared.

    Raises:
        ConfigError: A value cannot be sent.
    """

    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    label_selector: str = ""
    field_selector: str = ""
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None
    shard_selector: str = ""
    read_item: Callable[[bytes, TypeMeta | None], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in (
            "resource_version",
            "continue_token",
            "label_selector",
            "field_selector",
            "shard_selector",
        ):
            require_text(name, getattr(self, name))
        require_count("limit", self.limit)
        if self.timeout_seconds is not None:
            require_count("timeout_seconds", self.timeout_seconds)
        if self.resource_version_match not in _MATCHES:
            raise ConfigError(
                f"resource_version_match must be one of {_MATCHES}, not {self.resource_version_match!r}"
            )


class TypeMeta(NamedTuple):
    """apiVersion and kind. Items of built-in lists do not have them; the list has."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class ListResult:
    """A list, a page of a list, or a part of a page.

    Args:
        items: Bytes, dicts or instances of the object type; a DecodeError for each object that could not be read.
        resource_version: The collection's version.
        continue_token: ``""`` on the last page.
        type_meta: apiVersion and kind, for items without them.
        shard_selector: The shard selector that the server has applied, of ``shardInfo``; ``""`` for none.
    """

    items: Sequence[Any]
    resource_version: str = ""
    continue_token: str = ""
    type_meta: TypeMeta | None = None
    shard_selector: str = ""


def require_list_result(given: object) -> ListResult:
    """Check the result of a user's list function.

    Raises:
        DecodeError: It is not a ListResult.
    """
    if not isinstance(given, ListResult):
        raise DecodeError(f"expected a ListResult, got {type(given).__name__}")
    return given


class WatchEvent(msgspec.Struct, Generic[Object], frozen=True, gc=False):
    """One event of a watch. Unpacks as ``type, object = event``; type checkers do not know the types then.

    Attributes:
        type: An WatchEventType, or another type that the server sent.
        object: Bytes, a dict or an instance of the object type, such as a Pod in a ``WatchEvent[Pod]``. For ERROR it
            is the Status as a dict. If the object could not be read, it is the DecodeError.
    """

    type: str
    object: Object

    def __iter__(self) -> Iterator[Any]:
        return iter((self.type, self.object))


def micro_time(micros: int) -> str:
    """Format microseconds since 1970 as a ``metav1.MicroTime``."""
    return f"{_EPOCH + timedelta(microseconds=micros):%Y-%m-%dT%H:%M:%S.%fZ}"
