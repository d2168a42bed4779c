"""Listing and watching a collection of an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ..api import ListOptions, ListResult
from ..protocols import WatchStream
from ..turns import Turn
from .body import ListBodySplitter
from .client import Client
from .events import EventStream
from .failures import asking
from .list_watch import ListWatch, NamedStream
from .resource import Resource, asked, query_of
from .transport import READ_TIMEOUT


class ResourceListWatch(ListWatch):
    """One collection of an API server. Made by ``ListWatch.for_resource``."""

    def __init__(self, client: Client, resource: Resource) -> None:
        super().__init__(self.list, self.watch, description=str(resource), watch_list_semantics=True)
        self.client = client
        self.resource = self._resource = resource

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        """One page, in pieces of a few hundred kilobytes as they arrive. Raises as ``list``."""
        options = self._resource.with_selectors(options)
        with asking(asked("list", self.description, options)):
            body = await self.client.stream(self._resource.path, query_of(options), idle_timeout=READ_TIMEOUT)
            try:
                splitter, turn = ListBodySplitter(), Turn()
                async for chunk in body:
                    piece = splitter.feed(chunk)
                    if piece is not None:
                        yield piece
                    if turn.is_over():
                        await turn.pause()
            finally:
                await body.aclose()
            yield splitter.close()

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch: a stream of lists of events. Close it with ``aclose``."""
        options = self._resource.with_selectors(options)
        what = asked("watch", self.description, options)
        with asking(what):
            body = await self.client.stream(self._resource.path, query_of(options, watch=True))
        return NamedStream(EventStream(body, self.description, self._count_bad_lines), what)

    def _count_bad_lines(self, number: int) -> None:
        self.bad_lines += number
