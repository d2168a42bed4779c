"""Objects of every type are encoded as request bodies."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kubernetes.aio.client import V1ConfigMap as AioConfigMap
from kubernetes_asyncio.client import V1ConfigMap, V1ObjectMeta

from aioinformer import ConfigError, DeletedFinalStateUnknown, KubeObject
from aioinformer.cache import TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.objects.encoding import fields_of
from aioinformer.objects.kube_object import encode
from aioinformer.resources.endpoint import body_of
from aioinformer.resources.merging import is_partial

from ..samples import pod


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None


class Spec(msgspec.Struct, omit_defaults=True):
    size: int | None = None
    parts: list[dict[str, int | None]] = []


class Cave(msgspec.Struct):
    metadata: Meta
    spec: Spec | None = None
    kind: str = "Cave"


class WholeMeta(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class WholeCave(msgspec.Struct, forbid_unknown_fields=True):
    metadata: WholeMeta
    parts: dict[str, list[WholeMeta]] = {}
    parent: WholeCave | None = None


class AlmostWhole(msgspec.Struct, forbid_unknown_fields=True):
    metadata: WholeMeta
    specs: list[dict[str, Spec | None]] = []


def test_none_fields_of_a_struct_are_omitted() -> None:
    cave = Cave(Meta("a", resource_version="7"), Spec(parts=[{"x": 1, "y": None}]))
    assert fields_of(cave) == {
        "metadata": {"name": "a", "namespace": "", "resourceVersion": "7"},
        "spec": {"parts": [{"x": 1, "y": None}]},  # a key of a dict is kept
        "kind": "Cave",
    }
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (
        fields_of(Cave(Meta("a", deletion_timestamp=moment)))["metadata"]["deletionTimestamp"]
        == "2026-01-02T03:04:05Z"
    )


@pytest.mark.parametrize(
    "model",
    [
        V1ConfigMap(metadata=V1ObjectMeta(name="a", resource_version="7"), data={"k": "v"}),
        AioConfigMap.from_dict({"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"k": "v"}}),
    ],
    ids=["kubernetes_asyncio", "kubernetes.aio"],
)
def test_models_are_encoded(model: Any) -> None:
    fields = fields_of(model)
    assert fields["metadata"] == {"name": "a", "resourceVersion": "7"}
    assert fields["data"] == {"k": "v"}
    assert msgspec.json.decode(encode(fields)) == fields
    assert not is_partial(model)


def test_kube_objects_of_a_list_have_their_type() -> None:
    raw = b'{"metadata":{"name":"a"},"x":null}'
    obj = KubeObject.from_bytes(raw, TypeMeta("v1", "ConfigMap"))
    assert fields_of(obj) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": None}
    assert not is_partial(obj)


def test_dicts_are_copied() -> None:
    given = {"metadata": {"name": "a"}}
    fields = fields_of(given)
    fields["kind"] = "x"
    assert given == {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    "wrong", [None, 7, "default/a", [1], object(), DeletedFinalStateUnknown("ns/a", pod())]
)
def test_other_types_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"is not an object: use KubeObject"):
        fields_of(wrong)


def test_values_outside_json_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"not JSON"):
        encode({"a": object()})


def circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["a"] = circle
    return circle


NOT_JSON: dict[str, Any] = {
    "an object": object(),
    "a surrogate": "\ud800",
    "a circle": circle(),
    "NaN": float("nan"),
    "an infinity": [{"b": float("-inf")}],
}


@pytest.mark.parametrize("wrong", NOT_JSON.values(), ids=NOT_JSON)
def test_request_with_values_outside_json_is_not_sent(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"^create pods a: the request was not sent: "):
        body_of({"a": wrong}, "create pods a")


@pytest.mark.parametrize(
    "value", [None, datetime(2026, 1, 1, tzinfo=UTC), msgspec.Raw(b"[null]"), Meta("a"), "NaN", {1: None}]
)
def test_values_within_json_are_sent(value: Any) -> None:
    body = body_of({"a": value}, "create pods a")
    assert body == msgspec.json.encode({"a": value})


def test_structs_that_may_drop_fields_are_partial() -> None:
    assert not is_partial(WholeCave(WholeMeta("a")))
    assert is_partial(Cave(Meta("a")))
    assert is_partial(AlmostWhole(WholeMeta("a")))
