"""Cases and their registry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aioinformer import Client
from aioinformer.testing import APIServer

Call = Callable[[], Coroutine[Any, Any, Any]]
Case = Callable[[], AbstractAsyncContextManager[Call]]

in_virtual_time: dict[str, Case] = {}
over_sockets: dict[str, Callable[[APIServer, Client], AbstractAsyncContextManager[Call]]] = {}
endless: set[str] = set()


def case(name: str, *, ends: bool = True) -> Callable[[Callable[[], AsyncIterator[Call]]], None]:
    """Register a case that runs in virtual time; ``endless`` ones do not return by themselves."""

    def add(make: Callable[[], AsyncIterator[Call]]) -> None:
        in_virtual_time[name] = asynccontextmanager(make)
        if not ends:
            endless.add(name)

    return add


def socket_case(
    name: str, *, ends: bool = True
) -> Callable[[Callable[[APIServer, Client], AsyncIterator[Call]]], None]:
    """Register a case with an embedded API server and a client."""

    def add(make: Callable[[APIServer, Client], AsyncIterator[Call]]) -> None:
        over_sockets[name] = asynccontextmanager(make)
        if not ends:
            endless.add(name)

    return add
