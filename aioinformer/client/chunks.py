"""HTTP's chunks (RFC 9112, section 7.1), taken apart while they arrive."""

from __future__ import annotations

import re

_FRAME = re.compile(rb"\r\n([1-9A-Fa-f][0-9A-Fa-f]{0,6})\r\n")
"""What stands between the data of two chunks: the end of the one, and the size of the other."""

_BEGUN = re.compile(rb"(?:\r(?:\n(?:[1-9A-Fa-f][0-9A-Fa-f]{0,6}\r?)?)?)?")
"""What may become one."""

_LINE_END = re.compile(rb"\r?\n")


class Chunks:
    """Takes the data out of plain chunks, and knows nothing else: no extensions, no trailers, no end.

    All else is left to another parser, that has read the header: it knows whatever may come, and how it is damaged.
    """

    __slots__ = ("_begun", "_left")

    def __init__(self) -> None:
        self._begun = b"\r\n"  # of a frame; a header ends with it
        self._left = 0  # bytes of a chunk

    def feed(self, received: bytes) -> tuple[bytes, bytes | None]:
        """Take what has come, from the header's end on.

        Returns:
            The data of its chunks, and all from the first one on that is not plain; None while all are. After that
            nothing is to be fed any more.
        """
        if self._left >= len(received):
            self._left -= len(received)
            return received, None
        if self._begun == b"\r\n" and received.endswith(b"\r\n"):
            begin = received.find(b"\r\n") + 2
            size = len(received) - begin - 2
            if size > 0 and received.startswith(b"%x\r\n" % size):
                return received[begin:-2], None  # one chunk, as an event that comes alone
        received = self._begun + received
        view, end = memoryview(received), self._left
        data = [view[:end]]
        while frame := _FRAME.match(received, end):
            begin = frame.end()
            end = begin + int(frame[1], 16)
            data.append(view[begin:end])
        if _BEGUN.fullmatch(received, end):
            self._begun, self._left = received[end:], max(0, end - len(received))
            return b"".join(data), None
        ended = _LINE_END.match(received, end)
        # What is longer than it said: no parser takes this for a size.
        return b"".join(data), b"?\r\n" if ended is None else received[ended.end() :]
