"""Which proxy the environment wants, read as client-go reads it (golang.org/x/net/http/httpproxy)."""

from __future__ import annotations

import ipaddress
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ..errors import ConfigError


def proxy_for(url: str, configured: str | None = None) -> str | None:
    """The proxy to ask this server by, if any.

    Args:
        url: The server's.
        configured: The configuration's proxy, which the environment yields to.

    Raises:
        ConfigError: It is not an HTTP proxy.
    """
    proxy = configured or _of_environment(url)
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigError(f"the proxy {proxy} cannot be used: only http and https proxies can")
    return proxy or None


def _of_environment(url: str) -> str | None:
    """``HTTPS_PROXY`` and its kin, unless ``NO_PROXY`` excepts the host.

    Networks may be excepted too (``10.0.0.0/8``), and what is on this machine needs no proxy.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme)
    if not proxy or host == "localhost" or urllib.request.proxy_bypass(host):
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return proxy
    excepted = address.is_loopback or any(
        address in network for network in _networks(proxies.get("no", "").split(","))
    )
    return None if excepted else proxy


def _networks(excepted: list[str]) -> Iterator[Any]:
    for entry in excepted:
        try:
            yield ipaddress.ip_network(entry.strip(), strict=False)
        except ValueError:
            continue
