"""A watch stream whose errors say what was watched."""

from __future__ import annotations

from typing import Any, Self

from ..client.error_mapping import raise_converted


class NamedStream:
    """Wrap a stream: its errors become this package's errors and name the request.

    Args:
        stream: An async iterable.
        what: The request, for messages: ``"watch pods at resourceVersion 5"``.
    """

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
            raise_converted(error, self._what)

    async def aclose(self) -> None:
        """Close the stream, if it has ``aclose``."""
        if self._close is not None:
            await self._close()
