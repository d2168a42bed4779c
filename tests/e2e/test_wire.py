"""Malformed objects, items and lines are logged and counted, and affect nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from ..client.wire import (
    OK,
    bookmark,
    configmap,
    dumps,
    failure,
    line,
    whole,
)
from .wire import A_AND_B, BOTH, DEEP, NESTED, TABLE, Script, wire_informer
from .witness import Log

pytestmark = pytest.mark.usefixtures("soon_again")


def make_broken(**metadata: Any) -> dict[str, Any]:
    """Return a ConfigMap with malformed metadata."""
    obj = configmap("broken", 7)
    obj["metadata"] |= metadata
    return obj


OBJECTS: dict[str, bytes] = {
    "metadata a list": dumps(configmap("x", 1) | {"metadata": []}),
    "metadata null": dumps(configmap("x", 1) | {"metadata": None}),
    "no metadata": dumps({"kind": "ConfigMap", "apiVersion": "v1"}),
    "name null": dumps(make_broken(name=None)),
    "name a number": dumps(make_broken(name=7)),
    "name empty": dumps(make_broken(name="")),
    "namespace a list": dumps(make_broken(namespace=["default"])),
    "version a number": dumps(make_broken(resourceVersion=7)),
    "uid a number": dumps(make_broken(uid=7)),
    "a Status": dumps(failure(410, "Expired")),
    "a Table": dumps(TABLE),
    "a list": b"[]",
    "a text": b'"text"',
    "a number": b"7",
    "null": b"null",
    "deep": b'{"metadata":{"name":"deep","namespace":"default"},"data":%s}' % NESTED,
}
"""JSON that is no ConfigMap and must not be cached."""


@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS.keys())
async def test_an_item_of_a_list_that_is_no_object(obj: bytes, log: Log) -> None:
    body = A_AND_B.replace(b'"items":[', b'"items":[%s,' % obj).replace(b"]}\n", b",%s]}\n" % obj)
    async with wire_informer(Script([[whole(body)]])) as subject:
        await subject.until_cached(BOTH)
        assert subject.state.rejected == 2
        assert len(log.with_words("ERROR", "configmaps", "dropped an object")) == 2


@pytest.mark.parametrize("how", ["watch", "stream"])
@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS.keys())
async def test_an_event_whose_object_is_none(obj: bytes, how: str, log: Log) -> None:
    """Also in a streamed list; an object without a readable name causes a list instead."""
    event = b'{"type":"ADDED","object":%s}\n' % obj
    if how == "watch":
        events = OK + event + line("ADDED", configmap("c", 8)) + event + line("ADDED", configmap("d", 9))
        script = Script(watches=[[events, None]])
        expected = BOTH | {"default/c": "8", "default/d": "9"}
    else:
        events = OK + line("ADDED", configmap("a", 1)) + event + line("ADDED", configmap("b", 2))
        script = Script(streams=[[events + bookmark(5, closing=True), None]])
        expected = BOTH
    async with wire_informer(script) as subject:
        await subject.until_cached(expected)
        assert subject.state.rejected == (2 if how == "watch" else 1)
        assert log.with_words("ERROR", "configmaps", "dropped an object")
        assert len(subject.server.asked) <= 3


LINES: dict[str, bytes] = {
    "no JSON": b"{no JSON\n",
    "half an object": b'{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"b\n',
    "two that were mixed": b'{"type":"ADD{"type":"ADDED","object":{"metED","object":{"metadata":{}}}\n',
    "no type": b'{"object":{"metadata":{"name":"x"}}}\n',
    "type a number": b'{"type":7,"object":{"metadata":{"name":"x"}}}\n',
    "type null": b'{"type":null,"object":{"metadata":{"name":"x"}}}\n',
    "no object": b'{"type":"ADDED"}\n',
    "type of tomorrow": line("PROGRESS", configmap("x", 7)),
    "deep": DEEP + b"\n",
    "no UTF-8": b"\xff\xfe\n",
    "a BOM": b"\xef\xbb\xbf" + line("ADDED", configmap("x", 7)),
    "NUL": b"\x00\n",
    "NUL inside": line("ADDED", configmap("x", 7)).replace(b"ConfigMap", b"Config\x00Map"),
    "two objects, of which the last counts": b'{"type":"ADDED","object":{"metadata":{"name":"x"}},"object":{}}\n',
    "HTML": b"<html><body>Please log in</body></html>\n",
    "a bookmark without metadata": line("BOOKMARK", {"kind": "ConfigMap"}),
    "a bookmark's version a number": line("BOOKMARK", {"metadata": {"resourceVersion": 9}}),
}


@pytest.mark.parametrize("bad", LINES.values(), ids=LINES.keys())
async def test_meaningless_watch_lines(bad: bytes, log: Log) -> None:
    good = line("ADDED", configmap("c", 8)), line("ADDED", configmap("d", 9))
    async with wire_informer(Script(watches=[[OK + good[0] + bad + good[1], None]])) as subject:
        await subject.until_cached(BOTH | {"default/c": "8", "default/d": "9"})
        assert subject.state.rejected == 1
        assert subject.informer.last_sync_resource_version == "9"
        assert log.with_words("ERROR", "configmaps", "dropped an object")


HARMLESS: dict[str, tuple[bytes, dict[str, str]]] = {
    "CRLF": (line("ADDED", configmap("c", 8)).replace(b"\n", b"\r\n"), {"default/c": "8"}),
    "empty lines": (b"\n\r\n  \n\t\n" + line("ADDED", configmap("c", 8)), {"default/c": "8"}),
    "spaces": (b'  { "type" : "ADDED" , "object" : %s }\n' % dumps(configmap("c", 8)), {"default/c": "8"}),
    "a key more": (
        b'{"object":%s,"type":"ADDED","seen":{"by":[1,2]}}\n' % dumps(configmap("c", 8)), {"default/c": "8"}
    ),
    "the same again": (line("ADDED", configmap("c", 8)) * 3, {"default/c": "8"}),
    "versions backwards": (line("ADDED", configmap("c", 8)) + line("MODIFIED", configmap("c", 3)), {"default/c": "3"}),
    "no number": (line("ADDED", configmap("c", "abc-λ")), {"default/c": "abc-λ"}),
    "no version": (line("ADDED", configmap("c", "")), {"default/c": ""}),
    "two metadata": (
        line("ADDED", configmap("c", 8)).replace(b'"data"', b'"metadata":{"name":"d","namespace":"default"},"data"'),
        {"default/d": ""},
    ),
    "no UTF-8 in the data": (
        line("ADDED", configmap("c", 8)).replace(b'"data":{}', b'"data":{"k":"\xff"}'), {"default/c": "8"}
    ),
    "a stranger deleted": (line("DELETED", configmap("x", 8)) + line("ADDED", configmap("c", 9)), {"default/c": "9"}),
    "a bookmark without a version": (bookmark("") + line("ADDED", configmap("c", 9)), {"default/c": "9"}),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "more"), HARMLESS.values(), ids=HARMLESS.keys())
async def test_odd_but_valid_answers(sent: bytes, more: dict[str, str], log: Log) -> None:
    async with wire_informer(
        Script(watches=[[OK + sent + line("ADDED", configmap("last", 99)), None]])
    ) as subject:
        await subject.until_cached(BOTH | more | {"default/last": "99"})
        assert (subject.state.rejected, subject.state.last_error) == (0, None)
        assert not log.with_words("ERROR")
        assert not log.with_words("WARNING")
