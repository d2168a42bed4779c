"""Resolve host names in threads that no other work can occupy."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from .libraries import to_thread

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_NUMERIC_NAME = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class Resolver(AbstractResolver):
    """Resolves names by ``getaddrinfo``, each lookup in its own thread.

    asyncio resolves names in the default executor, and an application's ``asyncio.to_thread`` calls can occupy all its
    threads. uvloop has four threads for lookups, and the application's own lookups can occupy them.
    """

    def __init__(self) -> None:
        self._pending: list[str] = []

    @property
    def pending(self) -> str:
        """A host name that is currently being resolved; ``""`` for none."""
        return self._pending[0] if self._pending else ""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        Raises:
            OSError: The lookup failed.
        """
        self._pending.append(host)
        try:
            return await to_thread(_look_up, host, port, family)
        finally:
            self._pending.remove(host)

    async def close(self) -> None:
        """Do nothing: a lookup that is running ends by itself."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    """Return the addresses as aiohttp's resolvers do. Blocks."""
    try:
        infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror:
        if host.rstrip(".").lower() != "localhost":
            raise
        # AI_ADDRCONFIG ignores loopback addresses, so on a machine without a network it finds no localhost.
        infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, _NUMERIC_NAME)[0],  # with the zone of a link-local address
            port=port,
            family=kind,
            proto=protocol,
            flags=_NUMERIC,
        )
        for kind, _, protocol, _, address in infos
    ]
