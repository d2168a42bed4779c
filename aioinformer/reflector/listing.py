"""How a collection is listed: versions, pages, and what to do when one is refused (client-go ``pager.go``)."""

from __future__ import annotations

import asyncio
import logging
from builtins import list as List  # noqa: N812 - Pager.list hides the builtin
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast, overload

import anyio

from .._core.tasks import maybe_await
from ..client.error_mapping import network_errors
from ..errors import ApiError, DecodeError, IdleTimeoutError, TransportError
from ..objects.decoders import FromBytes
from ..objects.meta import NOT_OLDER_THAN, ListOptions, ListResult
from ..protocols import ListsInChunks

logger = logging.getLogger(__name__)

PAGE_SIZE = 500

MANY = 50_000
"""Objects from which on one list of them would hold the event loop, where the garbage collector looks through it and
where it is let go."""


class Pieces(Sequence[Any]):
    """Very many objects, in pieces: to be gone through; all else takes long."""

    def __init__(self, pieces: Sequence[Collection[Any]]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._pieces)

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> List[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return list(self)[index]


@dataclass(slots=True)
class Listed:
    """A whole list.

    Attributes:
        pieces: The objects, as they came.
        resource_version: The version that they show.
        paginated: Whether the server gave them in pages.
    """

    pieces: list[Collection[Any]]
    resource_version: str
    paginated: bool = False

    @property
    def count(self) -> int:
        """How many objects there are."""
        return sum(map(len, self.pieces))

    @property
    def objects(self) -> Sequence[Any]:
        """All objects: a list of them, unless they are very many."""
        pieces = Pieces(self.pieces.copy())
        return pieces if len(pieces) > MANY else list(pieces)

    def let_go(self) -> Iterator[None]:
        """Forget about them, a piece after the other."""
        while self.pieces:
            self.pieces.pop()
            yield


class Pager:
    """Reads whole lists.

    Args:
        list_watch: Where from.
        turn_in: Turns the items of one piece into objects, as it arrives.
        timeout: Seconds without any answer after which a list counts as dead.
        read_item: Of the options.
    """

    def __init__(
        self,
        list_watch: ListsInChunks,
        turn_in: Callable[[ListResult], Awaitable[Collection[Any]]],
        timeout: float,
        read_item: FromBytes | None = None,
    ) -> None:
        self._list_watch = list_watch
        self._turn_in = turn_in
        self._timeout = timeout
        self._read_item = read_item
        self._name = getattr(list_watch, "description", "") or "list"

    async def list(self, resource_version: str, page_size: int, match: str = "") -> Listed:
        """List at a version (``""`` the most recent, ``"0"`` any), in pages of a size (0: not in pages).

        A continue token that has expired, or comes a second time, falls back to one full list at the same version.

        Raises:
            ApiError, TransportError, DecodeError: The list failed.
        """
        options = ListOptions(
            resource_version=resource_version,
            resource_version_match=match,
            limit=page_size,
            read_item=self._read_item,
        )
        listed = Listed([], "")
        pages = 0
        now = asyncio.get_running_loop().time
        began = now()
        tokens: set[str] = set()
        while True:
            try:
                token, version = await self._page(options, listed.pieces)
            except BaseException as error:
                listed.pieces.clear()  # whoever keeps the error keeps its frames
                if not (isinstance(error, ApiError) and pages and page_size and error.reason == "Expired"):
                    raise
                logger.info("%s: the list's next page has expired (%s); listing in full", self._name, error)
                listed = await self.list(resource_version, 0)
                listed.paginated = True
                return listed
            pages += 1
            listed.resource_version = listed.resource_version or version
            listed.paginated = pages > 1
            if not token:
                logger.debug(
                    "%s: listed %d objects at %s in %d pages, %.1f s",
                    self._name, listed.count, listed.resource_version, pages, now() - began,
                )  # fmt: skip
                return listed
            if token in tokens:  # the same pages would come again and again
                listed.pieces.clear()
                if not page_size:
                    raise DecodeError("the list has no end: a continue token has come a second time")
                logger.warning("%s: a continue token came twice, so the pages would have no end", self._name)
                return await self.list(resource_version, 0)
            tokens.add(token)
            # The token pins the version; naming one as well is an error.
            options = replace(options, resource_version="", resource_version_match="", continue_token=token)

    async def _page(self, options: ListOptions, pieces: List[Collection[Any]]) -> tuple[str, str]:
        """Read one page; its continue token and version."""
        token = version = ""
        answered = False
        answer = self._list_watch.list_chunks(options)
        try:
            while (piece := await self._next(answer)) is not None:
                # Tuples: the garbage collector soon forgets about those of objects that it knows nothing of.
                pieces.append(tuple(await self._turn_in(piece)))
                token, version = piece.continue_token, piece.resource_version or version
                answered = True
        finally:
            close = getattr(answer, "aclose", None)
            if close is not None:
                await close()
        if not answered:
            raise TransportError("the list ended without an answer")
        return token, version

    async def _next(self, answer: Any) -> ListResult | None:
        seconds = self._timeout
        with network_errors():
            with anyio.move_on_after(seconds):
                found: Any = await maybe_await(anext(answer, None))
                return cast("ListResult | None", found)
            raise IdleTimeoutError(f"the list has not answered for {seconds:g} s")


def refuses_version(error: ApiError, resource_version: str) -> bool:
    """Whether a list was refused for its version: expired, ahead of the server, or what the server takes for none,
    as out of an event that was damaged on its way."""
    no_version = error.status in (400, 422) and resource_version not in ("", "0")
    return error.is_expired or error.is_too_large_resource_version or no_version


class ListVersions:
    """At which version to list next, and in what pages (client-go ``Reflector.list``).

    Args:
        page_size: The user's; 0 for upstream's rules.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._paginated = False
        self.unavailable = False
        """The last version was refused: ask for the most recent state, from etcd if need be."""

    def relist_version(self, last: str) -> str:
        """The version to list at."""
        if self.unavailable:
            return ""
        return last or "0"

    def rewatch_version(self, last: str) -> str:
        """The version to begin a WatchList at."""
        return "" if self.unavailable else last

    def page_size(self, resource_version: str) -> int:
        """Pages for a list at a version.

        A list at a version above "0" is answered by the server's watch cache only without a limit, which spares
        etcd; unless the first list came in pages, which says that there is no such cache.
        """
        if self._page_size:
            return self._page_size
        return 0 if resource_version not in ("", "0") and not self._paginated else PAGE_SIZE

    def match(self, resource_version: str) -> str:
        """How a list has to match its version.

        One in pages of the user's may be newer. Unless told so a server gives the state of just that version, from
        which no watch can go on where its watch cache has begun anew since.
        """
        return NOT_OLDER_THAN if self._page_size and resource_version not in ("", "0") else ""

    def succeeded(self, resource_version: str, paginated: bool) -> None:
        """A list at this version succeeded."""
        self.unavailable = False
        if resource_version == "0" and paginated:
            self._paginated = True
