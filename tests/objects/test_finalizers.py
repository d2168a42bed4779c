"""finalizers.py: pure functions on every kind of object."""

from __future__ import annotations

import copy
from typing import Any, Self

import msgspec
import pytest
from kubernetes.aio.client import V1Pod as NewPod
from kubernetes_asyncio.client import V1Pod

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    KubeObject,
    add_finalizer,
    contains_finalizer,
    remove_finalizer,
)
from aioinformer.cache import TypeMeta
from aioinformer.objects.codec import codec_for

from ..samples import (
    POD,
    LoosePod,
    Pod,
    WirePod,
    pod,
    pod_dict,
)

TYPES = [KubeObject, dict, Pod, LoosePod, V1Pod, NewPod]
MINE = "example.com/mine"


class FrozenMeta(msgspec.Struct, frozen=True):
    name: str
    finalizers: tuple[str, ...] = ()


class Frozen(msgspec.Struct, frozen=True):
    metadata: FrozenMeta


class UnsetMeta(msgspec.Struct):
    name: str
    finalizers: list[str] | msgspec.UnsetType = msgspec.UNSET


class Unset(msgspec.Struct):
    metadata: UnsetMeta


def test_a_struct_keeps_the_type_that_it_says() -> None:
    obj, _ = add_finalizer(Frozen(FrozenMeta("a")), MINE)
    assert obj.metadata.finalizers == (MINE,)
    assert remove_finalizer(obj, MINE) == (Frozen(FrozenMeta("a")), True)


class SetMeta(msgspec.Struct, frozen=True):
    name: str
    finalizers: frozenset[str] = frozenset()


class OfSet(msgspec.Struct, frozen=True):
    metadata: SetMeta


def test_a_set_of_finalizers_stays_one() -> None:
    obj, _ = add_finalizer(OfSet(SetMeta("a")), MINE)
    assert obj.metadata.finalizers == {MINE}
    assert hash(obj)


def test_a_struct_whose_finalizers_are_unset() -> None:
    obj, _ = add_finalizer(Unset(UnsetMeta("a")), MINE)
    assert obj.metadata.finalizers == [MINE]


@pytest.mark.parametrize("object_type", TYPES, ids=repr)
class TestEveryKind:
    def sample(self, object_type: type[Any], *finalizers: str) -> Any:
        metadata = {"finalizers": list(finalizers)} if finalizers else {}
        return codec_for(object_type).decode(pod(metadata=metadata, spec={"containers": []}).raw, POD)

    def test_adding_and_removing(self, object_type: type[Any]) -> None:
        before = self.sample(object_type)
        untouched = copy.deepcopy(before)
        after, changed = add_finalizer(before, MINE)
        assert changed
        assert isinstance(after, object_type)
        assert contains_finalizer(after, MINE)
        assert not contains_finalizer(before, MINE)
        back, changed = remove_finalizer(after, MINE)
        assert changed
        assert isinstance(back, object_type)
        assert not contains_finalizer(back, MINE)
        assert contains_finalizer(after, MINE)
        assert before == untouched

    def test_unchanged_object_is_returned_itself(self, object_type: type[Any]) -> None:
        without, having = self.sample(object_type), self.sample(object_type, MINE)
        assert remove_finalizer(without, MINE) == (without, False)
        assert add_finalizer(having, MINE)[0] is having
        assert add_finalizer(having, MINE)[1] is False

    def test_others_and_their_order_stay(self, object_type: type[Any]) -> None:
        obj = self.sample(object_type, "a", "b")
        obj, _ = add_finalizer(obj, MINE)
        obj, _ = remove_finalizer(obj, "a")
        expected = self.sample(object_type, "b", MINE)
        assert obj == expected


class Cave(KubeObject, frozen=True):
    """A class of one's own, which reads a field once."""

    depth: int = 0

    @classmethod
    def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Self:
        obj = super().from_bytes(raw, type_meta)
        return msgspec.structs.replace(obj, depth=obj["spec"]["depth"])


def test_subclass_is_kept() -> None:
    cave = Cave.from_dict(pod_dict(spec={"depth": 7}))
    having, _ = add_finalizer(cave, MINE)
    without, _ = remove_finalizer(having, MINE)
    assert [type(having), type(without)] == [Cave, Cave]
    assert (having.depth, without.depth) == (7, 7)


@pytest.mark.parametrize("name", ["", None, 5, "two words", "a/b/c"])
def test_bad_finalizer_name_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="the finalizer must be"):
        add_finalizer(pod(), name)


def test_an_object_from_a_list_keeps_its_kind() -> None:
    listed = KubeObject.from_bytes(pod().raw, POD)
    assert add_finalizer(listed, MINE)[0].kind == "Pod"


def test_removing_takes_every_occurrence() -> None:
    obj, _ = remove_finalizer(pod(metadata={"finalizers": [MINE, "a", MINE]}), MINE)
    assert obj.metadata.finalizers == ["a"]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"metadata": None},
        DeletedFinalStateUnknown("ns/a", pod()),
        codec_for(WirePod).decode(pod().raw),
        DeletedFinalStateUnknown("ns/a", None),
    ],
    ids=repr,
)
def test_types_without_finalizers_are_refused(wrong: Any) -> None:
    for call in (add_finalizer, remove_finalizer, contains_finalizer):
        with pytest.raises(ConfigError, match="has no finalizers"):
            call(wrong, MINE)
