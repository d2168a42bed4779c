"""ListWatch: the two questions a Reflector asks, answered by functions or by an API server."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, Self

from .._core.checks import require_callable, require_count
from .._core.tasks import maybe_await
from ..client.error_mapping import asking, ours
from ..errors import DecodeError
from ..objects.meta import (
    ListOptions,
    ListResult,
    WatchEvent,
    require_list_result,
)
from ..protocols import SharedHealth, WatchStream
from .collection import Collection, asked
from .lines import LONGEST_OBJECT

ListFunc = Callable[[ListOptions], ListResult | Awaitable[ListResult]]
WatchFunc = Callable[
    [ListOptions],
    AsyncIterable[WatchEvent | list[WatchEvent]] | Awaitable[AsyncIterable[WatchEvent | list[WatchEvent]]],
]


class ListWatch:
    """Lists and watches one collection (client-go ``ListWatch``).

    OSError, TimeoutError and aiohttp.ClientError, from the functions or from the stream, are raised as
    TransportError; the ApiException of the Kubernetes clients as ApiError. All say what was asked for.

    Args:
        list_func: Coroutine, or plain if it has what is asked for at hand; the collection, or a page of it, as these
            options ask for it.
        watch_func: Plain or coroutine; gives an async iterator of WatchEvents or lists of them, which is closed
            with ``aclose()`` where it has one. What the call raises failed to start; what the iterator raises
            ended the stream.
        description: What is listed, for messages: ``"pods in default"``.
        watch_list_semantics: Whether the watch understands ``send_initial_events``.

    Raises:
        ConfigError: These are no functions.

    Attributes:
        description: What is listed, for messages.
        health: What it shares with the other readers of its server; None for functions.
    """

    def __init__(
        self,
        list_func: ListFunc,
        watch_func: WatchFunc,
        *,
        description: str = "objects",
        watch_list_semantics: bool = False,
    ) -> None:
        require_callable("list_func", list_func)
        require_callable("watch_func", watch_func)
        self._list_func = list_func
        self._watch_func = watch_func
        self._watch_list_semantics = watch_list_semantics
        self.description = description
        self.health: SharedHealth | None = None

    @staticmethod
    def for_resource(
        client: Any,
        api_version: str,
        plural: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        *,
        metadata_only: bool = False,
        protobuf: bool = False,
        longest_object: int = LONGEST_OBJECT,
    ) -> ListWatch:
        """A collection of an API server, built-in or custom.

        Args:
            client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
            api_version: ``"v1"``, ``"apps/v1"``, ``"example.com/v1"``.
            plural: ``"pods"``, ``"deployments"``.
            namespace: None for all namespaces, and for resources that have none.
            label_selector: As kubectl's ``-l``, for options that have none.
            field_selector: As kubectl's ``--field-selector``, likewise.
            metadata_only: Read the objects' metadata alone: the server sends them as PartialObjectMetadata, of
                which ``spec``, ``status`` and ``data`` are no part.
            protobuf: Read built-in kinds, and metadata alone, as protobuf: two thirds of the memory, and less CPU, of
                the server too, unless much is read of each object. For KubeObjects, which say the same as ever. What a
                server has as JSON alone, such as custom resources, it sends as that. See docs/objects.md.
            longest_object: Bytes that one object may have. What is longer is taken for something that never ends
                and would fill the memory: the list or watch then fails with DecodeError. 256 MiB.

        Raises:
            ConfigError: The arguments name no collection.
        """
        from ..client.client import Client  # what speaks HTTP is loaded for those who speak it
        from .resource_list_watch import ResourceListWatch

        resource = Collection(
            api_version,
            plural,
            namespace or None,
            label_selector or "",
            field_selector or "",
            metadata_only,
            protobuf,
        )
        require_count("longest_object", longest_object)
        return ResourceListWatch(Client.of(client), resource, longest_object)

    @property
    def watch_list_semantics(self) -> bool:
        """Whether the watch understands ``send_initial_events``."""
        return self._watch_list_semantics

    @property
    def resource(self) -> Collection | None:
        """Which collection of an API server it is; None for functions."""
        return None

    async def list(self, options: ListOptions | None = None) -> ListResult:
        """The collection, or the page of it that the options ask for, as one result.

        Raises:
            ApiError: The server refused.
            TransportError: No usable answer came.
            DecodeError: The answer is not a list.
        """
        items: list[Any] = []
        piece = ListResult(items)
        async for piece in self.list_chunks(options or ListOptions()):
            items.extend(piece.items)
        return ListResult(items, piece.resource_version, piece.continue_token, piece.type_meta)

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        """One page in one or more pieces; the last one has version and continue token. Raises as ``list``."""
        with asking(asked("list", self.description, options)):
            result = require_list_result(await maybe_await(self._list_func(options)))
        yield result

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch.

        Returns:
            An async iterator of WatchEvents or lists of them. Its ``aclose`` ends the watch and is to be called.

        Raises:
            ApiError: The server refused.
            TransportError: No usable answer came.
        """
        what = asked("watch", self.description, options)
        with asking(what):
            opened: Any = await maybe_await(self._watch_func(options))
            if not hasattr(opened, "__aiter__"):
                raise DecodeError(f"expected an async iterator, got {type(opened).__name__}")
        return NamedStream(opened, what)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.description}>"


class NamedStream:
    """A stream whose errors are this package's and say what was asked for."""

    def __init__(self, stream: Any, what: str) -> None:
        self._iterator = aiter(stream)
        self._close = getattr(self._iterator, "aclose", None) or getattr(stream, "aclose", None)
        self._what = what

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._iterator.__anext__()
        except StopAsyncIteration:
            raise
        except Exception as error:
            found = ours(error, self._what)
            if found is None or found is error:
                raise
            raise found from error

    async def aclose(self) -> None:
        if self._close is not None:
            await self._close()
