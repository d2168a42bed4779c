"""For Starlette and FastAPI: a response that streams a feed. Needs the extra ``web``."""

from __future__ import annotations

from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .asgi import ChangeStream, Headers
from .feed import ChangeFeed
from .streams import HEADERS, HasFeed


class ChangeStreamResponse(ChangeStream[Any], Response):
    """A response of Starlette and FastAPI that streams a feed as server-sent events.

        @app.get("/pods/{namespace}/events")
        async def events(namespace: str) -> ChangeStreamResponse:
            return ChangeStreamResponse(pods, where=lambda pod: pod.namespace == namespace)

    Args:
        source: A ChangeFeed, or a WebInformer.
        headers: Additional headers.
        **options: As for ChangeStream.
    """

    def __init__(
        self, source: ChangeFeed[Any] | HasFeed[Any], *, headers: dict[str, str] | None = None, **options: Any
    ) -> None:
        super().__init__(source, **options)
        self.status_code = 200
        self.background: BackgroundTask | None = None
        self.init_headers({**HEADERS, **(headers or {})})

    def response_headers(self) -> Headers:
        """Return the headers of the response."""
        return self.raw_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        await super().__call__(scope, receive, send)
        if self.background is not None:
            await self.background()
