"""Wrong answers and missing answers."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from ..client.wire import (
    CHUNKED,
    HEAD,
    OK,
    Asked,
    body_of,
    chunk,
    configmap,
    dumps,
    failure,
    line,
    whole,
)
from ..listwatch.replay import refusal
from .wire import A_AND_B, BOTH, DEEP, TABLE, Script, wire_informer
from .witness import Log

pytestmark = pytest.mark.usefixtures("soon_again")

LISTS: dict[str, tuple[bytes, str]] = {
    "HTML": (whole(b"<html><body>Please log in</body></html>"), "the answer is not a list"),
    "a Status": (whole(dumps(failure(500, "InternalError"))), "500 InternalError: it is InternalError"),
    "a Table": (whole(dumps(TABLE)), "a Table, not a list"),
    "nothing": (whole(b""), "breaks off"),
    "null": (whole(b"null"), "not a list"),
    "an array": (whole(b"[]"), "not a list"),
    "no list": (whole(dumps(configmap("x", 1))), "not a list with a resourceVersion"),
    "version a number": (whole(A_AND_B.replace(b'"5"', b"5")), "not a list"),
    "metadata a list": (whole(b'{"kind":"ConfigMapList","metadata":[],"items":[]}'), "not a list"),
    "items an object": (whole(b'{"metadata":{"resourceVersion":"1"},"items":{}}'), "not a list"),
    "a BOM": (whole(b"\xef\xbb\xbf" + A_AND_B), "not a list"),
    "broken off": (whole(A_AND_B[:-30]), "breaks off"),
    "more behind it": (whole(A_AND_B + b"{}"), "not a list"),
    "deep": (whole(b'{"metadata":{"resourceVersion":"1"},"items":[' + DEEP), "breaks off"),
    "too long": (HEAD + b"Content-Length: 9\r\n\r\n" + A_AND_B, "configmaps"),
    "too short": (HEAD + b"Content-Length: 9000\r\n\r\n" + A_AND_B, "broke off"),
    "a length that is none": (HEAD + b"Content-Length: -1\r\n\r\n" + A_AND_B, "not valid HTTP"),
    "a chunk that is none": (CHUNKED + b"zz\r\n" + A_AND_B, "not valid HTTP"),
    "the last chunk missing": (CHUNKED + chunk(A_AND_B), "broke off"),
    "no HTTP": (b"HELLO\r\n\r\n", "not valid HTTP"),
    "an endless header": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2_000_000, "configmaps"),
    "an encoding": (HEAD + b"Content-Encoding: GZIP\r\n\r\n" + gzip.compress(A_AND_B), "encoded as 'gzip'"),
    "an encoding of tomorrow": (HEAD + b"Content-Encoding: novel\r\n\r\n\x00\x01", "encoded as 'novel'"),
    "a redirection to nowhere": (
        b"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: http://[bad\r\nContent-Length: 0\r\n\r\n", "[bad"
    ),
    "an error in megabytes": (refusal(500, "InternalError", message="x" * 900_000), "500 InternalError"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "said"), LISTS.values(), ids=LISTS.keys())
async def test_invalid_list_replaces_nothing(answer: bytes, said: str, log: Log) -> None:
    """Neither at the start nor with a full cache."""
    gone = [OK + line("ADDED", configmap("c", 8)) + line("ERROR", failure(410, "Gone"))]
    lists = [[answer], [whole(A_AND_B)], [answer], [whole(body_of([configmap("e", 20)], 21))]]
    async with wire_informer(Script(lists, [gone, [OK, None]])) as subject:
        logged = await log.until("configmaps", said)
        assert len(logged) < 3000
        await subject.until_cached({"default/e": "20"})
        deleted = [call.key for call in subject.witness.calls if call.kind in ("delete", "missed")]
        assert sorted(deleted) == ["default/a", "default/b", "default/c"]
        assert subject.state.lists >= 4


WATCHES: dict[str, tuple[bytes, str]] = {
    "an ERROR without a Status": (OK + line("ERROR", "gone"), "ERROR event that is not a Status: 'gone'"),
    "an ERROR with a number": (OK + line("ERROR", 7), "ERROR event that is not a Status"),
    "an ERROR with nothing in it": (OK + line("ERROR", {}), "Unknown: no message"),
    "a wait for ages": (OK + line("ERROR", failure(500, "X", details={"retryAfterSeconds": -5})), "500 X"),
    "a wait that is no number": (OK + line("ERROR", failure(500, "X", details={"retryAfterSeconds": "9"})), "500 X"),
    "a code that is none": (OK + line("ERROR", failure(10**30, "X")), ": X"),
    "details a list": (OK + line("ERROR", failure(500, "X", details=[])), "500 X"),
    "cut in a line": (OK + line("ADDED", configmap("x", 7))[:-20], "cut in the middle of a line"),
    "cut in a chunk": (CHUNKED + chunk(line("ADDED", configmap("x", 7)))[:-40], "broke off"),
    "a refusal that is no JSON": (b"HTTP/1.1 503 No\r\nConnection: close\r\n\r\n<h1>busy</h1>", "Unavailable: busy"),
    "a Retry-After that is none": (b"HTTP/1.1 503 No\r\nConnection: close\r\nRetry-After: soon\r\n\r\n", "503"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "said"), WATCHES.values(), ids=WATCHES.keys())
async def test_watch_ends_do_not_stop_the_informer(answer: bytes, said: str, log: Log) -> None:
    lists = [[whole(A_AND_B)], [whole(body_of([configmap("a", 1), configmap("b", 2), configmap("e", 9)], 9))]]
    events = OK + line("ADDED", configmap("e", 9))
    async with wire_informer(Script(lists, [[answer], [events, None]])) as subject:
        await log.until("configmaps", said)
        await subject.until_cached(BOTH | {"default/e": "9"})


@pytest.mark.parametrize("seconds", ["inf", "1e999", "99999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_a_server_that_asks_to_wait_for_ever_is_asked_again_all_the_same(seconds: str) -> None:
    head = f"HTTP/1.1 503 No\r\nConnection: close\r\nRetry-After: {seconds}\r\nContent-Length: 0\r\n\r\n"
    async with wire_informer(Script([[head.encode()]])) as subject:
        await subject.witness.until(lambda: 500 < (subject.state.retry_seconds or 0) <= 600)


async def test_a_wait_of_four_hundred_digits() -> None:
    """This once ended the informer."""
    status = dumps(failure(429, "TooManyRequests")).replace(
        b'"code"', b'"details":{"retryAfterSeconds":1%s},"code"' % (b"0" * 400)
    )
    async with wire_informer(Script(watches=[[OK + b'{"type":"ERROR","object":%s}\n' % status]])) as subject:
        await subject.witness.until(lambda: 500 < (subject.state.retry_seconds or 0) <= 600)


async def test_empty_content_encoding_is_none() -> None:
    plain = HEAD + b"Content-Encoding: identity\r\n\r\n"
    async with wire_informer(
        Script([[plain + A_AND_B]], [[plain + line("ADDED", configmap("c", 8))], [OK, None]])
    ) as subject:
        await subject.until_cached(BOTH | {"default/c": "8"})


async def test_version_of_a_damaged_event_is_dropped() -> None:
    """Found by fuzzing: the server would refuse an invalid version forever."""

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        version = asked.query.get("resourceVersion", "")
        if asked.is_stream:
            yield refusal(422, "Invalid")
        elif version and not version.isdigit():
            yield refusal(400, "BadRequest", message=f'resourceVersion: Invalid value: "{version}"')
        elif not asked.is_watch:
            yield whole(body_of([configmap("a", 1), configmap("e", 9)], 9) if not version else A_AND_B)
        elif version == "5":
            yield OK + line("ADDED", configmap("c", "5O"))
        else:
            yield OK
            await asyncio.Event().wait()

    async with wire_informer(answer) as subject:
        await subject.until_cached({"default/a": "1", "default/e": "9"})
        versions = [
            request.query.get("resourceVersion") for request in subject.server.asked if not request.is_stream
        ]
        assert versions[:5] == ["0", "5", "5O", "5O", None]
