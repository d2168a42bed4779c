"""Chunked answers are read as aiohttp reads them, however they are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import EMPTY_PAYLOAD
from hypothesis import example, given
from hypothesis import strategies as st

from aioinformer.client.chunks import Chunks
from aioinformer.client.connections import _Connection

HEADER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"

DATA = st.binary(max_size=40) | st.sampled_from([b"\r\n", b"0\r\n\r\n", b"\r\n5\r\n", b"x" * 300])
PLAIN = st.builds(lambda data: b"%x\r\n%b\r\n" % (len(data), data), DATA.filter(bool))
UNUSUAL = st.one_of(
    DATA.map(lambda data: b"%X\r\n%b\r\n" % (len(data), data)),
    DATA.map(lambda data: b"00%x\r\n%b\r\n" % (len(data), data)),
    DATA.map(lambda data: b"%x;name=value\r\n%b\r\n" % (len(data), data)),
    DATA.map(lambda data: b"%x \r\n%b\r\n" % (len(data), data)),
    DATA.map(lambda data: b"%x\r\n%b\n" % (len(data), data)),
)
DAMAGED = st.one_of(
    st.sampled_from(
        [b"zz\r\n", b"\r\n", b"-1\r\n", b"5\r\nhelloworld\r\n", b"5\r\nhello!\r\n", b"fffffffffffffffff\r\n"]
    ),
    st.binary(min_size=1, max_size=20).map(lambda noise: b"x" + noise),
)
ENDS = st.sampled_from(
    [
        b"",
        b"0\r\n\r\n",
        b"0\r\nExpires: never\r\n\r\n",
        b"000\r\n\r\n",
        b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ]
)


def cut(data: bytes, at: Iterable[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[begin:end] for begin, end in pairwise(places)]


CUTS = st.lists(st.integers(0, 2000), max_size=8) | st.just(range(2000))


@given(chunks=st.lists(DATA.filter(bool), max_size=8), cuts=CUTS)
def test_plain_chunks(chunks: list[bytes], cuts: Iterable[int]) -> None:
    subject, came = Chunks(), b""
    for received in cut(b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in chunks), cuts):
        data, rest = subject.feed(received)
        assert rest is None
        came += data
    assert came == b"".join(chunks)
    assert subject.feed(b"0\r\n\r\n") == (b"", b"0\r\n\r\n")


def test_data_that_came_alone_is_not_copied() -> None:
    subject = Chunks()
    assert subject.feed(b"800\r\n") == (b"", None)
    received = b"x" * 1000
    assert subject.feed(received)[0] is received


class ByAiohttp(_Connection):
    """One that leaves all to aiohttp; but what comes with a whole header comes after it: damage would hide it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, header: bytes) -> None:
        super().__init__(loop)
        self._header = header.find(b"\r\n\r\n") + 4 if header.endswith(b"\r\n\r\n") else 0

    def data_received(self, data: bytes) -> None:
        header, self._header = self._header, 0
        if 0 < header < len(data):
            ResponseHandler.data_received(self, data[:header])
            data = data[header:]
        ResponseHandler.data_received(self, data)


def outcome_of(
    connection: ResponseHandler, pieces: Iterable[bytes], reads: set[int], limit: int
) -> dict[str, Any]:
    """Return what a reader gets from an answer in these pieces, if it reads after some of them."""
    connection.set_response_params(read_bufsize=limit, read_timeout=60)
    came, body = b"", EMPTY_PAYLOAD
    for index, piece in enumerate(pieces):
        connection.data_received(piece)
        if body is EMPTY_PAYLOAD:
            body = connection._payload or EMPTY_PAYLOAD
        if index in reads and body.exception() is None:
            came += body.read_nowait()
    while body.exception() is None and (data := body.read_nowait()):
        came += data
    return {
        "data": came,
        "ended": body.is_eof(),
        "failed": connection.exception() is not None,
        "reusable": not connection.should_close,
        "paused": connection._reading_paused,
        # After an end that comes during a pause the timer may go on.
        "timed": connection._read_timeout_handle is not None and not body.is_eof(),
        "answers": [message.code for (message, _), _ in connection._buffer],
    }


HEADERS = st.sampled_from(
    [
        HEADER + b"\r\n",
        HEADER + b"Connection: close\r\n\r\n",
        HEADER.replace(b"\r\n", b"\n") + b"\n",
        HEADER + b"\n",
        HEADER + b"Content-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEADER + b"\r\n",
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n",
    ]
)


@given(
    header=HEADERS,
    chunks=st.lists(PLAIN | PLAIN | PLAIN | UNUSUAL, max_size=8),
    damage=st.none() | DAMAGED,
    end=ENDS,
    cuts=CUTS,
    reads=st.sets(st.integers(0, 10)),
)
@example(  # the parser saw a pause that is over
    header=HEADER + b"\r\n",
    chunks=[b"12c\r\n" + b"x" * 300 + b"\r\n", b"5;name=value\r\nhello\r\n"],
    damage=None,
    end=b"0\r\n\r\n",
    cuts=[len(HEADER) + 2 + 5 + 300],
    reads={0},
)
@example(  # the same, and a read ends with the size
    header=HEADER + b"\r\n",
    chunks=[b"12c\r\n" + b"x" * 300 + b"\r\n", b"5;name=value\r\nhello\r\n"],
    damage=None,
    end=b"0\r\n\r\n",
    cuts=[len(HEADER) + 2 + 5 + 300, len(HEADER) + 2 + 5 + 302 + 14],
    reads={0},
)
@example(  # too many small chunks
    header=HEADER + b"\r\n",
    chunks=[b"1\r\nx\r\n"] * 5 + [b"5\r\nhello\r\n"],
    damage=None,
    end=b"0\r\n\r\n",
    cuts=[5, len(HEADER) + 2 + 30],
    reads={1},
)
def test_as_by_aiohttp(
    header: bytes, chunks: list[bytes], damage: bytes | None, end: bytes, cuts: Iterable[int], reads: set[int]
) -> None:
    pieces = cut(b"".join([header, *chunks, damage or b"", end]), cuts)
    # Damage takes what was not read; aiohttp may pause before it comes to that.
    limit = 64 if damage is None else 1 << 16
    loop = asyncio.new_event_loop()
    try:
        expected, outcome = (
            outcome_of(connection, pieces, reads, limit)
            for connection in (ByAiohttp(loop, header), _Connection(loop))
        )
    finally:
        loop.close()
    assert outcome == expected
