"""store/lister.py: the read access for users."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    Indexer,
    KubeObject,
    LabelSelector,
    Lister,
    NotFoundError,
    meta_namespace_key_func,
)
from aioinformer.cache import NAMESPACE_INDEX, meta_namespace_index_func
from aioinformer.errors import SelectorError

from ..samples import LoosePod, Meta, Pod, compress_object, pod
from ..steps import run_during
from ..virtual_time import virtual_time

A = pod("a", "one", metadata={"labels": {"app": "x"}})
B = pod("b", "one", metadata={"labels": {"app": "y"}})
C = pod("c", "two", metadata={"labels": {"app": "x"}})
NODE = pod("node", "")


@pytest.fixture(params=[True, False], ids=["indexed", "scanned"])
def lister(request: pytest.FixtureRequest) -> Lister[KubeObject]:
    """With the namespace index, and with a scan instead."""
    indexers = {NAMESPACE_INDEX: meta_namespace_index_func} if request.param else {}
    indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func, indexers)
    indexer.replace([A, B, C, NODE])
    return Lister(indexer, "pods")


def test_list_by_selector(lister: Lister[KubeObject]) -> None:
    assert lister.list() == [A, B, C, NODE]
    assert lister.list("") == [A, B, C, NODE]
    assert lister.list("app=x") == [A, C]
    assert lister.list("!app") == [NODE]
    assert lister.list(LabelSelector.parse("app=y")) == [B]
    assert lister.list({"app": "x"}) == lister.namespace("").list({"app": "x"}) == [A, C]
    assert lister.list({"app": "x", "tier": "front"}) == []
    assert lister.list({}) == [A, B, C, NODE]
    assert lister.list({"matchLabels": {"app": "x"}}) == [A, C]
    assert lister.list({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}) == [NODE]
    assert lister.list(LabelSelector()) == [A, B, C, NODE]
    assert lister.list(lambda obj: obj.name > "b") == [C, NODE]
    with pytest.raises(SelectorError):
        lister.list("app in")


async def unready(obj: Any) -> bool:
    return False


@pytest.mark.parametrize("selector", [0, ["app"], {"app": ["x"]}, {"app": None}, unready])
async def test_invalid_selector_is_refused(lister: Lister[KubeObject], selector: Any) -> None:
    for reader in (lister, lister.namespace("one")):
        with pytest.raises(ConfigError, match="a selector"):
            reader.list(selector)
        with pytest.raises(ConfigError, match="a selector"):
            await reader.list_in_turns(selector)


def test_not_found_error_suggests_a_key_with_namespace() -> None:
    indexer: Indexer[KubeObject] = Indexer(
        meta_namespace_key_func, {NAMESPACE_INDEX: meta_namespace_index_func}
    )
    for stored, expected in (
        (A, "pods 'a' not found: these objects have a namespace: use a key such as 'default/a'"),
        (NODE, "pods 'a' not found"),
    ):
        indexer.replace([stored])
        with pytest.raises(NotFoundError) as caught:
            Lister(indexer, "pods").get("a")
        assert str(caught.value) == expected


def test_get_refuses_an_object(lister: Lister[KubeObject]) -> None:
    for reader in (lister, lister.namespace("one")):
        with pytest.raises(ConfigError, match="name must be a string"):
            reader.get(A)  # type: ignore[arg-type]


def test_namespace_refuses_none(lister: Lister[KubeObject]) -> None:
    """None would mean all namespaces."""
    with pytest.raises(ConfigError, match="namespace must be a string, not None"):
        lister.namespace(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [b'["app"]', b'{"app":["x"]}', b'{"app":7}', b"1e999"])
def test_object_with_invalid_labels_does_not_hide_others(lister: Lister[KubeObject], labels: bytes) -> None:
    odd = KubeObject.from_bytes(
        b'{"metadata":{"name":"odd","namespace":"one","labels":%s,"creationTimestamp":"yesterday"}}' % labels
    )
    lister._indexer.add(odd)
    assert lister.list("app=x") == [A, C]
    assert odd not in lister.list("app>1")
    assert any(obj is odd for obj in lister.list("!app"))


def test_lists_are_copies(lister: Lister[KubeObject]) -> None:
    lister.list().clear()
    lister.namespace("one").list().clear()
    assert lister.list() == [A, B, C, NODE]
    assert lister.namespace("one").list() == [A, B]


def test_get_by_key(lister: Lister[KubeObject]) -> None:
    assert lister.get("one/a") is A
    assert lister.get("node") is NODE
    for missing in ("a", "one/c", "", "/", "one/", "a/b/c"):
        with pytest.raises(NotFoundError, match=f"pods '{missing}' not found"):
            lister.get(missing)


def test_namespace_lister(lister: Lister[KubeObject]) -> None:
    one = lister.namespace(ns="one")
    assert one.list() == [A, B]
    assert one.list("app=x") == [A]
    assert one.get("a") is A
    with pytest.raises(NotFoundError) as caught:
        one.get("c")
    assert caught.value.key == "one/c"
    assert lister.namespace("none").list() == []


def test_empty_namespace_means_all(lister: Lister[KubeObject]) -> None:
    """client-go's NamespaceAll."""
    assert lister.namespace("").list("app=x") == [A, C]
    assert lister.namespace("").get("node") is NODE


def test_lister_reads_the_live_indexer() -> None:
    indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func)
    lister = Lister(indexer)
    one = lister.namespace("one")
    indexer.add(A)
    assert lister.list() == one.list() == [A]


@pytest.mark.parametrize(
    "obj",
    [
        A.to_dict(),
        A.decode(Pod),
        A.decode(LoosePod),
        Pod(Meta("a", "one", labels={"app": "x"})),
        A,
        compress_object(A),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_lister_supports_every_object_type(obj: Any) -> None:
    indexer: Indexer[Any] = Indexer(meta_namespace_key_func, {NAMESPACE_INDEX: meta_namespace_index_func})
    indexer.add(obj)
    assert Lister(indexer).list("app=x") == [obj]
    assert Lister(indexer).namespace("one").list("app!=x") == []
    assert Lister(indexer).namespace("one").get("a") is obj


@virtual_time
async def test_list_in_turns_lets_other_tasks_run() -> None:
    indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func)
    objects = [pod(str(n), f"ns-{n % 2}", metadata={"labels": {"n": str(n % 3)}}) for n in range(20_000)]
    indexer.replace(objects)
    lister = Lister(indexer)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            indexer.delete(objects[rounds])  # the list is a snapshot of the call
            await asyncio.sleep(0)

    everything, by_label = lister.list(), lister.list("n=1")
    of_one, by_predicate = lister.namespace("ns-1").list("n=1"), lister.list(lambda obj: obj.name == "7")
    async with run_during(count()):
        assert await lister.list_in_turns() == everything
        assert await lister.list_in_turns("n=1") == by_label
        assert rounds > 2
    indexer.replace(objects)
    assert await lister.namespace("ns-1").list_in_turns("n=1") == of_one
    assert await lister.list_in_turns(lambda obj: obj.name == "7") == by_predicate
    with pytest.raises(SelectorError):
        await lister.list_in_turns("n in")


def test_predicates_are_type_checked(lister: Lister[KubeObject]) -> None:
    """mypy reports each ``type: ignore`` below that is not needed."""

    def of_anything(obj: object) -> bool:
        return obj is A

    def of_others(obj: Pod) -> bool:
        return True

    assert lister.list(of_anything) == lister.namespace("one").list(lambda obj: obj.name == "a") == [A]
    lister.list(of_others)  # type: ignore[arg-type]
    lister.namespace("one").list(of_others)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        lister.list(lambda obj: obj.mispelt)  # type: ignore[attr-defined]
