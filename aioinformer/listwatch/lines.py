"""Bytes in, lines out."""

from __future__ import annotations

from io import BytesIO

from ..errors import DecodeError

LONGEST_OBJECT = 256 * 1024 * 1024
"""Bytes that one line of a watch, or one item of a list, may have: a hundred times what an API server stores.

Only what never ends is longer, and would fill the memory.
"""

Span = tuple[bytes, int, int]
"""A line as ``buffer[start:end]``."""


class Pending:
    """What has begun to arrive and is not complete.

    Whatever the chunks are, it takes the memory of its bytes and no more; a list of chunks of a few bytes each would
    take forty times that.

    Args:
        longest: Bytes that it may have.
    """

    __slots__ = ("_buffer", "_longest", "size")

    def __init__(self, longest: int) -> None:
        self._buffer = BytesIO()
        self._longest = longest
        self.size = 0

    def add(self, data: bytes) -> None:
        """Add what came next.

        Raises:
            DecodeError: Now it is too long.
        """
        self._grow(data)
        self._buffer.write(data)

    def take(self, data: bytes = b"") -> bytes:
        """All of it, and what came next; afterwards there is nothing. Raises as ``add``."""
        if not self.size:
            return data
        self._grow(data)
        taken = self._buffer.getvalue()
        self._buffer = BytesIO()
        self.size = 0
        return taken + data if data else taken

    def _grow(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._longest:
            raise self.too_long()

    def too_long(self) -> DecodeError:
        """Let all of it go; what is to be raised."""
        self._buffer, self.size = BytesIO(), 0  # whoever keeps the error keeps its frames
        return DecodeError(f"more than {self._longest} bytes have come, and no object has ended")


class LineSplitter:
    """Cuts chunks of a stream into lines.

    Chunks may be cut anywhere. A line that spans chunks is joined once, when its end shows up, so a line of n
    bytes costs n bytes of copying whatever the chunks were.

    Args:
        longest: Bytes that a line may have.
    """

    __slots__ = ("_begun",)

    def __init__(self, longest: int = LONGEST_OBJECT) -> None:
        self._begun = Pending(longest)

    def feed(self, chunk: bytes) -> list[Span]:
        """Where the lines that this chunk completes stand, without their newlines. Nothing is copied but a line that
        began in an earlier chunk.

        Raises:
            DecodeError: A line is too long.
        """
        # find() is memchr and three times as fast as split() where lines are kilobytes long.
        end = chunk.find(b"\n")
        if end < 0:
            if chunk:
                self._begun.add(chunk)
            return []
        if self._begun.size:
            line = self._begun.take(chunk[:end])
            spans = [(line, 0, len(line))]
        else:
            spans = [(chunk, 0, end)]
        start = end + 1
        while (end := chunk.find(b"\n", start)) >= 0:
            spans.append((chunk, start, end))
            start = end + 1
        if start < len(chunk):
            self._begun.add(chunk[start:])
        return spans

    def close(self) -> bytes:
        """What was begun and never ended; ``b""`` after a clean end."""
        return self._begun.take()
