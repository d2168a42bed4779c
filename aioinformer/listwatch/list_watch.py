"""ListWatch: list and watch one collection, by your functions or from an API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from .._core.cancellation import maybe_await
from .._core.checks import require_count
from .._core.coop import Budget
from ..client.client import Client
from ..client.error_mapping import name_request
from ..client.lookup import ResourceName, look_up
from ..client.request_spans import request_span
from ..client.transport import READ_TIMEOUT
from ..errors import ConfigError, DecodeError
from ..objects.decoders import FromBytes
from ..objects.meta import (
    ListOptions,
    ListResult,
    WatchEvent,
    require_list_result,
)
from ..objects.protobuf import MAGIC
from ..protocols import SharedHealth, WatchStream
from .body import ListBodySplitter
from .collection import Collection, query_of, request_text
from .events import EventStream
from .lines import LONGEST_OBJECT
from .named_stream import NamedStream
from .partial import PartialStream, partial_list, read_partial
from .protobuf_body import ProtobufListSplitter

EMPTY_PIECE_INTERVAL = 1.0
"""Seconds, at least, between two empty pieces of a list that arrives slowly."""

ListFunc = Callable[[ListOptions], ListResult | Awaitable[ListResult]]
WatchFunc = Callable[
    [ListOptions],
    AsyncIterable[WatchEvent | list[WatchEvent]] | Awaitable[AsyncIterable[WatchEvent | list[WatchEvent]]],
]


class ListWatch:
    """Lists and watches one collection (client-go ``ListWatch``).

    Errors of your functions and streams are converted: OSError, TimeoutError and aiohttp.ClientError become
    TransportError, the ApiException of the Kubernetes clients becomes ApiError. Every message names the request.

    Args:
        list_func: Returns the collection, or the page of it that the options ask for. Plain or async; a plain function
            must not block.
        watch_func: Returns an async iterator of WatchEvents or of lists of them. Plain or async. The iterator is
            closed with ``aclose()`` if it has that method. An exception of the call means that the watch did not
            start; an exception of the iterator means that the stream ended.
        description: The collection's name in messages: ``"pods in default"``.
        watch_list_semantics: Whether the watch understands ``send_initial_events``.

    Attributes:
        description: The collection's name in messages.
        health: Server health, shared with the other readers of the same server; None for functions.
    """

    def __init__(
        self,
        list_func: ListFunc,
        watch_func: WatchFunc,
        *,
        description: str = "objects",
        watch_list_semantics: bool = False,
    ) -> None:
        self._list_func = list_func
        self._watch_func = watch_func
        self._watch_list_semantics = watch_list_semantics
        self.description = description
        self.health: SharedHealth | None = None

    @staticmethod
    def for_resource(
        client: Any,
        api_version: ResourceName | type[Any],
        plural: str = "",
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        *,
        metadata_only: bool = False,
        protobuf: bool = False,
        longest_object: int = LONGEST_OBJECT,
    ) -> ListWatch:
        """Return a ListWatch for a collection of an API server, built-in or custom.

        Args:
            client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
            api_version: ``"v1"``, ``"apps/v1"``, ``"example.com/v1"``; or, alone, the resource: a name such as
                ``"pods"`` or ``"deploy"``, or a class. See docs/typed-resources.md.
            plural: ``"pods"``, ``"deployments"``.
            namespace: None for all namespaces, and for cluster-scoped resources.
            label_selector: As kubectl's ``-l``. Options with a selector of their own override it.
            field_selector: As kubectl's ``--field-selector``. Options override it, too.
            metadata_only: Read only the objects' metadata. The server sends PartialObjectMetadata, without ``spec``,
                ``status`` and ``data``.
            protobuf: Read built-in kinds, and metadata, as protobuf. It takes two thirds of the memory and less CPU,
                also on the server, unless your code reads many fields of each object. KubeObjects behave the same.
                Custom resources and other kinds that the server has only as JSON still come as JSON. See
                docs/objects.md.
            longest_object: Largest allowed object, in bytes. A list or watch with a larger object fails with
                DecodeError, so that an endless one cannot fill the memory. 256 MiB.

        Raises:
            ConfigError: The arguments do not name a collection.
        """
        client = Client.of(client)
        named_resource = look_up(client, api_version, plural)
        if namespace and not named_resource.is_namespaced(True):
            raise ConfigError(
                f"{named_resource.plural} are cluster-scoped: read them without namespace={namespace!r}"
            )
        resource = Collection(
            named_resource.api_version,
            named_resource.plural,
            namespace or None,
            label_selector or "",
            field_selector or "",
            metadata_only,
            protobuf,
        )
        require_count("longest_object", longest_object)
        return ResourceListWatch(client, resource, longest_object)

    @property
    def watch_list_semantics(self) -> bool:
        """Whether the watch understands ``send_initial_events``."""
        return self._watch_list_semantics

    @property
    def resource(self) -> Collection | None:
        """The API server's collection; None for functions."""
        return None

    async def list(self, options: ListOptions | None = None) -> ListResult:
        """Return the collection, or the page of it that the options ask for.

        Raises:
            ApiError: The server refused.
            TransportError: No usable answer arrived.
            DecodeError: The answer is not a list.
        """
        items: list[Any] = []
        piece = ListResult(items)
        async for piece in self.list_chunks(options or ListOptions()):
            items.extend(piece.items)
        return replace(piece, items=items)

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        """Yield one page in one or more pieces.

        The last piece carries the version and the continue token. Raises as ``list``.
        """
        with name_request(request_text("list", self.description, options)):
            result = require_list_result(await maybe_await(self._list_func(options)))
        yield result

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch.

        Returns:
            An async iterator of WatchEvents or of lists of them. Call its ``aclose`` to end the watch.

        Raises:
            ApiError: The server refused.
            TransportError: No usable answer arrived.
        """
        request = request_text("watch", self.description, options)
        with name_request(request):
            opened: Any = await maybe_await(self._watch_func(options))
            if not hasattr(opened, "__aiter__"):
                raise DecodeError(f"expected an async iterator, got {type(opened).__name__}")
        return NamedStream(opened, request)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.description}>"


class ResourceListWatch(ListWatch):
    """Lists and watches one collection of an API server. ``ListWatch.for_resource`` returns one."""

    def __init__(self, client: Client, resource: Collection, longest_object: int = LONGEST_OBJECT) -> None:
        # No super().__init__: passing bound methods as the two functions would make a reference cycle.
        self.description = str(resource)
        self.client = client
        self.health = client.health
        self._resource = resource
        self._longest_object = longest_object

    @property
    def watch_list_semantics(self) -> bool:
        return True

    @property
    def resource(self) -> Collection:
        return self._resource

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        """Yield one page in pieces of a few hundred kilobytes, as they arrive. Raises as ``list``.

        A slow answer yields an empty piece about once a second, which shows that the list still makes progress.
        """
        options = self._resource.with_selectors(options)
        metadata_only = self._resource.metadata_only
        with (
            self._span("list", is_current=False),
            self._resource.explain_errors(),
            name_request(request_text("list", self.description, options)),
        ):
            body = await self.client.stream(
                self._resource.path,
                query_of(options),
                idle_timeout=READ_TIMEOUT,
                accept=self._resource.accept(lists=True),
            )
            try:
                read_item = read_partial(options.read_item) if metadata_only else options.read_item
                splitter: ListBodySplitter | ProtobufListSplitter | None = None
                budget = Budget()
                now = asyncio.get_running_loop().time
                yielded_at = now()
                async for chunk in body:
                    if splitter is None:
                        splitter = self._splitter_for(chunk, read_item)
                    piece = splitter.feed(chunk)
                    if piece is None and now() - yielded_at >= EMPTY_PIECE_INTERVAL:
                        piece = ListResult(())
                    if piece is not None:
                        yield partial_list(piece) if metadata_only else piece
                        yielded_at = now()
                    if budget.is_spent():
                        await budget.pause()
            finally:
                await body.aclose()
            last = (splitter or self._splitter_for(b"", read_item)).close()
            yield partial_list(last) if metadata_only else last

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch: a stream of lists of events. Close it with ``aclose``."""
        options = self._resource.with_selectors(options)
        request = request_text("watch", self.description, options)
        with self._span("watch"), self._resource.explain_errors(), name_request(request):
            body = await self.client.stream(
                self._resource.path,
                query_of(options, watch=True),
                accept=self._resource.accept(lists=False),
            )
        events = EventStream(body, self._longest_object, request)
        return PartialStream(events) if self._resource.metadata_only else events

    def _span(self, verb: str, *, is_current: bool = True) -> AbstractContextManager[object]:
        resource = self._resource
        return request_span(
            verb, resource.api_version, resource.plural, resource.namespace or "", is_current=is_current
        )

    def _splitter_for(
        self, first_chunk: bytes, read_item: FromBytes | None
    ) -> ListBodySplitter | ProtobufListSplitter:
        """Return the splitter for a body that begins with this chunk: no JSON begins with protobuf's first byte."""
        if first_chunk.startswith(MAGIC[:1]):
            return ProtobufListSplitter(self._longest_object)
        return ListBodySplitter(self._longest_object, read_item)
