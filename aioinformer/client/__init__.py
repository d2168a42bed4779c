"""The way to an API server: configuration, credentials, TLS, proxies, requests, health, discovery.

The only room that knows about HTTP. ``ListWatch`` and ``Resource`` ask it for bytes.
"""

from .client import Client
from .transport import ByteStream, Transport

__all__ = ["ByteStream", "Client", "Transport"]
