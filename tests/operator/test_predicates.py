"""operator/predicates.py: which changes pass, for every type of object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubernetes_asyncio.client.models import V1Pod

from aioinformer import Client, ConfigError, KubeObject
from aioinformer.errors import SelectorError
from aioinformer.objects.codec import codec_for
from aioinformer.objects.keys import labels_of
from aioinformer.operator import (
    AnnotationsChanged,
    Change,
    Controller,
    Deleting,
    FieldsChanged,
    FinalizersChanged,
    GenerationChanged,
    LabelsChanged,
    LabelsMatch,
    Manager,
    Owns,
    Predicate,
    Request,
    Watch,
    When,
)


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class Cave(msgspec.Struct):
    metadata: Meta
    spec: dict[str, Any] = {}


def as_dict(fields: dict[str, Any]) -> Any:
    return fields


def as_struct(fields: dict[str, Any]) -> Any:
    return msgspec.convert(fields, Cave)


KINDS = [KubeObject.from_dict, as_dict, as_struct]

versions = iter(range(1, 10**6))


def cave(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "resourceVersion": str(next(versions)), **metadata}, "spec": spec or {}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("predicate", "old", "new", "passes"),
    [
        (GenerationChanged(), {"generation": 1}, {"generation": 2}, True),
        (GenerationChanged(), {"generation": 2}, {"generation": 2, "labels": {"a": "b"}}, False),
        (GenerationChanged(), {}, {}, True),  # a kind without a generation
        (LabelsChanged(), {"labels": {"a": "b"}}, {"labels": {"a": "c"}}, True),
        (LabelsChanged(), {"labels": {"a": "b"}}, {"labels": {"a": "b"}, "generation": 2}, False),
        (LabelsChanged(), {}, {"labels": {}}, False),
        (AnnotationsChanged(), {}, {"annotations": {"a": "b"}}, True),
        (AnnotationsChanged(), {"annotations": {}}, {}, False),
        (FinalizersChanged(), {"finalizers": ["a/b"]}, {"finalizers": ["a/b", "a/c"]}, True),
        (FinalizersChanged(), {"finalizers": ["a/b"]}, {"finalizers": ["a/b"]}, False),
        (Deleting(), {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        (Deleting(), {}, {}, False),
        (LabelsMatch("app=web"), {}, {"labels": {"app": "web"}}, True),
        (LabelsMatch("app=web"), {"labels": {"app": "web"}}, {}, True),
        (LabelsMatch("app=web"), {"labels": {"app": "db"}}, {}, False),
    ],
)
def test_metadata_predicates(kind: Any, predicate: Predicate, old: Any, new: Any, passes: bool) -> None:
    assert predicate(Change(kind(cave(**old)), kind(cave(**new)))) is passes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("paths", "old", "new", "passes"),
    [
        (["spec.size"], {"size": 1}, {"size": 2}, True),
        (["spec.size"], {"size": 1}, {"size": 1, "name": "x"}, False),
        (["spec.size"], {}, {"size": 1}, True),
        (["spec.size", "spec.name"], {"name": "x"}, {"name": "y"}, True),
        (["spec.parts[1].image"], {"parts": [{}, {"image": "a"}]}, {"parts": [{}, {"image": "b"}]}, True),
        (["spec.parts[1].image"], {"parts": [{"image": "a"}]}, {"parts": [{"image": "b"}]}, False),
        (["spec.parts[*].image"], {"parts": [{}, {"image": "a"}]}, {"parts": [{"image": "b"}]}, True),
        (["spec.parts[*].image"], {"parts": [{"image": "a"}, {}]}, {"parts": [{}, {"image": "a"}]}, True),
        (["spec.parts[*].image"], {"parts": [{"image": "a"}]}, {"parts": [{"image": "a", "x": 1}]}, False),
        (
            ["spec.parts[*].a[*]"],
            {"parts": [{"a": [1, 2]}, {"a": [3]}]},
            {"parts": [{"a": [1]}, {"a": [2, 3]}]},
            True,
        ),
        (["spec.parts.x.image"], {"parts": [{"image": "a"}]}, {"parts": [{"image": "b"}]}, False),
        (["spec.size.deep"], {"size": 1}, {"size": 2}, False),
        (["spec"], {"size": 1}, {"size": 2}, True),
        (["spec.size"], {"size": 1}, {"size": True}, True),  # equal in Python
        (["spec.size"], {"size": False}, {"size": 0}, True),
        (["spec.size"], {"size": True}, {"size": True}, False),
    ],
)
def test_fields_changed(kind: Any, paths: list[str], old: Any, new: Any, passes: bool) -> None:
    assert FieldsChanged(*paths)(Change(kind(cave(old)), kind(cave(new)))) is passes


def test_fields_of_a_model_have_their_json_names() -> None:
    decode = codec_for(V1Pod).decode
    red, blue = (
        decode(b'{"metadata":{},"spec":{"containers":[],"nodeName":"%s"}}' % node)
        for node in (b"red", b"blue")
    )
    assert FieldsChanged("spec.nodeName")(Change(red, blue))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "predicate", [GenerationChanged(), LabelsChanged(), FieldsChanged("spec.size"), FinalizersChanged()]
)
def test_update_predicates_pass_additions_deletions_and_resyncs(kind: Any, predicate: Predicate) -> None:
    obj = kind(cave(generation=1))
    assert predicate(Change(None, obj, True))
    assert predicate(Change(obj, None))
    assert predicate(Change(obj, obj)), "a resync always passes"


@pytest.mark.parametrize("kind", [KubeObject.from_dict, as_dict])
@pytest.mark.parametrize(
    "predicate", [GenerationChanged(), LabelsChanged(), FieldsChanged("spec.size"), FinalizersChanged()]
)
def test_recreated_object_passes_update_predicates(kind: Any, predicate: Predicate) -> None:
    old, same, other = (kind(cave(generation=1, uid=uid)) for uid in ("u", "u", "v"))
    assert not predicate(Change(old, same))
    assert predicate(Change(old, other))


def test_properties_of_a_change() -> None:
    old, new = cave(), cave()
    assert Change(None, new).obj is Change(old, new).obj is new
    assert Change(old, None).obj is old
    assert [Change(None, new).is_update, Change(old, None).is_update, Change(old, new).is_update] == [
        *(False, False, True)
    ]
    assert [Change(None, new).states, Change(old, None).states, Change(old, new).states] == [
        *([new], [old], [old, new])
    ]
    assert Change(old, old).states == [old]
    assert [Change(None, new).is_sync, Change(old, old).is_sync, Change(old, new).is_sync] == [
        *(False, True, False)
    ]


def test_combined_predicates() -> None:
    same = {"generation": 1}
    relabelled = Change(cave(**same), cave(**same, labels={"a": "b"}))
    changed = Change(cave(generation=1), cave(generation=2))
    either = GenerationChanged() | LabelsChanged()
    both = GenerationChanged() & LabelsChanged()
    assert [either(relabelled), both(relabelled), (~both)(relabelled)] == [True, False, True]
    assert [either(changed), both(changed)] == [True, False]
    by_name = both | (lambda change: labels_of(change.new) == {})
    assert by_name(changed)
    assert ((lambda change: False) | GenerationChanged())(changed)
    assert not ((lambda change: False) & GenerationChanged())(changed)
    assert repr(either) == "(GenerationChanged() | LabelsChanged())"
    assert repr(~FieldsChanged("spec.a", "spec.b")) == "~FieldsChanged('spec.a', 'spec.b')"
    assert repr(LabelsMatch("a=b") & Deleting()) == "(LabelsMatch('a=b') & Deleting())"


async def coroutine(change: object) -> bool:
    return True


@pytest.mark.parametrize("function", [coroutine, None, "x", GenerationChanged, lambda old, new: False])
def test_invalid_predicates_are_refused(function: Any) -> None:
    with pytest.raises(ConfigError):
        When(function)
    with pytest.raises(ConfigError):
        _ = GenerationChanged() & function
    with pytest.raises(ConfigError):
        _ = GenerationChanged() | function


def test_invalid_paths_and_selectors_are_refused() -> None:
    nonsense: list[Any] = [(), ("",), ("spec..size",), ("spec.parts.1.image",), ("spec.node_name",)]
    for paths in nonsense:
        with pytest.raises(ConfigError, match="path"):
            FieldsChanged(*paths)
    with pytest.raises(SelectorError):
        LabelsMatch("app in")


def test_type_checkers_know_the_object_of_a_change() -> None:
    """Checked by comments: mypy reports an unneeded ``type: ignore``."""

    def reconcile(request: Request[Cave]) -> None: ...

    def of_caves(change: Change[Cave]) -> bool:
        return change.new is not None and change.new.metadata.generation > 1

    def of_others(change: Change[KubeObject]) -> bool:
        return change.new is not None and change.new["spec"] == {}

    def of_anything(change: Change[object]) -> bool:
        return change.is_update

    manager = Manager(Client.from_url("http://127.0.0.1:1"))
    caves = manager.resource("example.com/v1", "caves", Cave)
    maps = manager.for_resource("v1", "configmaps")
    for predicate in (of_caves, of_anything, GenerationChanged(), GenerationChanged() & of_caves):
        Controller("x", reconcile, caves, predicate=predicate)
    Controller("x", reconcile, caves, predicate=lambda change: change.obj is not None)
    Controller("x", reconcile, caves, predicate=of_others)  # type: ignore[arg-type]
    Controller("x", reconcile, caves, predicate=lambda change: change.new.mispelt)  # type: ignore[union-attr]
    Controller("x", reconcile, caves, owns=[Owns(maps, of_others)])
    Controller("x", reconcile, caves, owns=[Owns(maps, of_caves)])  # type: ignore[arg-type]
    Controller("x", reconcile, caves, watches=[Watch(caves, print, of_others)])  # type: ignore[arg-type]
    Controller("x", reconcile, caves, watches=[Watch(caves, lambda cave: cave.name)])  # type: ignore[attr-defined]
