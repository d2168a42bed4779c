"""The proxy for a URL, from the configuration or from the environment as client-go reads it
(golang.org/x/net/http/httpproxy).
"""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from ..errors import ConfigError
from .credentials import is_local, with_utf8_credentials
from .error_mapping import without_credentials

_PORTS = {"http": 80, "https": 443}

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(url: str, configured: str | None = None) -> str | None:
    """Return the proxy for requests to a server, or None.

    Args:
        url: The server's URL.
        configured: The configuration's proxy, which has precedence over the environment.

    Raises:
        ConfigError: The proxy is not the URL of an HTTP or HTTPS proxy.
    """
    proxy = configured or _of_environment(url)
    if not proxy:
        return None
    shown = without_credentials(proxy)
    try:
        parts = urlsplit(proxy)
        if not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:  # its message is not quoted: what it takes for a port may be a password
        message = f"the proxy {shown} cannot be used: expected a URL such as 'http://proxy:3128'"
        raise ConfigError(message) from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"the proxy {shown} cannot be used: only http and https proxies are supported")
    return parts.geturl()


def _of_environment(url: str) -> str | None:
    """Return ``HTTP_PROXY`` or ``HTTPS_PROXY``, unless ``NO_PROXY`` excludes the host or it is this machine."""
    server = urlsplit(url)
    host, port = server.hostname or "", server.port or _PORTS.get(server.scheme)
    address = _address(host)
    proxy = _variable(f"{server.scheme}_proxy")
    if not proxy or is_local(host):
        return None
    entries = (entry.strip().lower() for entry in _variable("no_proxy").split(","))
    if any(_matches(entry, host, str(port), address) for entry in entries):
        return None
    return with_utf8_credentials(proxy if "://" in proxy else f"http://{proxy}")


def _variable(name: str) -> str:
    return os.environ.get(name.upper()) or os.environ.get(name, "")


def _matches(entry: str, host: str, port: str, address: _Address | None) -> bool:
    """Return whether an entry of ``NO_PROXY`` matches a host; ``address`` is the host parsed as an address."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    before, _, only = entry.rpartition(":")
    if before and (":" not in before or (before[0] == "[" and before[-1] == "]")):
        if only not in ("", port):
            return False
        entry = before.strip("[]")
    if address is not None:
        return address == _address(entry)
    if entry.startswith("*."):
        entry = entry[1:]
    if entry.startswith("."):
        return host.endswith(entry)
    return bool(entry) and f".{host}".endswith(f".{entry}")


def _address(host: str) -> _Address | None:
    """Return a host parsed as an IP address, or None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
