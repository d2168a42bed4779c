"""Listen on a port that an option of ``aioinformer run`` sets."""

from __future__ import annotations

import errno
import ssl

from aiohttp import web

from ..errors import ConfigError


async def listen(
    runner: web.BaseRunner,
    host: str | None,
    port: int,
    options: str,
    *,
    note: str = "",
    ssl_context: ssl.SSLContext | None = None,
) -> None:
    """Start to listen.

    Args:
        runner: A runner that is set up.
        host: The address; None for all.
        port: The port; 0 for any free one.
        options: The options that set the port, for the message.
        note: What to add to them, for the message.
        ssl_context: For TLS.

    Raises:
        ConfigError: The port is in use, or the system refuses it.
    """
    try:
        await web.TCPSite(runner, host, port, ssl_context=ssl_context).start()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} is in use: end the program that listens on it, or pass another {options}{note}"
            ) from error
        raise ConfigError(f"cannot listen on port {port}: {error.strerror}; see {options}") from error
