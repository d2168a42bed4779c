"""store/lister.py: what users read."""

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

from ..samples import LoosePod, Meta, Pod, compressed, pod
from ..steps import running
from ..virtual_time import virtual_time

A = pod("a", "one", metadata={"labels": {"app": "x"}})
B = pod("b", "one", metadata={"labels": {"app": "y"}})
C = pod("c", "two", metadata={"labels": {"app": "x"}})
NODE = pod("node", "")


@pytest.fixture(params=[True, False], ids=["indexed", "scanned"])
def lister(request: pytest.FixtureRequest) -> Lister[KubeObject]:
    """By the namespace index, and by a scan where there is none."""
    indexers = {NAMESPACE_INDEX: meta_namespace_index_func} if request.param else {}
    indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func, indexers)
    indexer.replace([A, B, C, NODE])
    return Lister(indexer, "pods")


def test_listing(lister: Lister[KubeObject]) -> None:
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
async def test_what_is_no_selector(lister: Lister[KubeObject], selector: Any) -> None:
    for reader in (lister, lister.namespace("one")):
        with pytest.raises(ConfigError, match="a selector"):
            reader.list(selector)
        with pytest.raises(ConfigError, match="a selector"):
            await reader.list_in_turns(selector)


def test_a_name_alone_of_what_is_in_namespaces() -> None:
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


def test_an_object_is_no_name(lister: Lister[KubeObject]) -> None:
    for reader in (lister, lister.namespace("one")):
        with pytest.raises(ConfigError, match="name must be a string"):
            reader.get(A)  # type: ignore[arg-type]


def test_none_is_no_namespace(lister: Lister[KubeObject]) -> None:
    """It would be all of them."""
    with pytest.raises(ConfigError, match="namespace must be a string, not None"):
        lister.namespace(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [b'["app"]', b'{"app":["x"]}', b'{"app":7}', b"1e999"])
def test_an_object_whose_labels_are_none_hides_no_other(lister: Lister[KubeObject], labels: bytes) -> None:
    odd = KubeObject.from_bytes(
        b'{"metadata":{"name":"odd","namespace":"one","labels":%s,"creationTimestamp":"yesterday"}}' % labels
    )
    lister._indexer.add(odd)
    assert lister.list("app=x") == [A, C]
    assert odd not in lister.list("app>1")
    assert any(each is odd for each in lister.list("!app"))


def test_the_list_is_the_readers_own(lister: Lister[KubeObject]) -> None:
    lister.list().clear()
    lister.namespace("one").list().clear()
    assert lister.list() == [A, B, C, NODE]
    assert lister.namespace("one").list() == [A, B]


def test_getting(lister: Lister[KubeObject]) -> None:
    assert lister.get("one/a") is A
    assert lister.get("node") is NODE
    for missing in ("a", "one/c", "", "/", "one/", "a/b/c"):
        with pytest.raises(NotFoundError, match=f"pods '{missing}' not found"):
            lister.get(missing)


def test_one_namespace(lister: Lister[KubeObject]) -> None:
    one = lister.namespace(ns="one")
    assert one.list() == [A, B]
    assert one.list("app=x") == [A]
    assert one.get("a") is A
    with pytest.raises(NotFoundError) as caught:
        one.get("c")
    assert caught.value.key == "one/c"
    assert lister.namespace("none").list() == []


def test_the_empty_namespace_is_all_of_them(lister: Lister[KubeObject]) -> None:
    """client-go's NamespaceAll."""
    assert lister.namespace("").list("app=x") == [A, C]
    assert lister.namespace("").get("node") is NODE


def test_a_lister_follows_its_indexer() -> None:
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
        compressed(A),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_every_kind_of_object(obj: Any) -> None:
    indexer: Indexer[Any] = Indexer(meta_namespace_key_func, {NAMESPACE_INDEX: meta_namespace_index_func})
    indexer.add(obj)
    assert Lister(indexer).list("app=x") == [obj]
    assert Lister(indexer).namespace("one").list("app!=x") == []
    assert Lister(indexer).namespace("one").get("a") is obj


@virtual_time
async def test_listing_in_turns() -> None:
    indexer: Indexer[KubeObject] = Indexer(meta_namespace_key_func)
    objects = [pod(str(n), f"ns-{n % 2}", metadata={"labels": {"n": str(n % 3)}}) for n in range(20_000)]
    indexer.replace(objects)
    lister = Lister(indexer)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            indexer.delete(objects[rounds])  # what was there at the call is listed
            await asyncio.sleep(0)

    everything, by_label = lister.list(), lister.list("n=1")
    of_one, by_predicate = lister.namespace("ns-1").list("n=1"), lister.list(lambda obj: obj.name == "7")
    async with running(count()):
        assert await lister.list_in_turns() == everything
        assert await lister.list_in_turns("n=1") == by_label
        assert rounds > 2
    indexer.replace(objects)
    assert await lister.namespace("ns-1").list_in_turns("n=1") == of_one
    assert await lister.list_in_turns(lambda obj: obj.name == "7") == by_predicate
    with pytest.raises(SelectorError):
        await lister.list_in_turns("n in")


def test_type_checkers_know_what_a_predicate_is_asked_about(lister: Lister[KubeObject]) -> None:
    """By the comments: mypy complains of one that is not needed."""

    def of_anything(obj: object) -> bool:
        return obj is A

    def of_others(obj: Pod) -> bool:
        return True

    assert lister.list(of_anything) == lister.namespace("one").list(lambda obj: obj.name == "a") == [A]
    lister.list(of_others)  # type: ignore[arg-type]
    lister.namespace("one").list(of_others)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        lister.list(lambda obj: obj.mispelt)  # type: ignore[attr-defined]
