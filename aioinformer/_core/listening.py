"""Listen on a port that an option of ``aioinformer run`` sets."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys

from ..errors import ConfigError

if sys.platform != "win32":
    import resource

_BACKLOG = 128


async def bind(host: str | None, port: int, options: str, *, note: str = "") -> list[socket.socket]:
    """Return sockets that listen, with the same port.

    Args:
        host: The address or name; None for all addresses.
        port: The port; 0 for any free one.
        options: The options that set the port, for the message.
        note: What to add to them, for the message.

    Raises:
        ConfigError: The port is in use, or the system refuses it.
    """
    sockets: list[socket.socket] = []
    try:
        for family, address in await _addresses(host, port):
            if sockets and not port:
                address = (address[0], sockets[0].getsockname()[1])
            both = family == socket.AF_INET6 and host is None
            sockets.append(
                socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
            )
            sockets[-1].setblocking(False)
    except OSError as error:
        for sock in sockets:
            sock.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} is in use: end the program that listens on it, or pass another {options}{note}"
            ) from error
        raise ConfigError(f"cannot listen on port {port}: {error.strerror}; see {options}") from error
    return sockets


async def _addresses(host: str | None, port: int) -> list[tuple[int, tuple[str, int]]]:
    if host is None:
        return [(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET, ("", port))]
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), (str(address[0]), port)) for family, *_, address in infos))


def most_connections(wanted: int) -> int:
    """Return how many connections a port may have: at most half of the file descriptors that the process may have."""
    if sys.platform == "win32":
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // 2))
