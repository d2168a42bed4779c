"""Listing and watching a collection of an API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from .._core.coop import Budget
from ..client.client import Client
from ..client.error_mapping import asking
from ..client.transport import READ_TIMEOUT
from ..objects.decoders import FromBytes
from ..objects.meta import ListOptions, ListResult
from ..objects.protobuf import MAGIC
from ..protocols import WatchStream
from .body import ListBodySplitter
from .collection import Collection, asked, query_of
from .events import EventStream
from .lines import LONGEST_OBJECT
from .list_watch import ListWatch, NamedStream
from .partial import PartialStream, partial_list, reading_partial
from .protobuf_body import ProtobufListSplitter

SIGN_OF_LIFE = 1.0
"""Seconds after which a list that arrives slowly says that it does."""


class ResourceListWatch(ListWatch):
    """One collection of an API server. Made by ``ListWatch.for_resource``."""

    def __init__(self, client: Client, resource: Collection, longest_object: int = LONGEST_OBJECT) -> None:
        # ListWatch's own is for functions. Given its own methods each would be a reference cycle, and outlive its use.
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
        """One page, in pieces of a few hundred kilobytes as they arrive. Raises as ``list``.

        While less arrives than would make a piece there is an empty one now and then: the list is not dead.
        """
        options = self._resource.with_selectors(options)
        metadata_only = self._resource.metadata_only
        with self._resource.explaining(), asking(asked("list", self.description, options)):
            body = await self.client.stream(
                self._resource.path,
                query_of(options),
                idle_timeout=READ_TIMEOUT,
                accept=self._resource.accept(lists=True),
            )
            try:
                read_item = reading_partial(options.read_item) if metadata_only else options.read_item
                splitter: ListBodySplitter | ProtobufListSplitter | None = None
                budget = Budget()
                now = asyncio.get_running_loop().time
                given = now()
                async for chunk in body:
                    if splitter is None:
                        splitter = self._splitter_of(chunk, read_item)
                    piece = splitter.feed(chunk)
                    if piece is None and now() - given >= SIGN_OF_LIFE:
                        piece = ListResult(())
                    if piece is not None:
                        yield partial_list(piece) if metadata_only else piece
                        given = now()
                    if budget.is_spent():
                        await budget.pause()
            finally:
                await body.aclose()
            last = (splitter or self._splitter_of(b"", read_item)).close()
            yield partial_list(last) if metadata_only else last

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch: a stream of lists of events. Close it with ``aclose``."""
        options = self._resource.with_selectors(options)
        what = asked("watch", self.description, options)
        with self._resource.explaining(), asking(what):
            body = await self.client.stream(
                self._resource.path,
                query_of(options, watch=True),
                accept=self._resource.accept(lists=False),
            )
        events: Any = EventStream(body, self._longest_object)
        return NamedStream(PartialStream(events) if self._resource.metadata_only else events, what)

    def _splitter_of(
        self, beginning: bytes, read_item: FromBytes | None
    ) -> ListBodySplitter | ProtobufListSplitter:
        """What takes a body apart that begins so: as JSON never does, or in any other way."""
        if beginning.startswith(MAGIC[:1]):
            return ProtobufListSplitter(self._longest_object)
        return ListBodySplitter(self._longest_object, read_item)
