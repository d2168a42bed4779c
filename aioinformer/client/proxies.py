"""Which proxy the environment wants, read as client-go reads it (golang.org/x/net/http/httpproxy)."""

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
    """The proxy to ask this server by, if any.

    Args:
        url: The server's.
        configured: The configuration's proxy, which the environment yields to.

    Raises:
        ConfigError: It is not an HTTP proxy, or no URL.
    """
    proxy = configured or _of_environment(url)
    if not proxy:
        return None
    said = without_credentials(proxy)
    try:
        parts = urlsplit(proxy)
        if not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:  # nothing is quoted of it: what it takes for a port may be a password
        says = f"the proxy {said} cannot be used: it is no URL like 'http://proxy:3128'"
        raise ConfigError(says) from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"the proxy {said} cannot be used: only http and https proxies can")
    return parts.geturl()


def _of_environment(url: str) -> str | None:
    """``HTTPS_PROXY`` and its kin, unless ``NO_PROXY`` excepts the host. What is on this machine needs no proxy."""
    server = urlsplit(url)
    host, port = server.hostname or "", server.port or _PORTS.get(server.scheme)
    address = _address(host)
    proxy = _variable(f"{server.scheme}_proxy")
    if not proxy or is_local(host):
        return None
    entries = (entry.strip().lower() for entry in _variable("no_proxy").split(","))
    if any(_excepts(entry, host, str(port), address) for entry in entries):
        return None
    return with_utf8_credentials(proxy if "://" in proxy else f"http://{proxy}")


def _variable(name: str) -> str:
    return os.environ.get(name.upper()) or os.environ.get(name, "")


def _excepts(entry: str, host: str, port: str, address: _Address | None) -> bool:
    """Whether an entry of ``NO_PROXY`` is about a host, which is this address if it is one."""
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
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
