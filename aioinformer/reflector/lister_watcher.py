"""Adapt any ListerWatcher to one that lists in chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from .._core.cancellation import maybe_await
from .._core.checks import require_methods
from ..objects.meta import ListOptions, ListResult, require_list_result
from ..protocols import ListsInChunks, may_batch

LIKE = 'ListWatch.for_resource(client, "v1", "pods")'


def lister_watcher_of(list_watch: object) -> ListsInChunks:
    """Return a ListerWatcher that lists in chunks: itself if it can, else an adapter with one chunk for each page.

    Raises:
        ConfigError: It is not a ListerWatcher.
    """
    lists = "list_chunks" if may_batch(list_watch, "list_chunks", "list") else "list"
    require_methods("list_watch", list_watch, (lists, "watch"), LIKE)
    return cast(ListsInChunks, list_watch if lists == "list_chunks" else _ListsPages(list_watch))


class _ListsPages:
    """Makes chunks of a ListerWatcher's ``list``; everything else is passed through."""

    def __init__(self, list_watch: Any) -> None:
        self._list_watch = list_watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._list_watch, name)

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        yield require_list_result(await maybe_await(self._list_watch.list(options)))
