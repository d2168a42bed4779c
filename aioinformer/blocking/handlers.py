"""ThreadHandler: calls a handler's plain functions in a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from .._core.callables import require_plain, require_sync_function
from .._core.threads import call_in
from ..deltas import DeletedFinalStateUnknown
from ..errors import InformerError, message_of
from ..handlers import (
    ARGUMENTS,
    ResourceEventHandler,
    handler_name,
    on_undecodable_of,
    require_handler,
)

T = TypeVar("T")


class ThreadHandler(ResourceEventHandler[T]):
    """A handler whose calls run in threads of an executor, one call after the other, in the store's order.

    A call that runs cannot be cancelled: removing the handler, and shutting the factory down, wait for it.

    Args:
        handler: The handler, with plain methods.
        executor: Its threads.

    Raises:
        ConfigError: The handler is not valid, or a method is async.
    """

    def __init__(self, handler: ResourceEventHandler[T], executor: Executor) -> None:
        require_handler(handler)
        self._handler = handler
        self._executor = executor
        on_undecodable = on_undecodable_of(handler)
        for name in ARGUMENTS:
            require_plain(f"{name}, which is called in a thread,", getattr(handler, name))
        if on_undecodable is not None:
            require_plain("on_undecodable, which is called in a thread,", on_undecodable)

            async def call(obj: Any) -> object:
                return await self._call(on_undecodable, obj)

            self.on_undecodable = call

    def __repr__(self) -> str:
        return handler_name(self._handler)

    async def on_add(self, obj: T, is_in_initial_list: bool) -> object:
        return await self._call(self._handler.on_add, obj, is_in_initial_list)

    async def on_update(self, old: T, new: T) -> object:
        return await self._call(self._handler.on_update, old, new)

    async def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> object:
        return await self._call(self._handler.on_delete, obj)

    async def _call(self, function: Callable[..., object], *args: Any) -> object:
        try:
            result = await call_in(self._executor, function, *args)
            return require_sync_function(
                f"{function.__name__} of {self!r}, which is called in a thread,", result
            )
        except (SystemExit, KeyboardInterrupt) as error:  # which would end the event loop
            raise InformerError(
                f"{self!r} raised {message_of(error)} in its thread, which ends neither the thread nor the process"
            ) from error
