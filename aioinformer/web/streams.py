"""Streams of a feed's events, as server-sent events and as messages of a WebSocket, without a web framework."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from .._core.callables import require_callable
from .._core.checks import require_flag, require_seconds
from ..errors import ConfigError
from ..objects.encoding import fields_of
from ..objects.kube_object import KubeObject
from ..objects.labels import LabelSelector
from ..objects.meta import BOOKMARK
from .feed import ChangeFeed
from .selection import Selection, require_short
from .subscription import FeedEvent, Slow, Subscription

T = TypeVar("T")

KEEP_ALIVE = 15.0
"""Seconds of silence after which something is sent: proxies close silent connections after a minute."""

RETRY = 2.0
"""Seconds after which a browser connects again."""

CHUNK = 2**16
"""Bytes that are encoded for one subscriber before they are sent. Slow subscribers keep one chunk in memory."""

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",  # a proxy that compresses would collect events first
    "X-Accel-Buffering": "no",  # nginx
}
"""The headers of server-sent events, against caches and proxies that buffer."""

_encode = msgspec.json.Encoder().encode


class HasFeed(Protocol[T]):
    """What has a feed once the service has started, such as a WebInformer."""

    @property
    def feed(self) -> ChangeFeed[T]: ...


class Streams(Generic[T]):
    """How the events of a feed are selected and encoded for browsers.

    The data of an event is JSON: ``{"type": "ADDED", "key": "default/web", "object": {...}}``. A request narrows the
    selection by the parameters ``labelSelector`` and ``fieldSelector``, and resumes by the header ``Last-Event-ID`` or
    the parameter ``lastEventId``.

    Args:
        source: A ChangeFeed, or a WebInformer, whose feed is looked up at each request.
        label_selector: As for ``ChangeFeed.subscribe``.
        field_selector: As for ``ChangeFeed.subscribe``.
        where: As for ``ChangeFeed.subscribe``.
        slow: As for ``ChangeFeed.subscribe``.
        render: Returns what is sent of an object: something that msgspec encodes as JSON. None sends all of it; of a
            KubeObject the JSON as the server sent it, whose apiVersion and kind may be missing.
        old: Whether to send ``old`` with MODIFIED.
        keep_alive: Seconds of silence after which a comment is sent, with the id if that has changed.
        retry: Seconds after which a browser connects again.

    Raises:
        SelectorError: A selector cannot be parsed.
        ConfigError: Another argument is invalid.
    """

    def __init__(
        self,
        source: ChangeFeed[T] | HasFeed[T],
        *,
        label_selector: str | LabelSelector | Mapping[str, Any] | None = None,
        field_selector: str | None = None,
        where: Callable[[T], bool] | None = None,
        slow: Slow = "coalesce",
        render: Callable[[T], Any] | None = None,
        old: bool = False,
        keep_alive: float = KEEP_ALIVE,
        retry: float = RETRY,
    ) -> None:
        if not isinstance(source, ChangeFeed) and not hasattr(type(source), "feed"):
            raise ConfigError(f"expected a ChangeFeed or a WebInformer, not {source!r:.200}")
        if render is not None:
            require_callable("render", render)
        require_flag("old", old)
        require_seconds("keep_alive", keep_alive)
        require_seconds("retry", retry)
        if not keep_alive:
            raise ConfigError(
                "keep_alive must be above 0: without it, nothing notices a connection that is gone"
            )
        self._source = source
        self._selection: Selection[T] = Selection(label_selector, field_selector, where)
        self._slow: Slow = slow
        self._render: Callable[[Any], Any] = _whole if render is None else render
        self._sends_old = old
        self._keep_alive = keep_alive
        self._retry = retry

    def subscribe(self, query: Mapping[str, str], last_event_id: str = "") -> Subscription[T]:
        """Subscribe as a request says.

        Args:
            query: The parameters of its URL.
            last_event_id: The header ``Last-Event-ID``.

        Raises:
            SelectorError: A selector cannot be parsed, or names a field that the object type lacks.
            ConfigError, InformerError: As ``ChangeFeed.subscribe``.
        """
        source = self._source
        feed = source if isinstance(source, ChangeFeed) else source.feed
        labels = query.get("labelSelector", "")
        require_short(labels)
        narrowed: Selection[T] = Selection(
            labels, query.get("fieldSelector"), object_type=feed.informer.object_type
        )
        after = last_event_id or query.get("lastEventId", "")
        return feed.subscribe_to(self._selection & narrowed, after, slow=self._slow)

    async def server_sent_events(self, subscription: Subscription[T]) -> AsyncGenerator[bytes, None]:
        """Yield the events in the format of ``text/event-stream``, until the feed ends."""
        yield b"retry: %d\n\n" % (self._retry * 1000)
        sent = ""
        while (batch := await subscription.next_batch(self._keep_alive)) is not None:
            lines, size = list[bytes](), 0
            for event in batch:
                if event.id:
                    sent = event.id
                    lines.append(b"id: %s\n" % sent.encode())
                data = self._data(event)
                lines.append(b"data: %s\n\n" % data)
                size += len(data)
                if size >= CHUNK:
                    yield b"".join(lines)
                    lines, size = [], 0
            if not batch:
                is_new = subscription.id not in ("", sent)
                sent = subscription.id or sent
                lines.append(b"id: %s\n\n" % sent.encode() if is_new else b":\n\n")
            if lines:
                yield b"".join(lines)

    async def messages(self, subscription: Subscription[T]) -> AsyncGenerator[str, None]:
        """Yield the events as texts for a WebSocket, until the feed ends. A BOOKMARK has the id while nothing comes."""
        while (batch := await subscription.next_batch(self._keep_alive)) is not None:
            for event in batch:
                yield self._data(event, with_id=True).decode(errors="replace")
            if not batch:
                yield _encode({"type": BOOKMARK, "id": subscription.id}).decode()

    def _data(self, event: FeedEvent[T], *, with_id: bool = False) -> bytes:
        """Return an event as JSON in one line."""
        data: dict[str, Any] = {"type": event.type}
        if event.object is not None:
            data |= {"key": event.key, "object": self._render(event.object)}
        if self._sends_old and event.old is not None:
            data["old"] = self._render(event.old)
        if with_id and event.id:
            data["id"] = event.id
        line = _encode(data)
        # In JSON that the server sent, line breaks are white space between values.
        return line.translate(None, b"\r\n") if b"\n" in line or b"\r" in line else line


def _whole(obj: Any) -> Any:
    return msgspec.Raw(obj.raw) if isinstance(obj, KubeObject) else fields_of(obj)
