from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import AioInformerError, ApiError, TransportError
from aioinformer.cache import ListResult, TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.listwatch import body as body_module
from aioinformer.listwatch.body import PIECE, ListBodySplitter
from aioinformer.objects.decoders import FromBytes, decoder_of
from aioinformer.objects.nesting import end_of_brackets

from ..client.wire import dumps, failure

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NESTED = st.lists(st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"name": st.text(max_size=3)})}))
TRICKY = st.sampled_from(['},{"metadata":', '"items":[', "]}", "\\", '{"apiVersion":"v1","kind":"Cave",'])
BUILT_IN = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": st.text(max_size=8)}), "spec": VALUES | TRICKY},
    optional={"volumeClaimTemplates": NESTED, "items": NESTED},
)
CUSTOM = st.fixed_dictionaries(
    {
        "apiVersion": st.just("example.com/v1"),
        "kind": st.just("Cave"),
        "metadata": st.fixed_dictionaries(
            {"managedFields": st.lists(st.just({"apiVersion": "example.com/v1", "fieldsV1": {}}), max_size=3)}
        ),
        "spec": VALUES,
    }
)
SEPARATORS = st.sampled_from([((",", ":"), None), ((", ", ": "), None), ((",", ": "), 2)])


class Cave(NamedTuple):
    """An item that was read."""

    raw: bytes
    type_meta: TypeMeta | None

    @classmethod
    def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None) -> Cave:
        decoder_of(dict)(raw, type_meta)
        return cls(raw, type_meta)


META = {"resourceVersion": "12"}


def compact(listed: Any) -> bytes:
    """As API servers write it."""
    return json.dumps(listed, separators=(",", ":")).encode()


def split(body: bytes, size: int, read_item: FromBytes | None = None) -> list[ListResult]:
    splitter = ListBodySplitter(read_item=read_item)
    pieces = [splitter.feed(body[start : start + size]) for start in range(0, len(body), size)]
    return [*(piece for piece in pieces if piece is not None), splitter.close()]


@given(
    items=st.lists(BUILT_IN, max_size=12) | st.lists(CUSTOM, max_size=12),
    meta_first=st.booleans(),
    layout=SEPARATORS,
    size=st.integers(1, 400),
    enough=st.integers(1, 500),
    token=st.sampled_from(["", "page-2"]),
)
def test_every_layout_in_any_chunks_gives_the_same_items(
    items: list[Any], meta_first: bool, layout: Any, size: int, enough: int, token: str
) -> None:
    separators, indent = layout
    listed: dict[str, Any] = {"kind": "CaveList", "apiVersion": "example.com/v1"}
    metadata = {"resourceVersion": "12", "continue": token, "remainingItemCount": 3}
    listed |= {"metadata": metadata, "items": items} if meta_first else {"items": items, "metadata": metadata}
    body = json.dumps(listed, separators=separators, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "PIECE", enough)
        pieces = split(body, size)
    assert [json.loads(item) for piece in pieces for item in piece.items] == items
    assert all(type(item) is bytes for piece in pieces for item in piece.items)
    assert (pieces[-1].resource_version, pieces[-1].continue_token) == ("12", token)
    assert {(piece.resource_version, piece.continue_token) for piece in pieces[:-1]} <= {("", "")}
    assert {piece.type_meta for piece in pieces} == {TypeMeta("example.com/v1", "Cave")}


@given(items=st.lists(BUILT_IN, max_size=12), size=st.integers(1, 400), enough=st.integers(1, 500))
def test_read_item_reads_the_items(items: list[Any], size: int, enough: int) -> None:
    body = compact({"kind": "CaveList", "apiVersion": "example.com/v1", "items": items, "metadata": META})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "PIECE", enough)
        pieces = split(body, size, Cave.from_bytes)
    listed = [item for piece in pieces for item in piece.items]
    assert [json.loads(item.raw if isinstance(item, Cave) else item) for item in listed] == items
    assert {item.type_meta for item in listed if isinstance(item, Cave)} <= {
        TypeMeta("example.com/v1", "Cave")
    }


def test_nearly_every_item_is_read_once() -> None:
    """W21: a second pass would cost as much as the first."""
    tries = 0

    def read(item: bytes, type_meta: TypeMeta | None) -> Cave:
        nonlocal tries
        tries += 1
        return Cave.from_bytes(item, type_meta)

    items = [{"metadata": {"name": f"{number:04}"}, "spec": "x" * 100} for number in range(5000)]
    body = compact({"kind": "CaveList", "apiVersion": "example.com/v1", "metadata": META, "items": items})
    listed = [item for piece in split(body, PIECE, read) for item in piece.items]
    unread = [item for item in listed if not isinstance(item, Cave)]
    assert len(listed) == len(items)
    assert tries == len(items) - len(unread)
    assert sum(map(len, unread)) < PIECE  # those of the last piece


@given(st.data())
def test_a_body_cut_anywhere_is_a_transport_error(data: st.DataObject) -> None:
    items = data.draw(st.lists(BUILT_IN, min_size=1, max_size=6))
    listed = {"kind": "PodList", "items": items, "metadata": {"resourceVersion": "12"}}
    body = json.dumps(listed, separators=(",", ":")).encode()
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "PIECE", data.draw(st.integers(1, 300)))
        with pytest.raises(TransportError, match=r"breaks off"):
            split(body[:cut], 64)


@pytest.mark.parametrize("deep", [[], [0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize("meta_first", [True, False])
@pytest.mark.parametrize("size", [7, 1000, 10**6])
@pytest.mark.parametrize("enough", [1, 300, PIECE])
def test_deeply_nested_item_is_returned_with_the_others(
    deep: list[int], meta_first: bool, size: int, enough: int
) -> None:
    """Otherwise one deeply nested custom resource would make all unreadable."""
    nested = b"[" * 5000 + b'"]{\\"[",{}' + b"]" * 5000
    items = [b'{"metadata":{},"spec":%s}' % (nested if number in deep else b'"]}\\""') for number in range(3)]
    parts = [b'"metadata":{"resourceVersion":"9"}', b'"items":[%s]' % b",".join(items)]
    body = b'{"kind":"CaveList",%s}' % b",".join(parts if meta_first else parts[::-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "PIECE", enough)
        pieces = split(body, size)
    assert [item for piece in pieces for item in piece.items] == items
    assert pieces[-1].resource_version == "9"


@pytest.mark.parametrize("bad", [b"[" * 5000 + b"]" * 5000, b"tru"], ids=["deep", "malformed"])
@pytest.mark.parametrize("comma", [b" ,", b",\n ", b" , "])
@pytest.mark.parametrize("size", [1, 2, 3, 11, 10**6])
def test_white_space_around_an_unreadable_item(bad: bytes, comma: bytes, size: int) -> None:
    items = [b'{"metadata":{"name":"%d"},"spec":%s}' % (n, bad if n == 1 else b"1") for n in range(3)]
    body = b'{"kind":"CaveList","metadata":{"resourceVersion":"9"},"items":[ %s ]}' % comma.join(items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "PIECE", 1)
        pieces = split(body, size)
    assert [item for piece in pieces for item in piece.items] == items


def test_brackets_of_an_incomplete_item_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """msgspec takes 0.4 ms for each MB, counting brackets 5 to 50."""

    def never(data: bytes, begin: int) -> int:
        raise AssertionError

    monkeypatch.setattr(body_module, "end_of_brackets", never)
    body = large_body(3, {"values": ["x" * 8] * 200_000})
    assert sum(len(piece.items) for piece in split(body, 2 * PIECE)) == 3


def test_malformed_item_does_not_delay_the_others() -> None:
    splitter = ListBodySplitter()
    items = [b'{"metadata":{"name":"%d"},"spec":%s}' % (n, b"tru" if n == 1 else b"1") for n in range(9000)]
    piece = splitter.feed(b'{"kind":"CaveList","items":[' + b",".join(items[:-1]) + b",")
    assert piece is not None
    assert piece.items == items[:-1]


def test_item_without_an_end_in_a_complete_body_is_malformed() -> None:
    last = b'{"metadata":{},"spec":f}'
    (piece,) = split(
        b'{"kind":"CaveList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{}},%s]}' % last, 100
    )
    assert piece.items == [b'{"metadata":{}}', last]


def test_deeply_nested_incomplete_body_is_a_transport_error() -> None:
    with pytest.raises(TransportError, match=r"breaks off"):
        split(b'{"kind":"CaveList","metadata":{"resourceVersion":"9"},"items":[' + b"[" * 5000 + b'"', 100)


@pytest.mark.parametrize("size", [1, 700])
@pytest.mark.parametrize("body", [b" ", b'{"items":[{"data":"', b'{"kind":"', b'{"items":[{}, {"a":[1,'])
def test_endless_body_is_a_decode_error(body: bytes, size: int) -> None:
    splitter = ListBodySplitter(10_000)
    splitter.feed(body)
    with pytest.raises(DecodeError, match=r"more than 10000 bytes have come, and no object has ended"):
        for _ in range(20_000 // size):
            splitter.feed(b" " * size)


@pytest.mark.parametrize("size", [1000, 65536, 10**6])
def test_limit_applies_to_each_item_not_to_all(size: int) -> None:
    items = [
        {"metadata": {"name": f"{n:04}"}, "spec": "x" * (15_000 if n == 50 else 500)} for n in range(400)
    ]
    body = compact({"kind": "CaveList", "metadata": META, "items": items})
    splitter = ListBodySplitter(20_000)
    pieces = [splitter.feed(body[start : start + size]) for start in range(0, len(body), size)]
    listed = [item for piece in (*pieces, splitter.close()) if piece for item in piece.items]
    assert [json.loads(item) for item in listed] == items


def test_a_status_in_place_of_a_list_is_its_error() -> None:
    """client-go ``Request.transformResponse``: whatever the HTTP status says."""
    with pytest.raises(ApiError, match=r"410 Expired: too old") as caught:
        split(dumps(failure(410, "Expired", message="too old")), 50)
    assert caught.value.is_expired


@pytest.mark.parametrize("items", ['"items":null,', '"items":[],', ""])
def test_null_or_missing_items_are_an_empty_list(items: str) -> None:
    [piece] = split(f'{{{items}"metadata":{{"resourceVersion":"3"}}}}\n'.encode(), 100)
    assert piece == ListResult([], "3", "", None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("PodList", TypeMeta("v1", "Pod")), ("List", None), ("", None), ("Playlist", None)],
)
def test_list_kind_gives_the_items_type(kind: str, expected: TypeMeta | None) -> None:
    body = json.dumps({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "3"}, "items": []})
    [piece] = split(body.encode(), 100)
    assert piece.type_meta == expected


@pytest.mark.parametrize(("count", "expected"), [(1, TypeMeta("v1", "Pod")), (300, None)])
def test_kind_after_the_items_applies_to_all_or_none(count: int, expected: TypeMeta | None) -> None:
    """As with sorted names. For many items it comes too late."""
    items = [{"metadata": {"name": "x" * 900}}] * count
    pieces = split(compact({"apiVersion": "v1", "items": items, "kind": "PodList", "metadata": META}), 4096)
    assert sum(len(piece.items) for piece in pieces) == count
    assert {piece.type_meta for piece in pieces} == {expected}


def test_null_counts_as_empty() -> None:
    """As in client-go's JSON."""
    body = b'{"kind":null,"apiVersion":null,"metadata":{"resourceVersion":"7","continue":null},"items":[{}]}'
    assert split(body, 100) == [ListResult([b"{}"], "7", "", None)]


def test_items_in_another_field_are_ignored() -> None:
    body = b'{"kind":"PodList","x\\"items":[{"ghost":1},{"ghost":2}],"metadata":{"resourceVersion":"7"},"items":[{}]}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "PIECE", 1)
        pieces = split(body, 5)
    assert [item for piece in pieces for item in piece.items] == [b"{}"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[{"a":1}]}',
        b'{"kind":"PodMetricsList","items":[{"a":1}],"metadata":{"resourceVersion":""}}',
        b'{"kind":"MetricValueList","items":[{"a":1}]}',
    ],
)
def test_list_without_a_version_is_a_list(body: bytes) -> None:
    """As metrics.k8s.io and component statuses have none."""
    pieces = split(body, 7)
    assert [item for piece in pieces for item in piece.items] == [b'{"a":1}']
    assert pieces[-1].resource_version == ""
    [piece] = split(body.replace(b'[{"a":1}]', b"null"), 7)
    assert piece.items == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"kind":"Table","metadata":{"resourceVersion":"1"},"rows":[{"items":[{"a":1}]}]}', "Table"),
        (b"{}", "resourceVersion"),
        (b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"}}', "resourceVersion"),
        (b'{"metadata":{},"items":[]}', "resourceVersion"),
        (b"<html><body>Please log in</body></html>", "not a list"),
        (b"[]", "not a list"),
        (b'{"metadata":{"resourceVersion":"7"},"items":[]}xyz', "trailing characters"),
        (b'{"metadata":{"resourceVersion":"7"},"items":[{"a":1}]}{"x":', "trailing characters"),
        (b'{"metadata":{"resourceVersion":7},"items":[]}', "not a list"),
        (b'{"metadata":{"resourceVersion":"7"},"items":{}}', "not a list"),
    ],
)
def test_other_answer_is_a_decode_error(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        split(body, 7)


LONG = b"x" * 4_000_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: b'{"kind":"Table","rows":["' + LONG + b'"]}',
        lambda: b'{"items":[{"a":"' + LONG + b'"}]}',
        lambda: b'{"kind":"Status","code":"x","message":"' + LONG[:1000] + b'"}',
        lambda: b"<html>" + LONG,
        lambda: b'{"a":"' + LONG + b'","metadata":5}',
        lambda: b'{"kind":"PodList","items":[{"metadata":{"name":"' + LONG,
        lambda: b'{"kind":"PodList","items":[{"a":"' + LONG + b'"},{}], "metadata":5}',
        lambda: b'{"kind":"PodList","items":[{"a":"' + 10 * LONG,
    ],
    ids=["Table", "no version", "Status", "HTML", "bad metadata", "broken off", "bad end", "endless"],
)
def test_kept_error_does_not_keep_the_body(make: Callable[[], bytes]) -> None:
    """A reflector keeps its last error while it retries."""

    def failed() -> AioInformerError:
        splitter, body = ListBodySplitter(5 * len(LONG)), make()
        try:
            for start in range(0, len(body), 200_000):
                splitter.feed(body[start : start + 200_000])
            splitter.close()
        except AioInformerError as error:
            del body
            return error
        raise AssertionError

    tracemalloc.start()
    try:
        error = failed()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000, str(error)
    finally:
        tracemalloc.stop()


def large_body(count: int, spec: Any) -> bytes:
    item = {"metadata": {"name": "p"}, "spec": spec}
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [item] * count}
    return json.dumps(listed, separators=(",", ":")).encode()


def test_large_body_is_never_held_whole_w21() -> None:
    """W21: upstream holds a list's body, and its objects twice."""
    body = large_body(5000, {"padding": "x" * 4000})
    splitter, held, count, returned = ListBodySplitter(), 0, 0, 0
    for start in range(0, len(body), 65536):
        piece = splitter.feed(body[start : start + 65536])
        if piece is not None:
            count += len(piece.items)
            returned += sum(len(item) + 1 for item in piece.items)
        held = max(held, min(start + 65536, len(body)) - returned)
    count += len(splitter.close().items)
    assert count == 5000
    assert held < PIECE + 2 * 65536


def test_large_body_full_of_false_boundaries_is_split() -> None:
    nested = [{"metadata": {"name": str(number)}} for number in range(50)]
    body = large_body(2000, {"templates": nested})
    pieces = split(body, 65536)
    assert sum(len(piece.items) for piece in pieces) == 2000
    assert max(len(b"".join(piece.items)) for piece in pieces) < 4 * PIECE


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_search_for_the_end_of_an_item_is_limited(
    separators: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit it would scan all the rest for each item, if items do not begin alike."""
    copied = 0

    def read(item: bytes, type_meta: TypeMeta | None) -> bytes:
        nonlocal copied
        copied += len(item)
        return decoder_of(dict)(item, type_meta) and item

    monkeypatch.setattr(body_module, "PIECE", 10**6)
    items = [{"first": {}, "metadata": {}}, *({"metadata": {"name": str(n)}} for n in range(10_000))]
    items[5000:5000] = items[:1]
    body = json.dumps({"kind": "PodList", "metadata": META, "items": items}, separators=separators).encode()
    listed = [item for piece in split(body, 10**7, read) for item in piece.items]
    assert [json.loads(item) for item in listed] == items
    assert copied < 2 * len(body)


def test_a_long_string_takes_no_memory_for_each_of_its_escapes() -> None:
    item = b'{"metadata":{},"data":"%s"}' % (b"\\n" * 2_000_000)
    tracemalloc.start()
    try:
        assert end_of_brackets(item + b",", 0) == len(item)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(item)
    finally:
        tracemalloc.stop()


def test_items_larger_than_a_piece() -> None:
    rng = random.Random(1)
    items = [{"metadata": {"name": str(n)}, "data": "x" * rng.choice([10, 3 * PIECE])} for n in range(20)]
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items}
    pieces = split(json.dumps(listed, separators=(",", ":")).encode(), 65536)
    assert [json.loads(item) for piece in pieces for item in piece.items] == items
    assert len(pieces) > 3
