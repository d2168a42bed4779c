"""managed_fields.py: objects without metadata.managedFields, whatever they are and however they are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import V1Pod as NewPod
from kubernetes_asyncio.client import V1Pod
from lightkube.models.core_v1 import Pod as LightPod

from aioinformer import KubeObject
from aioinformer.cache import TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.objects.codec import codec_for
from aioinformer.objects.managed_fields import drop_managed_fields

from ..informer.subject import informer
from ..reflector.scripted import FOREVER, Scripted, page
from ..samples import (
    POD,
    Pod,
    compress_object,
    pod_dict,
)
from ..virtual_time import virtual_time
from .test_kube_object import json_values

MANAGED = [{"manager": "me", "operation": "Update", "fieldsV1": {"f:metadata": {"f:managedFields": {}}}}]
LEAN = pod_dict(spec={"nodeName": "n", "containers": [{"name": "c", "image": "i"}]})
FULL = pod_dict(metadata={"managedFields": MANAGED}, spec=LEAN["spec"])


NAMESAKE = {"managedFields": MANAGED, **LEAN["spec"]}


def compact(fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def with_managed_fields(position: int, value: Any = MANAGED) -> dict[str, Any]:
    items = list(LEAN["metadata"].items())
    items.insert(position, ("managedFields", value))
    return {**LEAN, "metadata": dict(items)}


LAYOUTS = {
    "first": compact(with_managed_fields(0)),
    "in the middle": compact(with_managed_fields(2)),
    "last": compact(with_managed_fields(9)),
    "null": compact(with_managed_fields(1, None)),
    "with spaces": json.dumps(FULL).encode(),
    "indented": json.dumps(FULL, indent=1).encode(),
    "escaped": compact(FULL).replace(b'"managedFields"', rb'"managed\u0046ields"'),
    "with a namesake before": compact({"spec": NAMESAKE, "metadata": FULL["metadata"]}),
    "with a namesake behind": compact({"metadata": FULL["metadata"], "spec": NAMESAKE}),
    "escaped, with a namesake behind": compact({"metadata": FULL["metadata"], "spec": NAMESAKE}).replace(
        b'"managedFields"', rb'"managed\u0046ields"', 1
    ),
    "with a namesake deeper in": compact(
        {"metadata": {"more": NAMESAKE, **FULL["metadata"]}, "spec": LEAN["spec"]}
    ),
    "with a namesake alone": compact({**LEAN, "spec": NAMESAKE}),
    "without": compact(LEAN),
}


@pytest.mark.parametrize("raw", LAYOUTS.values(), ids=LAYOUTS)
class TestEveryLayout:
    def test_they_are_cut_out_of_the_bytes(self, raw: bytes) -> None:
        whole = json.loads(raw)
        whole["metadata"].pop("managedFields", None)
        obj = codec_for(KubeObject, drop_managed_fields=True).decode(raw)
        assert obj.to_dict() == whole
        assert list(obj) == list(whole)
        assert (obj.key, obj.uid, obj.resource_version) == ("ns/a", "uid-a", "1")
        assert obj == KubeObject.from_bytes(obj.raw)

    @pytest.mark.parametrize("object_type", [dict, V1Pod, NewPod, Pod])
    def test_other_kinds(self, raw: bytes, object_type: type[Any]) -> None:
        whole = json.loads(raw)
        whole["metadata"].pop("managedFields", None)
        lean = codec_for(object_type, drop_managed_fields=True)
        expected = codec_for(object_type).decode(compact(whole), POD)
        values = [
            raw,
            json.loads(raw),
            KubeObject.from_bytes(raw, POD),
            codec_for(object_type).decode(raw, POD),
        ]
        for value in values:
            assert lean.decode(value, POD) == expected, type(value)


def test_subclass_decodes_the_lean_bytes() -> None:
    class Cave(KubeObject, frozen=True, eq=False, gc=False):
        @classmethod
        def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Self:
            if b'"Cave"' not in raw:
                raise DecodeError("no cave")
            return super().from_bytes(raw, type_meta)

    decode = codec_for(Cave, drop_managed_fields=True).decode
    with pytest.raises(DecodeError, match="no cave"):
        decode(LAYOUTS["first"])
    lean = decode(b'{"kind":"Cave","metadata":{"name":"a","managedFields":[{}]}}')
    assert (type(lean), lean["metadata"]) == (Cave, {"name": "a"})


def test_object_without_managed_fields_is_not_copied() -> None:
    raw = compact(LEAN)
    lean = codec_for(KubeObject, drop_managed_fields=True)
    obj = lean.decode(raw)
    assert obj.raw is raw
    assert lean.decode(obj) is obj
    assert codec_for(dict, drop_managed_fields=True).decode(LEAN) is LEAN
    assert drop_managed_fields(5) == 5


def test_input_is_not_changed() -> None:
    given = json.loads(compact(FULL))
    model = codec_for(V1Pod).decode(compact(FULL), POD)
    assert drop_managed_fields(given)["metadata"] == LEAN["metadata"]
    assert drop_managed_fields(model).metadata.managed_fields is None
    assert given == FULL
    assert model.metadata.managed_fields is not None


def test_of_a_compressed_object() -> None:
    assert drop_managed_fields(compress_object(KubeObject.from_dict(FULL))).to_dict() == LEAN


@pytest.mark.parametrize(
    "wrong", [b"", b"{", b"[]", b'{"metadata": null}', b'{"metadata": {"managedFields": {}']
)
@pytest.mark.parametrize("object_type", [KubeObject, dict, V1Pod])
def test_other_bytes_are_a_decode_error(object_type: type[Any], wrong: bytes) -> None:
    with pytest.raises(DecodeError):
        codec_for(object_type, drop_managed_fields=True).decode(wrong)


@given(managed=json_values, position=st.integers(0, 9))
def test_any_value_of_managed_fields_is_dropped(managed: Any, position: int) -> None:
    raw = compact(with_managed_fields(position, managed))
    assert codec_for(KubeObject, drop_managed_fields=True).decode(raw).to_dict() == LEAN


class Strict(msgspec.Struct):
    """A pod that reads all its managed fields."""

    class Metadata(msgspec.Struct):
        class Managed(msgspec.Struct, forbid_unknown_fields=True):
            time: datetime | None = None
            manager: str = ""

        name: str
        managedFields: list[Managed] = []  # noqa: N815

    metadata: Metadata


class StrictModel(pydantic.BaseModel):
    class Metadata(pydantic.BaseModel):
        class Managed(pydantic.BaseModel):
            time: datetime | None = None

        name: str
        managedFields: list[Managed] = []  # noqa: N815

    metadata: Metadata


@pytest.mark.parametrize(
    "managed",
    [
        b'[{"manager":"m","time":"0000-01-01T00:00:00Z","fieldsV1":{}}]',
        b'[{"manager":"m","time":"0000-01-01T00:00:00Z","fieldsV1":%b}]'
        % (b'{"f:a":' * 1_100 + b"{}" + b"}" * 1_100),
        b'[{"manager":"m","time":"x\xff"}]',
        rb'[{"manager":"\ud800","time":"0000-01-01T00:00:00Z"}]',
        b'[{"manager":7,"time":true}]',
        b'"none"',
    ],
    ids=range(6),
)
@pytest.mark.parametrize("object_type", [KubeObject, dict, Pod, Strict, LightPod, V1Pod, NewPod, StrictModel])
def test_managed_fields_hide_no_object(object_type: type[Any], managed: bytes) -> None:
    raw = b'{"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":%b,"name":"a"},"spec":{"containers":[]}}'
    obj: Any = codec_for(object_type).decode(raw % managed)
    assert (obj["metadata"]["name"] if isinstance(obj, Mapping) else obj.metadata.name) == "a"


@pytest.mark.parametrize("object_type", [Strict, LightPod, V1Pod, NewPod])
def test_error_is_about_the_field_that_does_not_fit(object_type: type[Any]) -> None:
    raw = b'{"metadata":{"managedFields":[{"time":"0000-01-01T00:00:00Z"}],"name":[]},"spec":7}'
    with pytest.raises(DecodeError, match=f"not a {object_type.__name__}"):
        codec_for(object_type).decode(raw)


class TestTheOption:
    @virtual_time
    async def test_of_an_informer(self) -> None:
        server = Scripted([page(compact(FULL), version=10)], [[FOREVER]])
        subject = informer(server, drop_managed_fields=True)
        async with subject:
            await subject.wait_synced()
            (obj,) = subject.store.list()
            assert obj.to_dict() == LEAN
            assert b"managedFields" not in obj.raw
