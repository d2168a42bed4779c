"""Read a whole list in pages (client-go ``pager.go``)."""

from __future__ import annotations

import asyncio
import logging
from builtins import list as List  # noqa: N812 - Pager.list hides the builtin
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast, overload

from .._core.cancellation import maybe_await, time_limit
from ..client.error_mapping import network_errors
from ..errors import ApiError, DecodeError, IdleTimeoutError, TransportError
from ..objects.decoders import FromBytes
from ..objects.meta import ListOptions, ListResult
from ..protocols import ListsInChunks

logger = logging.getLogger(__name__)

PAGE_SIZE = 500

MANY = 50_000
"""A Python list of more objects blocks the event loop when the garbage collector scans it or when it is freed."""


class Pieces(Sequence[Any]):
    """Very many objects, in pieces. Iterating is fast, indexing copies everything."""

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
        pieces: The objects, in the pieces in which they arrived.
        resource_version: The list's version.
        paginated: Whether the server sent more than one page.
    """

    pieces: list[Collection[Any]]
    resource_version: str
    paginated: bool = False

    @property
    def count(self) -> int:
        """The number of objects."""
        return sum(map(len, self.pieces))

    @property
    def objects(self) -> Sequence[Any]:
        """All objects: a list, or Pieces for more than MANY."""
        pieces = Pieces(self.pieces.copy())
        return pieces if len(pieces) > MANY else list(pieces)

    def release(self) -> Iterator[None]:
        """Drop the objects, piece by piece."""
        while self.pieces:
            self.pieces.pop()
            yield


class Pager:
    """Reads whole lists.

    Args:
        list_watch: Where to list.
        decode: Decodes the items of a piece when it arrives.
        timeout: Seconds without an answer after which a list fails.
        read_item: Passed on in the options.
    """

    def __init__(
        self,
        list_watch: ListsInChunks,
        decode: Callable[[ListResult], Awaitable[Collection[Any]]],
        timeout: float,
        read_item: FromBytes | None = None,
    ) -> None:
        self._list_watch = list_watch
        self._decode = decode
        self._timeout = timeout
        self._read_item = read_item
        self._name = getattr(list_watch, "description", "") or "list"

    async def list(self, resource_version: str, page_size: int, match: str = "") -> Listed:
        """List at a version (``""`` the most recent, ``"0"`` any), in pages of a size (0: no pages).

        If a continue token has expired, or arrives twice, the pager lists once more without pages, at the same version.

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
        started = now()
        tokens: set[str] = set()
        while True:
            try:
                token, version = await self._page(options, listed.pieces)
            except BaseException as error:
                listed.pieces.clear()  # the error keeps this frame alive
                if not (isinstance(error, ApiError) and pages and page_size and error.reason == "Expired"):
                    raise
                logger.info(
                    "%s: the list's next page has expired (%s); listing again without pages",
                    self._name,
                    error,
                )
                listed = await self.list(resource_version, 0)
                listed.paginated = True
                return listed
            pages += 1
            listed.resource_version = listed.resource_version or version
            listed.paginated = pages > 1
            if not token:
                logger.debug(
                    "%s: listed %d objects at %s in %d pages, %.1f s",
                    self._name, listed.count, listed.resource_version, pages, now() - started,
                )  # fmt: skip
                return listed
            if token in tokens:  # following it would never end
                listed.pieces.clear()
                if not page_size:
                    raise DecodeError("the list has no end: the server sent the same continue token twice")
                logger.warning(
                    "%s: the server sent the same continue token twice; listing again without pages",
                    self._name,
                )
                return await self.list(resource_version, 0)
            tokens.add(token)
            # The token fixes the version; sending a version with it is an error.
            options = replace(options, resource_version="", resource_version_match="", continue_token=token)

    async def _page(self, options: ListOptions, pieces: List[Collection[Any]]) -> tuple[str, str]:
        """Read one page; return its continue token and version."""
        token = version = ""
        answered = False
        answer = self._list_watch.list_chunks(options)
        try:
            while (piece := await self._next(answer)) is not None:
                # Tuples: the garbage collector stops tracking a tuple of objects that it does not track.
                pieces.append(tuple(await self._decode(piece)))
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
        late = IdleTimeoutError(f"the list has not answered for {seconds:g} s")
        with network_errors():
            async with time_limit(seconds, lambda: late):
                return cast("ListResult | None", await maybe_await(anext(answer, None)))
