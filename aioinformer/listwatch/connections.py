"""The connections of an aiohttp connector, which says less than it knows of those that are of no use any more."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError


class Connector(TCPConnector):
    """Makes its connections of the class below: for that aiohttp has no public way."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        connection: type[ResponseHandler] = _Connection
        self._factory = partial(connection, asyncio.get_running_loop())


class _Connection(ResponseHandler):
    """A connection to the server."""

    def set_exception(self, exc: BaseException, *cause: Any, **named: Any) -> None:
        """It has failed. aiohttp closes it where its parser gives up within a body, and lets the reader wait."""
        super().set_exception(exc, *cause, **named)
        body = self._payload
        is_damaged = isinstance(exc, HttpProcessingError)  # and no request's body that could not be written
        if is_damaged and body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(exc, *cause, **named)

    def resume_reading(self, *args: Any, **named: Any) -> None:
        """Read on, where that was paused. aiohttp asks for it with each HTTP chunk that is taken, however few wait."""
        if self._reading_paused:  # the arguments are not those of every aiohttp
            super().resume_reading(*args, **named)

    def is_connected(self) -> bool:
        """Whether the pool may give it away: not where an answer has come that nobody asked for, as by net/http."""
        return super().is_connected() and not self.should_close
