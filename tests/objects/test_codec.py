"""codec.py: bytes, dicts and instances become the object type that the user chose."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import pytest
from kubernetes.aio.client import V1ObjectMeta as NewMeta
from kubernetes.aio.client import V1Pod as NewPod
from kubernetes.client import V1ObjectMeta as SyncMeta
from kubernetes.client import V1Pod as SyncPod
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import ConfigError, KubeObject, ObjectMeta
from aioinformer.errors import DecodeError
from aioinformer.objects.codec import Codec, codec_for

from ..samples import (
    POD,
    LoosePod,
    Pod,
    WirePod,
    pod,
    pod_dict,
)

T = TypeVar("T")

WHOLE = pod_dict(
    metadata={"creationTimestamp": "2024-01-02T03:04:05Z", "labels": {"a": "b"}},
    spec={"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
)
RAW = json.dumps(WHOLE).encode()
WITH_LONG = pod_dict(spec={"nodeName": "n" * 20_000})
LONG_WITH_MANAGED_FIELDS = json.dumps({**WITH_LONG, "metadata": {"name": "a", "managedFields": []}}).encode()
MODELS = [V1Pod, NewPod, SyncPod]
META_MODELS = [V1ObjectMeta, NewMeta, SyncMeta]


class TypedPod(TypedDict):
    metadata: dict[str, Any]


class Named(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""


class Thing(msgspec.Struct, Generic[T]):
    metadata: Named
    spec: T


class Spec(msgspec.Struct, rename="camel"):
    node_name: str


@pytest.mark.parametrize("object_type", [KubeObject, dict, Pod, LoosePod, WirePod, *MODELS], ids=repr)
class TestEveryType:
    def test_bytes_dicts_and_instances(self, object_type: type[Any]) -> None:
        codec = codec_for(object_type)
        obj = codec.decode(RAW)
        assert isinstance(obj, object_type)
        assert codec.decode(obj) is obj
        for same in (json.loads(RAW), KubeObject.from_bytes(RAW), bytearray(RAW), memoryview(RAW)):
            assert codec.decode(same) == obj

    def test_lists_and_watches_give_equal_objects(self, object_type: type[Any]) -> None:
        """Design 2: items of a LIST carry no apiVersion and kind, watch objects do."""
        codec = codec_for(object_type)
        watched = codec.decode(json.dumps({"apiVersion": "v1", "kind": "Pod", **WHOLE}).encode())
        for listed in (RAW, json.loads(RAW), KubeObject.from_bytes(RAW, POD)):
            assert codec.decode(listed, POD) == watched

    @pytest.mark.parametrize(
        ("own", "expected"),
        [
            ({"kind": "Cave"}, ("v1", "Cave")),
            ({"apiVersion": "v2"}, ("v2", "Pod")),
            ({"apiVersion": "v2", "kind": "Cave"}, ("v2", "Cave")),
            ({"kind": ""}, ("v1", "")),
        ],
    )
    def test_what_an_item_says_itself_is_not_its_collections(
        self, object_type: type[Any], own: dict[str, str], expected: tuple[str, str]
    ) -> None:
        codec = codec_for(object_type)
        whole = codec.decode(WHOLE | dict(zip(("apiVersion", "kind"), expected, strict=True)))
        item = WHOLE | own
        raw = json.dumps(item).encode()
        for value in (raw, b" \n" + raw, item, KubeObject.from_bytes(raw, POD)):
            assert codec.decode(value, POD) == whole

    @pytest.mark.parametrize(
        "wrong",
        [
            b"",
            b"null",
            b"[]",
            b"{}",
            b"{",
            b'{"metadata": null}',
            b'"\xff"',
            b"\xff",
            {},
            {"metadata": None},
            b"5" + RAW,
            b"\v" + RAW,
        ],
        ids=lambda wrong: repr(wrong)[:30],
    )
    def test_other_values_are_decode_errors(self, object_type: type[Any], wrong: Any) -> None:
        with pytest.raises(DecodeError):
            codec_for(object_type).decode(wrong, POD)

    @pytest.mark.parametrize(
        "wrong", [None, 5, "{}", [], object()], ids=["None", "5", "str", "list", "object"]
    )
    def test_unsupported_types_are_decode_errors(self, object_type: type[Any], wrong: Any) -> None:
        with pytest.raises(DecodeError, match="expected"):
            codec_for(object_type).decode(wrong)

    def test_unknown_fields_are_accepted(self, object_type: type[Any]) -> None:
        """A server may be newer than the models."""
        newer = json.loads(RAW)
        newer["metadata"]["newer"] = newer["spec"]["newer"] = newer["newer"] = {"x": 1}
        obj = codec_for(object_type).decode(json.dumps(newer).encode())
        assert codec_for(object_type).decode(newer) == obj


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__module__)
def test_models_are_whole(model: Any) -> None:
    obj = codec_for(model).decode(RAW, POD)
    assert (obj.api_version, obj.kind) == ("v1", "Pod")
    assert (obj.metadata.resource_version, obj.metadata.labels) == ("1", {"a": "b"})
    assert obj.metadata.creation_timestamp.isoformat() == "2024-01-02T03:04:05+00:00"
    assert obj.spec.node_name == "n"
    assert obj.spec.containers[0].image == "i"


@pytest.mark.parametrize("object_type", [KubeObject, Pod, dict, *MODELS, None])
@pytest.mark.parametrize("lean", [False, True])
def test_read_item_is_set_for_fast_types(object_type: type[Any] | None, lean: bool) -> None:
    codec = codec_for(object_type, drop_managed_fields=lean)
    if object_type is not Pod and (object_type is not KubeObject or lean):
        assert codec.read_item is None
        return
    assert codec.read_item is not None
    read = codec.read_item(RAW, None)
    assert codec.decode(read) is read
    assert read == codec.decode(RAW)
    with pytest.raises(DecodeError):
        codec.read_item(RAW[:-1], None)


def test_codec_of_none_returns_values_as_they_are() -> None:
    codec: Codec[Any] = codec_for(None)
    for value in (b"x", None, {"a": 1}, 5):
        assert codec.decode(value) is value


def test_dicts_by_their_other_names() -> None:
    assert codec_for(dict[str, Any]).decode(RAW) == WHOLE
    assert codec_for(TypedPod).decode(RAW) == WHOLE
    assert codec_for(TypedPod).decode(json.loads(RAW)) == WHOLE


def test_generic_structs() -> None:
    assert codec_for(Thing[Spec]).decode(RAW) == Thing(Named("a", "1"), Spec("n"))
    assert codec_for(Thing[dict[str, Any]]).decode(RAW).spec == WHOLE["spec"]


def test_a_subclass_of_kube_object() -> None:
    class Cave(KubeObject, frozen=True):
        pass

    assert type(codec_for(Cave).decode(RAW)) is Cave
    assert type(codec_for(Cave).decode(pod())) is Cave


def test_pydantic_models_of_the_users_own() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Cave", metadata=(dict[str, Any], ...), kind=(str, ""))
    obj = codec_for(model).decode(RAW, POD)
    assert (obj.metadata["name"], obj.kind) == ("a", "Pod")


class NoMetadata(msgspec.Struct):
    spec: dict[str, Any]


class Nameless(msgspec.Struct):
    class Meta(msgspec.Struct):
        resourceVersion: str = ""  # noqa: N815

    metadata: Meta


class OursForMetadata(msgspec.Struct):
    """What KubeObjects have for metadata is nothing that could be decoded."""

    metadata: ObjectMeta


class NotRenamed(msgspec.Struct):
    """The version is never read from the wire."""

    class Meta(msgspec.Struct):
        name: str
        resource_version: str = ""

    metadata: Meta


class Unfindable(msgspec.Struct):
    """The metadata are read from the wire, but this name does not give access to them."""

    meta: dict[str, Any] = msgspec.field(name="metadata")


class Undecodable(msgspec.Struct):
    metadata: dict[str, Any]
    spec: int | complex | None = None


class Unresolved(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821


class OwnModel(V1Pod):
    """Its module has no ApiClient."""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (int, "int is no object type"),
        (Any, "Any is no object type"),
        (object, "object is no object type"),
        ("V1Pod", "an object type is a class"),
        ([], "an object type is a class"),
        (pod(), "an object type is a class"),
        (KubeObject | None, "Union(Type)? is no object type"),
        (NoMetadata, "NoMetadata needs a field metadata"),
        *((model, f"{model.__name__} needs a field metadata") for model in META_MODELS),
        (Nameless, "needs a field name"),
        (OursForMetadata, r"\(ObjectMeta\) needs a field name: give metadata a Struct of your own"),
        (NotRenamed, 'needs resourceVersion .* rename="camel" gives it'),
        (Unfindable, "Unfindable.meta must be called metadata"),
        (Undecodable, "msgspec cannot decode Undecodable: Type unions .* custom type"),
        (Unresolved, "msgspec cannot decode Unresolved: name 'Nowhere' is not defined"),
        (OwnModel, "OwnModel is not a model of kubernetes_asyncio"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_types_that_cannot_be_cached_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        codec_for(wrong)


def test_decode_accepts_types_that_cannot_be_cached() -> None:
    class View(msgspec.Struct):
        spec: Spec

    assert KubeObject.from_bytes(RAW).decode(View).spec.node_name == "n"
    with pytest.raises(ConfigError, match="View needs a field metadata"):
        codec_for(View)


@pytest.mark.parametrize(
    "made",
    [
        lambda: KubeObject.from_dict(WITH_LONG),
        lambda: codec_for(KubeObject).decode(WITH_LONG),
        lambda: codec_for(KubeObject, drop_managed_fields=True).decode(LONG_WITH_MANAGED_FIELDS),
    ],
    ids=["from_dict", "a dict", "without managed fields"],
)
def test_an_object_takes_little_more_memory_than_its_bytes(made: Callable[[], KubeObject]) -> None:
    size = len(made().raw)
    tracemalloc.start()
    try:
        obj = made()
        assert tracemalloc.get_traced_memory()[0] < size + 1000
    finally:
        tracemalloc.stop()
    assert len(obj.raw) == size


def test_models_are_imported_only_when_asked_for() -> None:
    """python-peers.md 4: programs without models do not pay for a second of imports."""
    code = "import sys, aioinformer; assert 'kubernetes_asyncio.client.models' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_struct_without_metadata_gets_a_hint() -> None:
    with pytest.raises(ConfigError) as caught:
        codec_for(NoMetadata)
    for part in (
        "`name: str`",
        "`uid: str",
        "`resource_version: str",
        "`finalizers: list[str]",
        "`owner_references:",
    ):
        assert part in str(caught.value)


class Narrow(msgspec.Struct):
    """A type that not every object fits."""

    metadata: dict[str, Any]
    data: dict[str, int]


@pytest.mark.parametrize("object_type", [Narrow, V1Pod, NewPod], ids=["Struct", "model", "pydantic"])
def test_object_that_does_not_fit_is_named_and_its_data_is_not_quoted(object_type: Any) -> None:
    secret = (
        b'{"apiVersion":"v1","data":{"password":"aHVudGVyMg=="},"kind":"Secret","spec":"hunter2",'
        b'"metadata":{"name":"a","namespace":"ns","uid":"u-1","labels":"hunter2"}}'
    )
    with pytest.raises(DecodeError, match="it is Secret ns/a, uid u-1") as caught:
        codec_for(object_type).decode(secret)
    assert "aHVudGVy" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"apiVersion":"v1","data":{"password":"aHVudGVyMg=="},"kind":"Secret"}',
        b'{"apiVersion":"v1","data":{"password":"aHVudGVyMg==","kind":"Secret","metadata":{"name":"a"',
        b'{"data":{"a":"hunter2 aHVudGVyMg==',
        b"aHVudGVyMg==aHVudGVyMg==" * 2 + b'"},"kind":"Secret"}',
    ],
    ids=range(4),
)
@pytest.mark.parametrize("object_type", [KubeObject, dict, Narrow, V1Pod])
def test_no_excerpt_quotes_what_may_be_a_secret(object_type: Any, raw: bytes) -> None:
    for given in (raw, msgspec.json.decode(raw) if raw.endswith(b"}") and raw.startswith(b"{") else raw):
        with pytest.raises(DecodeError) as caught:
            codec_for(object_type).decode(given)
        assert "hunter2" not in str(caught.value)
        assert "aHVudGVyMg" not in str(caught.value)
