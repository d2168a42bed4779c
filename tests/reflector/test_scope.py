"""Structs without a namespace field: objects of the same name in two namespaces are not mixed up."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
import pytest

from aioinformer import ConfigError, KubeObject, ListWatch, Reflector, SharedIndexInformer, WatchEvent
from aioinformer.objects.codec import Codec
from aioinformer.objects.keys import meta_namespace_key_func
from aioinformer.reflector.scope import (
    OneNamespaceCodec,
    codec_of_collection,
    lacks_namespace,
    namespace_read,
)
from aioinformer.store import Store

from ..virtual_time import virtual_time
from .running import NoJitter, plain_store, run_for
from .scripted import FOREVER, Scripted, added, closing_bookmark, deleted, error_event, page, raw_pod

T = TypeVar("T")


class Meta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class Narrow(msgspec.Struct):
    metadata: Meta


class FullMeta(Meta):
    namespace: str = ""


class Full(msgspec.Struct):
    metadata: FullMeta


class RenamedMeta(Meta):
    where: str = msgspec.field(name="namespace", default="")


class Renamed(msgspec.Struct):
    metadata: RenamedMeta


class Loose(msgspec.Struct):
    metadata: dict[str, Any]


class Wrapped(msgspec.Struct, Generic[T]):
    metadata: Meta
    spec: T


def make_unscoped(name: str, version: int) -> bytes:
    return b'{"metadata":{"name":"%s","resourceVersion":"%d"}}' % (name.encode(), version)


def names(store: Store[Any]) -> list[str]:
    return sorted(f"{key} {obj.metadata.resource_version}" for key in store.list_keys()
                  if (obj := store.get_by_key(key)))  # fmt: skip


@pytest.mark.parametrize(
    ("object_type", "lacks"),
    [
        (Narrow, True),
        (Renamed, False),
        (Wrapped[dict[str, Any]], True),
        (Full, False),
        (Loose, False),
        (KubeObject, False),
        (dict, False),
        (dict[str, Any], False),
        (None, False),
    ],
)
def test_types_that_lack_a_namespace_field(object_type: Any, lacks: bool) -> None:
    assert lacks_namespace(object_type) is lacks


@pytest.mark.parametrize("watch_list", [False, True])
@virtual_time
async def test_same_name_in_another_namespace_is_dropped_and_logged(
    watch_list: bool, caplog: pytest.LogCaptureFixture
) -> None:
    objects = [raw_pod("a", 1, "red"), raw_pod("b", 2, "red"), raw_pod("a", 3, "blue")]
    if watch_list:
        server = Scripted(
            [], [[[WatchEvent("ADDED", obj) for obj in objects], closing_bookmark(10), FOREVER]],
            watch_list_semantics=True,
        )  # fmt: skip
    else:
        server = Scripted([page(*objects, version=10)])
    store: Store[Narrow] = plain_store()  # type: ignore[assignment]
    subject = Reflector(server, Narrow, store, random=NoJitter())
    await run_for(subject, 5)
    assert names(store) == ["a 1", "b 2"]
    assert subject.state.rejected == 1
    assert (
        "a of namespace blue would replace the object of the same name in red: the metadata of Narrow needs a field "
        "namespace"
    ) in caplog.text


@virtual_time
async def test_object_without_a_name_is_dropped_alone() -> None:
    """The store rejects it, with a message."""
    nameless = b'{"metadata":{"namespace":"blue"}}'
    last = b'{"metadata":{"name":"b","namespace":"red","resourceVersion":"11"}},"seen":{}'
    server = Scripted(
        [page(raw_pod("a", 1, "red"), nameless, version=10)], [[WatchEvent("ADDED", last), FOREVER]]
    )
    store: Store[Narrow] = plain_store()  # type: ignore[assignment]
    subject = Reflector(server, Narrow, store)
    await run_for(subject, 5)
    assert names(store) == ["a 1", "b 11"]
    assert subject.state.rejected == 1


@virtual_time
async def test_objects_of_one_namespace_and_cluster_scoped_objects_pass() -> None:
    for first, second in ((raw_pod("a", 1, "red"), added("b", 11, namespace="red")),
                          (make_unscoped("a", 1), WatchEvent("ADDED", make_unscoped("b", 11)))):  # fmt: skip
        store: Store[Narrow] = plain_store()  # type: ignore[assignment]
        subject = Reflector(Scripted([page(first, version=10)], [[second, FOREVER]]), Narrow, store)
        await run_for(subject, 5)
        assert names(store) == ["a 1", "b 11"]
        assert subject.state.rejected == 0


@virtual_time
async def test_custom_key_function_with_namespace_is_not_checked() -> None:
    store: Store[Narrow] = Store(lambda obj: f"red/{obj.metadata.name}-{obj.metadata.resource_version}")
    server = Scripted([page(raw_pod("a", 1, "red"), raw_pod("a", 2, "blue"), version=10)])
    subject = Reflector(server, Narrow, store)
    await run_for(subject, 5)
    assert len(store) == 2


def test_informer_of_several_namespaces_refuses_such_types_at_once() -> None:
    servers = {"red": Scripted(), "blue": Scripted()}
    with pytest.raises(ConfigError, match=r"2 namespaces need a field metadata.namespace; Narrow has none"):
        SharedIndexInformer(servers, Narrow)
    SharedIndexInformer(servers, Full)


@pytest.mark.parametrize("queue", ["delta", "real"])
@virtual_time
async def test_list_of_one_namespace_deletes_missing_objects(queue: Any) -> None:
    """Even if its objects have no namespace field."""
    server = Scripted(
        [
            page(raw_pod("a", 1, "red"), raw_pod("b", 2, "red"), version=10),
            page(raw_pod("b", 2, "red"), version=20),
        ],
        [[1.0, deleted("x", 11, namespace="red"), 6.0, error_event(410, "Gone")]],
    )
    async with SharedIndexInformer({"red": server}, Narrow, queue=queue, random=NoJitter()) as subject:
        await subject.wait_synced()
        assert names(subject.store) == ["a 1", "b 2"]
        await subject.wait_for("20", timeout=60)
        assert names(subject.store) == ["b 2"]


async def test_collection_of_one_namespace_needs_no_check() -> None:
    class Confined(Scripted):
        resource = ListWatch.for_resource(_client(), "v1", "pods", "red").resource

    def codec_of(server: Scripted) -> Codec[Narrow]:
        return codec_of_collection(Narrow, server, meta_namespace_key_func)

    assert not isinstance(codec_of(Confined()), OneNamespaceCodec)
    assert isinstance(codec_of(Scripted()), OneNamespaceCodec)


def _client() -> Any:
    from aioinformer import Client

    return Client.from_url("http://127.0.0.1:1")


def test_namespace_read_is_known_if_objects_have_the_field() -> None:
    red, everywhere = (
        ListWatch.for_resource(_client(), "v1", "pods", namespace) for namespace in ("red", None)
    )
    assert namespace_read(red, KubeObject) == "red"
    assert namespace_read(red, Narrow) == namespace_read(everywhere, KubeObject) == ""
    assert namespace_read(object(), KubeObject) == ""
