"""JSON that API servers store and msgspec refuses is read all the same."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

import msgspec
import pytest
from kubernetes_asyncio.client import V1ControllerRevision, V1CustomResourceDefinition, V1Pod
from lightkube.models.apps_v1 import ControllerRevision

from aioinformer import KubeObject, field
from aioinformer.errors import DecodeError
from aioinformer.listwatch import events
from aioinformer.listwatch.body import ListBodySplitter
from aioinformer.listwatch.partial import partial_object
from aioinformer.objects.codec import codec_for
from aioinformer.objects.managed_bytes import without_managed_fields
from aioinformer.objects.nesting import (
    MOST_LEVELS,
    decode_any,
    decode_typed,
    end_of_brackets,
)
from aioinformer.resources.endpoint import lifecycle_of

DEPTH = 9_000
NESTED = b'{"f:a":' * DEPTH + b"{}" + b"}" * DEPTH
SURROGATES = rb'["\ud800\ud800", "\udc00\n", "\ud83d\ude00 \\ud800"]'
"""What msgspec refuses also where it skips it, and API servers take in a RawExtension."""

METADATA = (
    b'"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"app":"x"},'
    b'"managedFields":[{"fieldsV1":%s}]}'
)
HIDING = (
    b'{"kind":"Pod","apiVersion":"v1",' + METADATA % NESTED + b',"spec":{"nodeName":"n","containers":[]}}'
)
"""A pod whose managed fields are nested as deeply as an API server stores them."""


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    spec: dict[str, Any]


class Whole(msgspec.Struct):
    metadata: dict[str, Any]


class Kept(msgspec.Struct):
    metadata: msgspec.Raw


def depth_of(value: Any) -> int:
    depth = 0
    while value:
        value = value["f:a"] if isinstance(value, dict) else value[0]
        depth += 1
    return depth


@pytest.mark.parametrize("part", ["metadata", "spec", "data", "front"])
@pytest.mark.parametrize("lean", [False, True])
def test_object_nested_deeply_is_read_by_key_version_and_labels(part: str, lean: bool) -> None:
    metadata = METADATA % (NESTED if part == "metadata" else b"{}")
    raw = (
        b'{"a":'
        + (NESTED if part == "front" else b"1")
        + b","
        + metadata
        + b',"spec":'
        + (NESTED if part == "spec" else b'{"nodeName":"n"}')
        + b',"data":'
        + (NESTED if part == "data" else b"1")
        + b"}"
    )
    obj = codec_for(KubeObject, drop_managed_fields=lean).decode(raw)
    assert (obj.key, obj.uid, obj.resource_version) == ("ns/a", "u", "7")
    assert obj.metadata.labels == {"app": "x"}
    assert obj.metadata.finalizers == []
    assert field("metadata.labels.app")(obj) == "x"
    if part == "spec":
        assert depth_of(obj["spec"]) == DEPTH
    assert (b"managedFields" in obj.raw) is not lean
    assert depth_of(obj.get("a")) == DEPTH if part == "front" else obj["a"] == 1
    if part != "spec":
        assert field("spec.nodeName")(obj) == "n"
    assert obj == copy.copy(obj)
    assert obj != KubeObject.from_bytes(raw.replace(b"{}", b"[]"))  # too deep to be compared


@pytest.mark.parametrize("object_type", [dict, dict[str, Any], Pod, Whole, V1Pod])
@pytest.mark.parametrize("lean", [False, True])
def test_object_nested_deeply_becomes_any_object_type(object_type: Any, lean: bool) -> None:
    obj = codec_for(object_type, drop_managed_fields=lean).decode(HIDING)
    metadata = obj["metadata"] if isinstance(obj, dict) else obj.metadata
    assert field("metadata.name")(obj) == "a"
    if isinstance(metadata, dict) and not (lean and isinstance(obj, dict)):
        assert depth_of(metadata["managedFields"][0]["fieldsV1"]) == DEPTH


@pytest.mark.parametrize("object_type", [V1ControllerRevision, ControllerRevision])
def test_model_has_what_is_nested_deeply(object_type: Any) -> None:
    raw = b'{"metadata":{"name":"a","labels":{"b":"c"}},"revision":5,"data":{"x":[%b,1]}}' % NESTED
    revision = codec_for(object_type).decode(raw)
    assert (revision.metadata.labels, revision.revision) == ({"b": "c"}, 5)
    assert depth_of(revision.data["x"][0]) == DEPTH
    assert revision.data["x"][1] == 1


def test_model_whose_typed_field_is_nested_too_deeply_is_refused() -> None:
    schema = b'{"properties":{"a":' * 600 + b"{}" + b"}}" * 600
    version = b'{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%b}}' % schema
    names = b'"group":"g","scope":"Namespaced","names":{"kind":"A","plural":"as"}'
    raw = b'{"metadata":{"name":"a"},"spec":{%b,"versions":[%b]}}' % (names, version)
    with pytest.raises(DecodeError, match=r"a typed field .*is nested too deeply"):
        codec_for(V1CustomResourceDefinition).decode(raw)


def test_raw_field_has_the_bytes_of_the_server() -> None:
    kept = KubeObject.from_bytes(HIDING).decode(Kept)
    assert bytes(kept.metadata) == (METADATA % NESTED).partition(b":")[2]


def test_more_levels_than_servers_take_are_refused_by_name() -> None:
    nested = b"[" * (MOST_LEVELS + 9) + b"]" * (MOST_LEVELS + 9)
    with pytest.raises(DecodeError, match=f"nested more than {MOST_LEVELS} levels"):
        KubeObject.from_bytes(b'{"metadata":{"name":"a"},"x":%s}' % nested)


@pytest.mark.parametrize(
    "broken",
    [HIDING[:-1], HIDING + b"]", HIDING.replace(b"}}}", b"}]}", 1), HIDING[:5000], HIDING + b'"'],
    ids=range(5),
)
def test_what_is_nested_deeply_and_no_json_is_refused(broken: bytes) -> None:
    with pytest.raises(DecodeError):
        codec_for(dict).decode(broken)


@pytest.mark.parametrize("object_type", [KubeObject, dict, Pod, V1ControllerRevision])
def test_half_a_surrogate_pair_hides_no_object(object_type: Any) -> None:
    raw = b'{"metadata":{"name":"a"},"revision":1,"spec":{},"data":%s}' % SURROGATES
    assert field("metadata.name")(codec_for(object_type).decode(raw)) == "a"
    if object_type is dict:
        assert codec_for(dict).decode(raw)["data"] == ["\ufffd\ufffd", "\ufffd\n", "😀 \\ud800"]


def test_dict_has_numbers_and_texts_that_python_has_no_word_for() -> None:
    obj = codec_for(dict).decode(b'{"metadata":{"name":"a"},"x":1e999,"y":"\xff"}')
    assert math.isinf(obj["x"])
    assert obj["y"] == "\ufffd"


def test_watch_line_of_another_layout_keeps_its_object() -> None:
    line = b'{ "type": "MODIFIED", "object": %s }' % HIDING
    (event,) = events.decode_lines([(line, 0, len(line))])
    assert event.type == "MODIFIED"
    assert KubeObject.from_bytes(event.object).key == "ns/a"


def test_what_stands_behind_the_object_in_a_watch_line_is_dropped() -> None:
    assert codec_for(KubeObject).decode(HIDING + b',"x":1').raw == HIDING


@pytest.mark.parametrize(
    "hiding", [HIDING, b'{"metadata":{"name":"a"},"data":%s}' % SURROGATES], ids=["nested", "surrogates"]
)
@pytest.mark.parametrize("is_last", [False, True])
def test_list_has_it_among_the_others(hiding: bytes, is_last: bool) -> None:
    others = [b'{"metadata":{"name":"b%d"}}' % number for number in range(3)]
    items = [*others, hiding] if is_last else [hiding, *others]
    splitter = ListBodySplitter(read_item=KubeObject.from_bytes)
    pieces = [
        splitter.feed(b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":['),
        splitter.feed(b",".join(items) + b"]}"),
        splitter.close(),
    ]
    decode = codec_for(KubeObject).decode
    names = [decode(item).name for piece in pieces if piece for item in piece.items]
    assert sorted(names) == ["a", "b0", "b1", "b2"]


def test_metadata_alone_is_cut_out() -> None:
    obj = KubeObject.from_bytes(partial_object(HIDING))
    assert (obj.kind, obj.key, sorted(obj)) == (
        "PartialObjectMetadata",
        "ns/a",
        ["apiVersion", "kind", "metadata"],
    )


def test_answer_to_a_write_is_read() -> None:
    body = HIDING[:-1] + b',"status":%s}' % NESTED
    assert (lifecycle_of(body).key, lifecycle_of(body).version) == ("ns/a", "7")


def test_fields_cut_out_of_other_bytes_leave_the_rest_as_it_was() -> None:
    raw = b'{"f":1e999,"g":1.50,"h":12345678901234567890123,"metadata":{"name":"a"},"z":%s}' % NESTED
    managed = raw.replace(b'"name"', b'"managedFields": [%s] ,"name"' % NESTED)
    assert without_managed_fields(managed) == raw


def test_what_python_reads_is_read_and_ends_where_it_ends() -> None:
    rng = random.Random(5)
    tokens = [
        '"',
        "\\",
        "\\u",
        "d8",
        "00",
        "dc",
        "\\ud800",
        "\\udc00",
        "\\\\",
        "\\n",
        "é",
        "[",
        "]",
        "{",
        ":",
        ",",
    ]
    numbers = ["1", "-0", "1E+5", "1e-5", "9" * 400, "-1e400", "123e7", "true", "null"]

    def text() -> str:
        return '"' + "".join(rng.choice(tokens) for _ in range(rng.randint(0, 9))) + '"'

    def value(depth: int) -> str:
        kind = rng.random()
        if not depth or kind < 0.4:
            return text()
        if kind < 0.6:
            return rng.choice(numbers)
        if kind < 0.8:
            return "[" + " ,".join(value(depth - 1) for _ in range(rng.randint(0, 3))) + " ]"
        return "{ " + ", ".join(f"{text()}\n:{value(depth - 1)}" for _ in range(rng.randint(0, 3))) + "}"

    decoder = msgspec.json.Decoder(Pod | None)
    count = 0
    while count < 3000:
        written = value(7)
        try:
            expected = json.loads(written)
        except ValueError:
            continue
        count += 1
        raw = written.encode()
        decoded = decode_any(raw)
        assert depth_of_any(decoded) == depth_of_any(expected)
        decode_typed(decoder, b"null")
        if raw[0] in b"[{":
            assert end_of_brackets(raw + b"]}", 0) == len(raw)


def depth_of_any(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of_any, inner), default=0)
