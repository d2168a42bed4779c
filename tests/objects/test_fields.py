"""fields.py: one field of any kind of object, by its path."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import re
from datetime import datetime
from typing import Any, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import V1Pod as NewPod
from kubernetes_asyncio.client import V1Pod

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    Field,
    FilteringResourceEventHandler,
    Indexer,
    KubeObject,
    Lister,
    ResourceEventHandlerFuncs,
    WatchEvent,
    field,
    meta_namespace_key_func,
)
from aioinformer.errors import DecodeError, IndexFuncError
from aioinformer.objects.codec import codec_for
from aioinformer.operator import Change

from ..samples import (
    POD,
    LoosePod,
    compress_object,
    pod,
    pod_dict,
)
from .test_kube_object import json_values

WHOLE = pod_dict(
    metadata={"labels": {"app": "x", "app.kubernetes.io/name": "y"}, "generation": 3},
    spec={
        "nodeName": "n",
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}, {"name": "e"}],
        "hostNetwork": True,
        "tolerations": [],
    },
)


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}


class Container(msgspec.Struct):
    name: str
    image: str | None = None


class Spec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str | None = None
    containers: list[Container] = []
    host_network: bool = False
    tolerations: list[Any] = []


class Typed(msgspec.Struct, rename="camel"):
    metadata: Meta
    spec: Spec = Spec()
    api_version: str = ""
    kind: str = ""


def every_kind() -> list[Any]:
    plain = KubeObject.from_dict(WHOLE)
    obj = KubeObject.from_bytes(plain.raw, POD)
    kinds: list[type[Any]] = [dict, Typed, LoosePod, V1Pod, NewPod]
    return [obj, compress_object(obj), *(codec_for(kind).decode(plain.raw, POD) for kind in kinds)]


@pytest.mark.parametrize("obj", every_kind(), ids=lambda obj: type(obj).__module__ + type(obj).__name__)
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "a"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "uid-a"),
        ("metadata.resourceVersion", "1"),
        ("metadata.generation", 3),
        ("metadata.labels.app", "x"),
        ("metadata.labels['app']", "x"),
        ("metadata.labels['app.kubernetes.io/name']", "y"),
        ('metadata.labels["app.kubernetes.io/name"]', "y"),
        ("metadata.labels.none", None),
        ("spec.nodeName", "n"),
        ("spec.hostNetwork", True),
        ("spec.containers[0].image", "i"),
        ("spec.containers[2].image", None),
        ("spec.containers[9].image", None),
        ("spec.containers[*].name", ["c", "d", "e"]),
        ("spec.containers[*].image", ["i", "j"]),
        ("spec.tolerations[*].key", []),
        ("spec.nodeName.more", None),
        ("spec.nodeName[*]", []),
        ("spec.nodeName[0]", None),
        ("status.phase", None),
        ("none[*].at.all", []),
    ],
)
def test_every_kind_of_object(obj: Any, path: str, expected: Any) -> None:
    if isinstance(obj, LoosePod) and not path.startswith("metadata"):
        expected = [] if "[*]" in path else None
    assert field(path)(obj) == expected
    assert field(path)(DeletedFinalStateUnknown("ns/a", obj)) == expected
    listed = [] if expected is None else expected if isinstance(expected, list) else [expected]
    texts = {True: "true", 3: "3"}
    assert field(path).values(obj) == [texts.get(value, value) for value in listed]


@pytest.mark.parametrize("path", ["spec.names[*]", "spec.parts[*].names[*]", "spec.parts[*].name"])
def test_elements_that_are_null_are_left_out(path: str) -> None:
    parts = [None, {"names": [None, "a"], "name": "a"}, {"names": None, "name": None}]
    obj = KubeObject.from_dict(pod_dict(spec={"names": [None, "a"], "parts": parts}))
    for form in (obj, obj.to_dict()):
        assert field(path)(form) == field(path).values(form) == ["a"]
    assert not field(path).equals(None)(obj)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.parts[*].name", [None, "a", None]),
        ("spec.parts[*].names[*]", [None, [None, "a"], None]),
        ("spec.parts[*].names[1]", [None, "a", None]),
        ("spec.parts[1].names[*]", [None, "a"]),
        ("spec.none[*].name", None),
        ("spec.parts[1].name", "a"),
    ],
)
def test_in_place_keeps_positions(path: str, expected: Any) -> None:
    parts = [None, {"names": [None, "a"], "name": "a"}, {"names": None, "name": None}]
    obj = KubeObject.from_dict(pod_dict(spec={"parts": parts}))
    for form in (obj, obj.to_dict()):
        assert Field(path, in_place=True)(form) == expected


def test_kind_and_api_version_may_be_the_collections() -> None:
    listed = KubeObject.from_bytes(pod().raw, POD)
    for obj in (listed, compress_object(listed), codec_for(Typed).decode(pod().raw, POD)):
        assert (field("kind")(obj), field("apiVersion")(obj)) == ("Pod", "v1")


def test_a_tombstone_without_an_object_has_no_fields() -> None:
    tombstone: Any = DeletedFinalStateUnknown("ns/a", None)
    assert field("spec.nodeName")(tombstone) is None
    assert field("spec.containers[*].image")(tombstone) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        ".",
        "a..b",
        "a.",
        "[0]",
        "[*].a",
        "a[",
        "a[]",
        "a['']",
        "a[-1]",
        "a b",
        "a['b",
        "spec.node name",
        "{.a}",
        "1a",
    ],
)
def test_bad_path_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match="is no path of a field"):
        field(wrong)


@pytest.mark.parametrize("wrong", [None, 3, b"spec", ["spec"]])
def test_a_path_that_is_no_text_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"the path of a field must be a string, like 'spec\.nodeName'"):
        field(wrong)


@pytest.mark.parametrize("path", ["spec.node_name", "status.pod_ip", "metadata.owner_references[*].uid"])
def test_a_path_with_the_names_of_a_model(path: str) -> None:
    with pytest.raises(ConfigError, match=r"names of the JSON, such as spec\.nodeName"):
        field(path)


@pytest.mark.parametrize(
    "path",
    ["metadata['a_b']", "metadata.labels.a_b", "spec.values.a_b", "data.a_b", "spec['a_b'].c_d", "spec.__a"],
)
def test_where_an_underscore_may_be(path: str) -> None:
    assert field(path)({}) is None


def test_names_of_any_kind() -> None:
    for name in ("a.b/c", 'quo"te', "back\\slash", "tab\t", "ключ", " "):
        obj = pod(spec={name: "x"})
        assert field(f"spec['{name}']")(obj) == "x"
        assert field(f"spec['{name}']")(compress_object(obj)) == "x"


def test_index_refuses_objects_and_lists() -> None:
    indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func, {"spec": "spec"})
    with pytest.raises(IndexFuncError, match="index 'spec' failed on ns/a") as caught:
        indexer.add(pod(spec={"a": 1}))
    assert isinstance(caught.value.__cause__, TypeError)
    indexer.add(pod(spec="text"))
    assert indexer.index_keys("spec", "text") == ["ns/a"]


class Phase(enum.Enum):
    RUNNING = "Running"


@dataclasses.dataclass
class Host:
    ip: str


class FrozenContainer(msgspec.Struct, frozen=True):
    image: str


class FrozenStatus(msgspec.Struct, rename="camel", frozen=True):
    """What is immutable, or says more than JSON."""

    containers: tuple[FrozenContainer, ...]
    conditions: frozenset[str]
    phase: Phase
    start_time: datetime
    host: Host
    priority: decimal.Decimal
    reason: str | msgspec.UnsetType = msgspec.UNSET


class FrozenPod(msgspec.Struct, frozen=True):
    metadata: Meta
    status: FrozenStatus


@pytest.mark.parametrize(
    "path",
    [
        "status.containers[*].image",
        "status.containers[0].image",
        "status.containers[2].image",
        "status.conditions[*]",
        "status.phase",
        "status.startTime",
        "status.host.ip",
        "status.host.name",
        "status.priority",
        "status.reason",
    ],
)
def test_struct_values_are_listed_as_in_json(path: str) -> None:
    obj = pod(
        status={
            "containers": [{"image": "x"}, {"image": "y"}],
            "conditions": ["Ready", "Initialized"],
            "phase": "Running",
            "startTime": "2024-01-01T00:00:00Z",
            "host": {"ip": "10.0.0.1"},
            "priority": "1.5",
        }
    )
    assert sorted(field(path).values(obj.decode(FrozenPod))) == sorted(field(path).values(obj))


def test_a_models_times_are_listed_as_in_json() -> None:
    created = "2024-01-01T00:00:00Z"
    obj = pod(metadata={"creationTimestamp": created})
    for kind in (V1Pod, NewPod):
        assert field("metadata.creationTimestamp").values(obj.decode(kind)) == [created]


def test_unreadable_object_raises_decode_error() -> None:
    broken = KubeObject.from_bytes(b'{"metadata": {"name": "a"}, "spec": {"nodeName": 1e400}}')
    with pytest.raises(DecodeError, match="spec cannot be read"):
        field("spec.nodeName")(broken)
    odd = KubeObject.from_bytes(b'{"metadata": {"name": "a", "labels": 5}, "spec": null}')
    assert field("spec.nodeName")(odd) is None
    assert field("metadata.labels.app")(odd) is None
    assert field("metadata.labels")(odd) == 5


def test_labels_as_a_whole_are_there_or_not() -> None:
    assert field("metadata.labels")(pod("a", metadata={"labels": {"app": "web"}})) == {"app": "web"}
    assert field("metadata.labels")(KubeObject.from_bytes(b'{"metadata": {"name": "a"}}')) is None


class TestIndexesAndPredicates:
    objects = (
        pod("a", spec={"nodeName": "one", "containers": [{"image": "x"}, {"image": "y"}]}),
        pod("b", spec={"nodeName": "two", "containers": [{"image": "x"}]}),
        pod("c", metadata={"labels": {"app": "web"}}),
    )

    def indexer(self) -> Indexer[KubeObject]:
        paths = {
            "node": "spec.nodeName",
            "image": "spec.containers[*].image",
            "app": "metadata.labels['app']",
        }
        indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func, paths)
        indexer.replace(self.objects)
        return indexer

    def test_an_index_by_path(self) -> None:
        indexer = self.indexer()
        assert indexer.index_keys("node", "one") == ["ns/a"]
        assert indexer.index_keys("image", "x") == ["ns/a", "ns/b"]
        assert indexer.index_keys("app", "web") == ["ns/c"]
        assert sorted(indexer.list_index_func_values("node")) == ["one", "two"]
        indexer.add_indexers({"name": "metadata.name"})
        assert indexer.index_keys("name", "b") == ["ns/b"]

    def test_a_path_that_cannot_be_read_adds_nothing(self) -> None:
        indexer = self.indexer()
        with pytest.raises(ConfigError):
            indexer.add_indexers({"more": "spec.nodeName", "wrong": "spec..nodeName"})
        assert set(indexer.indexers) == {"node", "image", "app"}

    def test_predicates(self) -> None:
        lister = Lister(self.indexer())
        a, b, _ = self.objects
        assert lister.list(field("spec.nodeName").equals("one")) == [a]
        assert lister.list(field("spec.nodeName").equals("one", "two")) == [a, b]
        assert lister.list(field("spec.containers[*].image").equals("y")) == [a]

    def test_numbers_do_not_equal_booleans(self) -> None:
        """In Python 1 equals True."""
        one, true = (
            pod("a", spec={"x": [1], "y": [{"z": 0}]}),
            pod("b", spec={"x": [True], "y": [{"z": False}]}),
        )
        for obj, others in ((one, true), (true, one)):
            for path in ("spec.x[0]", "spec.y[0].z"):
                wanted = field(path)(obj)
                picks = field(path).equals("other", wanted)
                assert (picks(obj), picks(others)) == (True, False)
        assert [field("spec.x[*]").equals(1, "x")(obj) for obj in (one, true)] == [True, False]
        assert field("spec.x[*]").equals(1.0)(one)

    def test_filters(self) -> None:
        events: list[str] = []
        handler = FilteringResourceEventHandler(
            field("spec.nodeName").equals("one"),
            ResourceEventHandlerFuncs[KubeObject](
                on_add=lambda obj, _: events.append(obj.name), on_delete=lambda obj: events.append("gone")
            ),
        )
        for obj in self.objects:
            handler.on_add(obj, False)
        handler.on_delete(DeletedFinalStateUnknown("ns/a", self.objects[0]))
        handler.on_delete(DeletedFinalStateUnknown("ns/a", None))
        assert events == ["a", "gone"]


names = st.sampled_from(["a", "b", "c"])
documents = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=15,
)
steps = st.lists(names.map(lambda name: f".{name}") | st.sampled_from(["[*]", "[0]", "[1]"]), max_size=4)


@given(documents, steps)
def test_bytes_and_dicts_say_the_same(document: Any, path: list[str]) -> None:
    fields = pod_dict(spec=document)
    obj = KubeObject.from_dict(fields)
    for in_place in (False, True):
        read = Field("spec" + "".join(path), in_place=in_place)
        assert read(obj) == read(obj.to_dict()) == read(compress_object(obj))


# -- what has no such field --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [WatchEvent("ADDED", pod()), Change(None, pod()), "ns/a", 5, [pod()]],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("path", ["spec.nodeName", "spec.containers[*].image"])
def test_non_objects_raise_with_a_hint(path: str, other: Any) -> None:
    message = (
        rf"field\(.*\) reads an object, such as event\.object .* change\.new .*, not a {type(other).__name__}"
    )
    for read in (field(path), field(path).values, field(path).equals("n")):
        with pytest.raises(ConfigError, match=message):
            read(other)


def test_what_has_the_field_itself_need_be_no_object() -> None:
    class Row(msgspec.Struct):
        node_name: str = msgspec.field(name="nodeName")

    assert field("nodeName")(Row("n")) == "n"


def test_no_object_has_no_fields() -> None:
    assert field("spec.nodeName")(None) is None
    assert not field("spec.containers[*].image").equals("i")(None)


class Named(TypedDict):
    name: str


class Port(msgspec.Struct):
    number: int = msgspec.field(name="port", default=0)


class Tagged(msgspec.Struct, tag=True):
    first: int = 0


class Other(msgspec.Struct, tag=True):
    second: int = 0


class Rules(msgspec.Struct, rename="camel"):
    main_port: Port | None = None
    ports: list[Port | None] = []
    by_name: dict[str, Port] = {}
    parts: tuple[Tagged | Other, ...] = ()
    pair: tuple[int, int] = (0, 0)
    raw: msgspec.Raw | None = None
    named: Named | msgspec.UnsetType = msgspec.UNSET
    next: Rules | None = None
    whatever: Any = None


class WithRules(msgspec.Struct):
    metadata: Meta
    spec: Rules | None = None


@pytest.mark.parametrize(
    "path",
    [
        "metadata.labels['app']",
        "metadata.resourceVersion",
        "spec.mainPort.port",
        "spec.ports[0].port",
        "spec.ports[*].port",
        "spec.byName.any.thing",
        "spec.parts[*].first",
        "spec.parts[*].second",
        "spec.pair[1]",
        "spec.raw.any.thing",
        "spec.named.name",
        "spec.next.next.mainPort",
        "spec.whatever.it.is",
    ],
)
def test_what_a_struct_may_have(path: str) -> None:
    field(path).require_known(WithRules)
    Indexer(indexers={"by": path}, object_type=WithRules)


@pytest.mark.parametrize(
    ("path", "lack"),
    [
        ("status.phase", "WithRules has no status, but metadata, spec"),
        ("spec.mainport", "Rules has no mainport, but mainPort, ports, byName, "),
        ("spec.mainPort.number", "Port has no number, but port"),
        ("spec.ports[0].number", "Port has no number"),
        ("spec.parts[*].last", "Tagged has no last"),
        ("spec.named.first", "Named has no first, but name"),
        ("spec.next.next.none", "Rules has no none"),
    ],
)
def test_field_that_a_struct_drops_is_refused(path: str, lack: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{re.escape(repr(path))} is no field of a WithRules: {lack}"):
        Indexer(indexers={"by": path}, object_type=WithRules)


@pytest.mark.parametrize("kind", [KubeObject, dict, V1Pod, Named, None])
def test_other_types_have_all_fields(kind: Any) -> None:
    field("status.no.one.knows").require_known(kind)
