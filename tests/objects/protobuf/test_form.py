"""A KubeObject that is kept as protobuf says what one says that is kept as JSON."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from kubernetes_asyncio.client import V1ControllerRevision, V1Pod
from lightkube.models.apps_v1 import ControllerRevision as LightRevision

from aioinformer import KubeObject, field
from aioinformer.cache import TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.objects.codec import codec_for
from aioinformer.objects.kube_object import read_labels
from aioinformer.objects.managed_fields import drop_managed_fields
from aioinformer.objects.protobuf import form_of

from ...samples import Pod, compress_object
from .samples import POD, WHOLE, WHOLE_JSON, entry, kube_object, message, metadata, pod_protobuf

JSON = KubeObject.from_bytes(json.dumps(WHOLE_JSON).encode(), POD)
PROTOBUF = kube_object(WHOLE)

forms = pytest.mark.parametrize("obj", [PROTOBUF, compress_object(PROTOBUF)], ids=["protobuf", "compressed"])


class Spec(msgspec.Struct, rename="camel"):
    node_name: str
    priority: int


class Projection(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec


@forms
def test_equals_the_object_from_json(obj: KubeObject) -> None:
    assert obj == JSON
    assert obj == JSON
    assert obj == JSON
    assert hash(obj) == hash(JSON)
    assert obj == {"kind": "Pod", "apiVersion": "v1", **WHOLE_JSON}
    assert obj != kube_object(pod_protobuf("web-1", "default", "42"))
    assert repr(obj) == "<Pod default/web-1 at 42>"


@forms
def test_key_uid_and_version_are_decoded(obj: KubeObject) -> None:
    assert (obj.key, obj.name, obj.namespace) == ("default/web-1", "web-1", "default")
    assert (obj.uid, obj.resource_version, obj.api_version, obj.kind) == ("uid-web-1", "42", "v1", "Pod")
    node = kube_object(message((1, metadata("n", ""))), TypeMeta("v1", "Node"))
    assert (node.key, node.namespace) == ("n", "")


@forms
def test_its_metadata_is_typed(obj: KubeObject) -> None:
    for name in (
        "name", "namespace", "uid", "resource_version", "generate_name", "generation", "labels", "annotations",
        "finalizers", "owner_references", "creation_timestamp", "deletion_timestamp", "deletion_grace_period_seconds",
    ):  # fmt: skip
        assert getattr(obj.metadata, name) == getattr(JSON.metadata, name), name
    assert obj.metadata == JSON.metadata
    assert read_labels(obj) == {"app": "web", "tier": ""}


@forms
def test_readers_do_not_share_values(obj: KubeObject) -> None:
    meta = obj.metadata
    meta.labels["app"] = meta.annotations["note"] = "changed"
    assert (meta.labels["app"], meta.annotations["note"]) == ("changed", "changed")
    obj["spec"]["nodeName"] = "changed"
    obj.to_dict()["spec"].clear()
    assert obj == JSON
    assert obj.metadata.labels["app"] == "web"


@forms
def test_it_is_a_mapping(obj: KubeObject) -> None:
    assert set(obj) == set(JSON) == {"kind", "apiVersion", "metadata", "spec", "status"}
    assert len(obj) == 5
    for name in obj:
        assert obj[name] == JSON[name]
    assert dict(obj.items()) == obj.to_dict() == JSON.to_dict()
    assert "data" not in obj
    assert obj.get("data") is None
    for nothing in ("data", "", None, 5, "spec.nodeName"):
        with pytest.raises(KeyError):
            obj[nothing]  # type: ignore[index]


@forms
@pytest.mark.parametrize(
    "path",
    [
        "metadata.name",
        "metadata.resourceVersion",
        "metadata.labels['app']",
        "metadata.labels['none']",
        "metadata.annotations['note']",
        "metadata.ownerReferences[0].name",
        "metadata.finalizers[*]",
        "metadata.creationTimestamp",
        "metadata.managedFields[0].fieldsV1",
        "spec.nodeName",
        "spec.nodeSelector['disk']",
        "spec.hostNetwork",
        "spec.containers[*].image",
        "spec.containers[0].ports[0].containerPort",
        "spec.containers[0].resources.limits['memory']",
        "spec.containers[*].livenessProbe.httpGet.port",
        "spec.volumes[*].emptyDir",
        "spec.containers[7].image",
        "spec.nodeName.further",
        "status.phase",
        "status.conditions[*].type",
        "status.containerStatuses[*].restartCount",
        "data.key",
        "kind",
        "apiVersion",
    ],
)
def test_fields_equal_those_of_the_json(obj: KubeObject, path: str) -> None:
    assert field(path)(obj) == field(path)(JSON)


def test_a_map_of_messages_is_read_whole() -> None:
    """Its keys are none of the messages' fields."""
    device = message((1, "gpu"), (2, entry("model", message((4, "a100")))))
    spec = message((1, "driver"), (2, message((1, "pool"), (2, 0), (3, 1))), (6, device))
    obj = kube_object(
        message((1, metadata("slice", "")), (2, spec)), TypeMeta("resource.k8s.io/v1", "ResourceSlice")
    )
    assert field("spec.devices[0].attributes['model'].string")(obj) == "a100"
    assert obj["spec"]["devices"][0]["attributes"] == {"model": {"string": "a100"}}


@forms
def test_decodes_to_other_types(obj: KubeObject) -> None:
    assert obj.decode(dict) == JSON.decode(dict)
    assert obj.decode(Projection).spec == Spec("node-1", -1)
    assert obj.decode(Pod).kind == "Pod"
    assert obj.decode(V1Pod).spec.containers[0].liveness_probe.http_get.port == "http"
    assert obj.decode(KubeObject) == JSON
    assert json.loads(obj.raw) == WHOLE_JSON


def test_subclass_is_built_without_json() -> None:
    class Mine(KubeObject, frozen=True):
        @property
        def node(self) -> str:
            return str(field("spec.nodeName")(self))

    mine = PROTOBUF.decode(Mine)
    assert (type(mine), mine.node, mine._kept) == (Mine, "node-1", WHOLE)


def test_subclass_that_overrides_from_bytes_gets_json() -> None:
    class Picky(KubeObject, frozen=True):
        @classmethod
        def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Any:
            if b"Ready" in raw:
                raise DecodeError("not ready ones")
            return super().from_bytes(raw, type_meta)

    with pytest.raises(DecodeError, match="not ready ones"):
        PROTOBUF.decode(Picky)


@forms
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj))])
def test_copies_are_equal(obj: KubeObject, copied: Callable[[KubeObject], KubeObject]) -> None:
    assert copied(obj) == obj == JSON


def test_dropping_managed_fields_keeps_protobuf() -> None:
    lean = drop_managed_fields(PROTOBUF)
    assert lean == drop_managed_fields(JSON)
    assert (lean._form, lean.key, lean.uid) == (PROTOBUF._form, PROTOBUF.key, PROTOBUF.uid)
    assert drop_managed_fields(lean) is lean


def test_compression_keeps_protobuf() -> None:
    packed = compress_object(PROTOBUF)
    assert (packed._uid, packed._version) != (PROTOBUF._uid, PROTOBUF._version)  # in what is kept
    assert packed.raw == PROTOBUF.raw
    assert len(packed._kept) < len(WHOLE)


def test_damaged_field_raises_when_it_is_read() -> None:
    damaged = kube_object(
        message((1, metadata("a", "ns", "7", (11, b"\x0a\x05"))), (2, b"\x0a\x05"), (3, b""))
    )
    assert (damaged.key, damaged["status"]) == ("ns/a", {})
    for read, what in (
        (lambda: damaged["spec"], "spec"),
        (damaged.to_dict, "the object"),
        (lambda: damaged.metadata.labels, "metadata"),
        (lambda: field("spec.nodeName")(damaged), "spec"),
    ):
        with pytest.raises(
            DecodeError, match=rf"ns/a at 7: {what} cannot be read: not the protobuf of a Pod"
        ):
            read()
    with pytest.raises(DecodeError, match="not the protobuf of a Pod"):
        damaged.raw  # noqa: B018


@pytest.mark.parametrize("raw", [b"", b"{}", b"\x0a\x05abc", WHOLE[:-1]])
def test_other_bytes_are_an_error(raw: bytes) -> None:
    with pytest.raises(DecodeError, match=r"not a Kubernetes object: .*; it has [0-9]+ bytes"):
        kube_object(raw)


def test_unknown_kind_is_an_error() -> None:
    with pytest.raises(
        DecodeError, match=r"Cave of example\.com/v1 cannot be read as protobuf: it is no kind of Kubernetes"
    ):
        form_of(TypeMeta("example.com/v1", "Cave"))


REVISION = TypeMeta("apps/v1", "ControllerRevision")


class Revision(msgspec.Struct):
    metadata: dict[str, Any]
    revision: int
    data: dict[str, Any] | None = None


def nest(depth: int) -> bytes:
    return b'{"f:a":' * depth + b"{}" + b"}" * depth


def test_json_nested_deeply_within_protobuf_is_read() -> None:
    managed = message((1, "kubectl"), (7, message((1, nest(9000)))))
    obj = kube_object(pod_protobuf("a", "ns", "7", (11, entry("app", "x")), (17, managed)))
    assert (obj.key, obj.resource_version, obj.metadata.labels) == ("ns/a", "7", {"app": "x"})
    fields = obj.to_dict()["metadata"]["managedFields"][0]["fieldsV1"]
    depth = 0
    while fields:
        fields, depth = fields["f:a"], depth + 1
    assert depth == 9000
    assert nest(9000) in obj.raw
    assert b"managedFields" not in codec_for(KubeObject, drop_managed_fields=True).decode(obj).raw


@pytest.mark.parametrize("object_type", [dict, Revision, V1ControllerRevision, LightRevision])
def test_json_nested_deeply_within_protobuf_reaches_any_object_type(object_type: Any) -> None:
    managed = message((1, "kubectl"), (7, message((1, nest(1100)))))
    data = message((1, metadata("a", "ns", "7", (17, managed))), (2, message((1, nest(9000)))), (3, 5))
    obj = codec_for(object_type).decode(kube_object(data, REVISION))
    assert (field("metadata.name")(obj), field("revision")(obj)) == ("a", 5)
    fields: Any = obj["data"] if isinstance(obj, dict) else obj.data
    depth = 0
    while fields:
        fields, depth = fields["f:a"], depth + 1
    assert depth == 9000


@pytest.mark.parametrize("object_type", [KubeObject, dict, Revision, V1ControllerRevision, LightRevision])
@pytest.mark.parametrize(
    "managed",
    [
        (4, message((1, -62_167_219_200))),  # the year 0000
        (4, message((1, 10**15))),  # the year 31690708
        (7, message((1, "{"))),
        (4, "x"),
    ],
    ids=range(4),
)
def test_managed_fields_hide_no_object(object_type: Any, managed: Any) -> None:
    data = message(
        (1, metadata("a", "ns", "7", (17, message((1, "kubectl"), managed)))), (2, message((1, "{}"))), (3, 5)
    )
    obj = codec_for(object_type).decode(kube_object(data, REVISION))
    assert (field("metadata.name")(obj), field("revision")(obj)) == ("a", 5)


@pytest.mark.parametrize("object_type", [KubeObject, dict, Pod])
def test_text_with_invalid_utf8_hides_no_object(object_type: Any) -> None:
    data = message((1, metadata("a", "ns", "7", (12, entry("b", b"c\xff")))))
    obj = codec_for(object_type).decode(kube_object(data))
    assert field("metadata.name")(obj) == "a"
    if object_type is not Pod:
        assert field("metadata.annotations.b")(obj) == "c\ufffd"


@pytest.mark.parametrize("name", [b"a\xff", b"b\xff" * 100], ids=["short", "long"])
def test_name_with_invalid_utf8_is_read(name: bytes) -> None:
    """An API server takes it of RBAC's kinds, whose names may be anything but ``/`` and ``%``."""
    first = message((1, name), (2, ""), (3, "ns"), (4, ""), (5, "u"), (6, "7"))
    obj = kube_object(message((1, first)), TypeMeta("rbac.authorization.k8s.io/v1", "Role"))
    assert (obj.key, obj.uid, obj.resource_version) == (f"ns/{name.decode(errors='replace')}", "u", "7")
