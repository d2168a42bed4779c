"""The words in which list and watch are spoken: options, results, events (k8s.io/apimachinery ``metav1``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"
NO_EVENT = ""
"""The type given to a line of a watch that says no event; its object is the line."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation, value ``"true"``, of the bookmark that closes a WatchList's initial events (KEP-3157)."""

NOT_OLDER_THAN = "NotOlderThan"

PARTIAL_KIND = "PartialObjectMetadata"
"""What an object whose metadata alone was asked for says in place of its kind."""

_EPOCH = datetime.fromtimestamp(0, UTC)

_MATCHES = ("", NOT_OLDER_THAN, "Exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What a list or watch asks for (``metav1.ListOptions``). An empty value is not sent.

    Attributes:
        resource_version: ``""`` the most recent state, ``"0"`` any state, else at least (or, for a watch,
            after) this version.
        resource_version_match: ``"NotOlderThan"``, ``"Exact"`` or ``""``.
        limit: Objects a page; 0 asks for all at once.
        continue_token: The next page of a list, as its last page named it.
        label_selector: As kubectl's ``-l``.
        field_selector: As kubectl's ``--field-selector``.
        allow_watch_bookmarks: Ask a watch for BOOKMARK events.
        send_initial_events: Ask a watch to begin with the collection itself (WatchList).
        timeout_seconds: Seconds after which the server ends a watch.
        read_item: What makes an object of a list's item (its bytes; apiVersion and kind where the list has them), for
            a source that has to read items to take them apart: it may then give the object instead of the bytes.
            Raises DecodeError for what is not one whole JSON object. Not sent, and options are not compared by it.

    Raises:
        ConfigError: A value that no request can carry.
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
    read_item: Callable[[bytes, TypeMeta | None], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("resource_version", "continue_token", "label_selector", "field_selector"):
            require_text(name, getattr(self, name))
        require_count("limit", self.limit)
        if self.timeout_seconds is not None:
            require_count("timeout_seconds", self.timeout_seconds)
        if self.resource_version_match not in _MATCHES:
            raise ConfigError(
                f"resource_version_match must be one of {_MATCHES}, not {self.resource_version_match!r}"
            )


class TypeMeta(NamedTuple):
    """apiVersion and kind, which the items of a built-in LIST leave to their collection."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class ListResult:
    """A list, a page of one, or a piece of a page.

    Args:
        items: Bytes, dicts or instances of the object type; of what the source could not read the DecodeErrors.
        resource_version: The version of the collection that the items show.
        continue_token: ``""`` on the last page.
        type_meta: apiVersion and kind of the items, for items that do not carry them.
    """

    items: Sequence[Any]
    resource_version: str = ""
    continue_token: str = ""
    type_meta: TypeMeta | None = None


def require_list_result(given: object) -> ListResult:
    """See that a list function has given what it should.

    Raises:
        DecodeError: It is no ListResult.
    """
    if not isinstance(given, ListResult):
        raise DecodeError(f"expected a ListResult, got {type(given).__name__}")
    return given


class WatchEvent(msgspec.Struct, Generic[Object], frozen=True, gc=False):
    """One event of a watch. Unpacks as ``type, object = event``.

    A ``WatchEvent[Pod]`` has a Pod for its object; a ``WatchEvent`` anything. Type checkers do not know what it
    unpacks as.

    ``type`` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, or whatever else a server said, or NO_EVENT. ``object``
    is bytes, a dict or an instance of the object type; an ERROR's is its Status as a dict. What a source could not
    read is the DecodeError that says why.
    """

    type: str
    object: Object

    def __iter__(self) -> Iterator[Any]:
        return iter((self.type, self.object))


def micro_time(micros: int) -> str:
    """A time of so many microseconds since 1970 (``metav1.MicroTime``)."""
    return f"{_EPOCH + timedelta(microseconds=micros):%Y-%m-%dT%H:%M:%S.%fZ}"
