"""Listing and watching a collection of an API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ..api import ListOptions, ListResult
from ..failures import asking
from ..protocols import WatchStream
from ..turns import Turn
from .body import ListBodySplitter
from .client import Client
from .events import EventStream
from .lines import LONGEST_OBJECT
from .list_watch import ListWatch, NamedStream
from .partial import ACCEPT_LIST, ACCEPT_WATCH, PartialStream, partial_list, reading_partial
from .resource import Collection, asked, query_of
from .transport import JSON, READ_TIMEOUT

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
                accept=ACCEPT_LIST if metadata_only else JSON,
            )
            try:
                read_item = reading_partial(options.read_item) if metadata_only else options.read_item
                splitter, turn = ListBodySplitter(self._longest_object, read_item), Turn()
                now = asyncio.get_running_loop().time
                given = now()
                async for chunk in body:
                    piece = splitter.feed(chunk)
                    if piece is None and now() - given >= SIGN_OF_LIFE:
                        piece = ListResult(())
                    if piece is not None:
                        yield partial_list(piece) if metadata_only else piece
                        given = now()
                    if turn.is_over():
                        await turn.pause()
            finally:
                await body.aclose()
            last = splitter.close()
            yield partial_list(last) if metadata_only else last

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch: a stream of lists of events. Close it with ``aclose``."""
        options = self._resource.with_selectors(options)
        what = asked("watch", self.description, options)
        with self._resource.explaining(), asking(what):
            body = await self.client.stream(
                self._resource.path,
                query_of(options, watch=True),
                accept=ACCEPT_WATCH if self._resource.metadata_only else JSON,
            )
        events: Any = EventStream(body, self._longest_object)
        return NamedStream(PartialStream(events) if self._resource.metadata_only else events, what)
