"""Lists and watches of an API server, by bytes. The only room that knows about HTTP."""

from .client import Client
from .list_watch import ListWatch
from .transport import ByteStream, Transport

__all__ = ["Client", "ListWatch", "Transport", "ByteStream"]
