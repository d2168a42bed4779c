"""Random JSON of any nesting is read as Python's json reads it, in whatever pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from time import process_time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import KubeObject
from aioinformer.objects import brackets
from aioinformer.objects.brackets import MOST_LEVELS, crossings, end_of_brackets
from aioinformer.objects.codec import codec_for
from aioinformer.objects.json_values import same
from aioinformer.objects.nested_encoding import encode_nested
from aioinformer.objects.nesting import decode_any, reader_of, tidy

HOSTILE = st.lists(
    st.sampled_from(
        [
            *('"', "\\", "\\\\", '\\"', "[", "]", "{", "}", ",", ":", "u", "\\u", "d83d", "ud800"),
            *("\ud800", "\udc00", "\U0001f600", "é", "\u2028", "\x00", "\n", " ", "1e999", "null"),
        ]
    ),
    max_size=12,
).map("".join)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SHALLOW = st.recursive(
    st.none() | st.booleans() | NUMBERS | HOSTILE | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(HOSTILE, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """Return JSON of a value, with or without escapes and spaces."""
    text = json.dumps(
        value, ensure_ascii=True, separators=draw(st.sampled_from([(",", ":"), (" ,\n", " : ")]))
    )
    if draw(st.booleans()):  # characters as they are, except half surrogate pairs
        text = re.sub(
            r"(?<!\\)(?:\\\\)*\\u00e9", lambda escape: escape[0].replace("\\u00e9", "é"), text, count=3
        )
    return text


@st.composite
def nested(draw: st.DrawFn) -> tuple[bytes, Any]:
    """Return JSON with many levels, each with other values beside the next one, and its value."""
    inner: Any = draw(SHALLOW)
    text = draw(texts(inner))
    value: Any = plain(json.loads(text))
    beside = [draw(SHALLOW) for _ in range(3)]
    others = [draw(texts(other)) for other in beside]
    read = [plain(json.loads(other)) for other in others]
    front: list[str] = []
    back: list[str] = []
    kinds = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    for level in range(draw(st.integers(0, 2500))):
        match kinds[level % len(kinds)]:
            case 0:
                front.append("[")
                back.append("]")
                value = [value]
            case 1:
                front.append('{"f:a":')
                back.append("}")
                value = {"f:a": value}
            case 2:
                front.append(f"[{others[0]}, ")
                back.append(f",{others[1]} ]")
                value = [read[0], value, read[1]]
            case 3:
                front.append('{ "k:{\\"[\\":1}" : ')
                back.append(f',"b\\\\":{others[2]}}}')
                value = {'k:{"[":1}': value, "b\\": read[2]}
            case _:
                front.append('[{},[],"]\\"{",')
                back.append("]")
                value = [{}, [], ']"{', value]
    return "".join((*reversed(front), text, *back)).encode(), value


def plain(value: Any) -> Any:
    """Replace halves of surrogate pairs as Go does."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {plain(name): plain(part) for name, part in value.items()}
    return list(map(plain, value)) if isinstance(value, list) else value


@given(nested())
def test_any_nesting_is_read_as_python_does(case: tuple[bytes, Any]) -> None:
    raw, expected = case
    assert same(decode_any(raw), expected)
    assert same(decode_any(encode_nested(expected)), expected)
    if raw[:1] in (b"[", b"{"):
        assert end_of_brackets(raw + b",1]", 0) == len(raw)


class Typed(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Any = None
    data: msgspec.Raw = msgspec.Raw()
    count: float = 0.0
    items: list[msgspec.Raw] = []


read_typed = reader_of(Typed)


@given(nested(), nested(), nested())
def test_fields_of_a_type_have_their_values_whatever_their_nesting(
    spec: tuple[bytes, Any], data: tuple[bytes, Any], skipped: tuple[bytes, Any]
) -> None:
    raw = b'{"skipped":%b,"metadata":{"name":"a","m":%b},"spec":%b,"data":%b,"count":1.5,"items":[1,%b]}' % (
        skipped[0], data[0], spec[0], data[0], spec[0],
    )  # fmt: skip
    typed = read_typed(raw)
    assert (typed.metadata["name"], typed.count) == ("a", 1.5)
    assert same(typed.metadata["m"], data[1])
    assert same(typed.spec, spec[1])
    assert tidy(bytes(typed.data)).strip() == tidy(data[0])
    assert tidy(bytes(typed.items[1])).strip() == tidy(spec[0])
    obj = KubeObject.from_bytes(raw)
    assert obj.key == "a"
    assert same(obj["spec"], spec[1])


@given(st.data())
def test_damaged_json_is_refused_as_python_does(data: st.DataObject) -> None:
    raw, _ = data.draw(nested())
    at = data.draw(st.integers(0, len(raw) - 1))
    damaged = raw[:at] + data.draw(st.sampled_from([b"", b"]", b"}", b"[", b'"', b"1", b","])) + raw[at + 1 :]
    if len(raw) > 2000:  # Python's json cannot tell
        damaged = raw[:at]
    try:
        expected = json.loads(damaged.decode("utf-8", "replace"), parse_constant=refuse)
    except (ValueError, RecursionError):
        with pytest.raises((msgspec.MsgspecError, RecursionError)):
            decode_any(damaged)
    else:
        assert same(decode_any(damaged), plain(expected))


def refuse(text: str) -> None:
    raise ValueError(text)


def crossings_by_steps(data: bytes, first: int, every: int) -> Iterator[tuple[int, bool]]:
    depth, is_text, is_escaped = 0, False, False
    levels = range(first, MOST_LEVELS, every) if every else (first,)
    for place, character in enumerate(data.decode("latin-1")):
        if is_text:
            is_text = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            is_text = True
        elif character in "[{":
            depth += 1
            if depth in levels:
                yield place, True
        elif character in "]}":
            if depth in levels:
                yield place, False
            depth -= 1


@pytest.mark.parametrize("window", [16, 128, 1024, 65536])
@settings(max_examples=40)
@given(nested(), st.integers(1, 300), st.integers(0, 300))
def test_places_of_levels_are_found_in_windows_of_any_size(
    window: int, case: tuple[bytes, Any], first: int, every: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brackets, "_WINDOW", window)
        places = list(crossings(case[0], first=first, every=every))
    assert places == list(crossings_by_steps(case[0], first, every))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_limit_is_the_servers_limit(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    most = opening * (MOST_LEVELS - 1) + b"{}" + closing * (MOST_LEVELS - 1)
    more = opening * MOST_LEVELS + b"{}" + closing * MOST_LEVELS
    for _ in range(20):  # the levels at which it is cut are random
        assert same(decode_any(encode_nested(decode_any(most))), decode_any(most))
        for read in (decode_any, reader_of(msgspec.Raw)):
            with pytest.raises(msgspec.DecodeError, match=f"nested more than {MOST_LEVELS} levels"):
                read(more)


def test_value_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["a"] = [value]
    with pytest.raises(RecursionError):
        encode_nested(value)


def fastest(function: Any, *args: Any) -> float:
    times = []
    for _ in range(5):
        begin = process_time()
        function(*args)
        times.append(process_time() - begin)
    return min(times)


@pytest.mark.parametrize(
    "part",
    [
        b'{"f:a":' * 1_100 + b"{}" + b"}" * 1_100,
        b'{"f:a":' * 9_900 + b"{}" + b"}" * 9_900,
        rb'{"k:{\"p\":80}":' * 1_100 + b"{}" + b"}" * 1_100,
        rb'"\ud800"',
        b"[" * 1_100 + b"]" * 1_100 + b',"' + rb"\\\"" * 4_000 + b'"',
        b"[" * 1_100 + b"]" * 1_100 + b',"["' * 2_000,
    ],
    ids=["levels", "most levels", "brackets in keys", "half pairs", "escapes", "brackets in strings"],
)
def test_nested_bytes_cost_a_small_multiple_of_flat_bytes(part: bytes) -> None:
    size = 1 << 20
    flat = b",".join([b'{"a":1,"b":"two"}'] * (size // 18))
    hostile = b",".join([part] * (size // (len(part) + 1)))
    obj = b'{"metadata":{"name":"a","managedFields":[%b]}}'
    decode = codec_for(dict).decode
    usual = fastest(decode, obj % flat)
    assert fastest(decode, obj % hostile) < 12 * usual
    assert fastest(KubeObject.from_bytes, obj % hostile) < 4 * usual
