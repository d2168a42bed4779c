"""keys.py: keys, and the few facts that every kind of object has."""

from __future__ import annotations

import sys
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    DeletedFinalStateUnknown,
    deletion_handling_meta_namespace_key_func,
    meta_namespace_key_func,
    split_meta_namespace_key,
)
from aioinformer.cache import ExplicitKey
from aioinformer.errors import KeyFuncError
from aioinformer.objects.codec import codec_for
from aioinformer.objects.keys import (
    key_and_version,
    labels_of,
    namespace_of,
    resource_version_of,
    same_version,
)

from ..samples import (
    LoosePod,
    Meta,
    Pod,
    WirePod,
    compress_object,
    pod,
    pod_dict,
)


def every_kind(**metadata: Any) -> list[Any]:
    from kubernetes.aio.client import V1Pod as NewPod
    from kubernetes_asyncio.client import V1Pod

    obj = pod(metadata=metadata)
    types: list[type[Any]] = [dict, Pod, LoosePod, WirePod, V1Pod, NewPod]
    return [obj, compress_object(obj), *(codec_for(kind).decode(obj.raw) for kind in types)]


def test_every_kind_of_object_has_the_same_facts() -> None:
    for obj in every_kind(labels={"a": "b"}):
        assert meta_namespace_key_func(obj) == "ns/a", type(obj)
        assert resource_version_of(obj) == "1"
        assert namespace_of(obj) == "ns"
        assert labels_of(obj) == ({} if isinstance(obj, WirePod) else {"a": "b"})
        assert key_and_version(obj) == ("ns/a", "1")


def test_every_kind_of_tombstone_has_them_too() -> None:
    for obj in every_kind(labels={"a": "b"}):
        tombstone = DeletedFinalStateUnknown("ns/a", obj)
        assert deletion_handling_meta_namespace_key_func(tombstone) == "ns/a"
        assert resource_version_of(tombstone) == "1"
        assert namespace_of(tombstone) == "ns"
        assert labels_of(tombstone) == labels_of(obj)


def test_meta_namespace_key_func_refuses_tombstones() -> None:
    """MetaNamespaceKeyFunc: "object has no meta"."""
    with pytest.raises(KeyFuncError, match="deletion_handling"):
        meta_namespace_key_func(DeletedFinalStateUnknown("ns/a", pod()))


def test_a_tombstone_without_an_object_has_a_key() -> None:
    tombstone = DeletedFinalStateUnknown[Any]("ns/a", None)
    assert deletion_handling_meta_namespace_key_func(tombstone) == "ns/a"
    assert key_and_version(tombstone) == ("ns/a", "no version")
    assert (tombstone.namespace, tombstone.name) == ("ns", "a")
    node = DeletedFinalStateUnknown[Any]("node-1", None)
    assert (node.namespace, node.name) == ("", "node-1")
    assert (namespace_of(tombstone), labels_of(tombstone)) == ("", {})


def test_cluster_scoped_objects_are_their_names() -> None:
    assert meta_namespace_key_func(pod_dict("node", "")) == "node"
    assert meta_namespace_key_func(Pod(Meta("node"))) == "node"
    assert meta_namespace_key_func(pod("node", "")) == "node"


class RenamedMeta(msgspec.Struct):
    id: str = msgspec.field(name="name")
    where: str = msgspec.field(name="namespace", default="")
    version: str = msgspec.field(name="resourceVersion", default="")
    tags: dict[str, str] = msgspec.field(name="labels", default_factory=dict)


class Renamed(msgspec.Struct):
    metadata: RenamedMeta


def test_a_structs_fields_are_found_by_their_names_in_json() -> None:
    obj = codec_for(Renamed).decode(pod(metadata={"labels": {"a": "b"}}).raw)
    assert meta_namespace_key_func(obj) == deletion_handling_meta_namespace_key_func(obj) == "ns/a"
    assert (namespace_of(obj), resource_version_of(obj), labels_of(obj)) == ("ns", "1", {"a": "b"})


class NameMeta(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}


class Named(msgspec.Struct):
    metadata: NameMeta


def test_structs_without_a_version_are_the_same_if_they_are_equal() -> None:
    one, equal, other = (Named(NameMeta("a", {"a": value})) for value in "112")
    assert resource_version_of(one) == ""
    assert same_version(one, equal)
    assert not same_version(one, other)
    assert not same_version(Pod(Meta("a")), Pod(Meta("a"))), (
        "of a type that has versions, of which none is known"
    )


class Amount(msgspec.Struct):
    metadata: NameMeta
    value: Any


class Unreadable:
    @property
    def metadata(self) -> Any:
        raise ValueError("metadata")


def nest(leaf: int) -> Any:
    value: Any = leaf
    for _ in range(sys.getrecursionlimit()):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Amount(NameMeta("a"), Decimal("sNaN")), Amount(NameMeta("a"), Decimal("sNaN"))),
        (Amount(NameMeta("a"), nest(1)), Amount(NameMeta("a"), nest(2))),
        (Unreadable(), Unreadable()),
    ],
    ids=["value", "depth", "model"],
)
def test_states_that_cannot_be_compared_are_not_the_same(old: Any, new: Any) -> None:
    assert not same_version(old, new)


def test_an_explicit_key_is_its_own_key() -> None:
    key = meta_namespace_key_func(ExplicitKey("ns/a"))
    assert key == "ns/a"
    assert type(key) is str


@pytest.mark.parametrize(
    "obj",
    [
        None,
        5,
        "ns/a",
        b"{}",
        {},
        {"metadata": None},
        {"metadata": {}},
        {"metadata": {"name": ""}},
        {"metadata": {"name": 5}},
        SimpleNamespace(),
        SimpleNamespace(metadata=None),
        SimpleNamespace(metadata=SimpleNamespace(name=None)),
        pod(""),
        pod("", ""),
        Pod(Meta("")),
        object,
    ],
    ids=repr,
)
def test_what_has_no_name_has_no_key(obj: Any) -> None:
    for key_func in (meta_namespace_key_func, deletion_handling_meta_namespace_key_func):
        with pytest.raises(KeyFuncError):
            key_func(obj)
    assert key_and_version(obj)[0]


def test_key_and_version_accepts_unprintable_objects() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert key_and_version(Unprintable()) == ("<Unprintable>", "no version")


def test_only_one_slash_in_a_key() -> None:
    assert split_meta_namespace_key("ns/a") == ("ns", "a")
    assert split_meta_namespace_key("a") == ("", "a")
    assert split_meta_namespace_key("") == ("", "")
    with pytest.raises(KeyFuncError, match="unexpected key format"):
        split_meta_namespace_key("a/b/c")


part = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=10)


@given(namespace=part | st.just(""), name=part)
def test_splitting_undoes_joining(namespace: str, name: str) -> None:
    for obj in (pod_dict(name, namespace), pod(name, namespace), Pod(Meta(name, namespace))):
        assert split_meta_namespace_key(meta_namespace_key_func(obj)) == (namespace, name)
