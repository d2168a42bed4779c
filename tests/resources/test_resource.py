"""resources/resource.py: unexpected answers, invalid arguments, and their messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from copy import copy
from typing import Any

import msgspec
import pytest

from aioinformer import ApiError, Client, ConfigError, KubeObject, Resource, TransportError
from aioinformer._core.coop import SLICE
from aioinformer.errors import DecodeError, ObjectNotFoundError

from ..client.transports import Server
from ..informer.test_factory import Body, FakeTransport
from ..virtual_time import virtual_time

Maps = Resource[KubeObject]

CONFIGMAP = {"metadata": {"name": "a", "namespace": "default"}}


def maps(server: Server, **options: Any) -> Maps:
    return Resource(Client(server), "v1", "configmaps", **options)


async def test_list_without_a_connection_names_the_request_once() -> None:
    async with Client.from_url("http://127.0.0.1:1") as client:
        with pytest.raises(TransportError) as caught:
            await Resource(client, "v1", "configmaps").list("default")
    assert str(caught.value).startswith("list configmaps in default: http://127.0.0.1:1: cannot connect")


class Named(msgspec.Struct):
    metadata: dict[str, str]
    data: dict[str, str]


class Long(FakeTransport):
    """A list in several pieces, of objects without data; it does not end."""

    async def stream(self, *args: Any, **options: Any) -> Body:
        item = b'{"metadata":{"name":"%s"}},' % (b"a" * 2000)
        return Body(self, b'{"kind":"ConfigMapList","metadata":{},"items":[' + item * 2000, ends=False)


@virtual_time
async def test_list_of_another_type_leaves_no_connection_open() -> None:
    transport = Long()
    typed = Resource(Client(transport), "v1", "configmaps", Named)
    with pytest.raises(DecodeError, match=r"^list configmaps in default: "):
        await typed.list("default")
    assert not transport.bodies


class SlowModel:
    """A model, which takes long to decode."""

    decoded = 0

    def __init__(self, metadata: object) -> None:
        self.metadata = metadata

    @classmethod
    def model_validate_json(cls, raw: bytes) -> SlowModel:
        time.sleep(SLICE)
        cls.decoded += 1
        return cls(raw)

    model_validate = model_validate_json


async def test_other_tasks_run_while_a_list_of_models_is_decoded() -> None:
    seen: set[int] = set()

    async def look() -> None:
        while True:
            seen.add(SlowModel.decoded)
            await asyncio.sleep(0)

    items = b",".join(b'{"metadata":{"name":"%d"}}' % number for number in range(10))
    page = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[' + items + b"]}"
    looking = asyncio.create_task(look())
    models = await Resource(Client(Server(then=page)), "v1", "pods", SlowModel).list()
    with suppress(asyncio.CancelledError):
        looking.cancel()
        await looking
    assert len(models) == 10
    assert seen - {0, 10}


@virtual_time
async def test_list_without_an_end_is_an_error() -> None:
    page = b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"7","continue":"same"},"items":[]}'
    server = Server(then=page)
    with pytest.raises(DecodeError, match=r"^list configmaps: the list has no end"):
        await maps(server).list()
    assert len(server.asked) == 4, "in pages, and in full"


@pytest.mark.parametrize(("namespace", "path"), [(None, "/api/v1/pods"), ("", "/api/v1/pods")])
@virtual_time
async def test_list_of_all_namespaces(namespace: str | None, path: str) -> None:
    transport = FakeTransport()
    await Resource(Client(transport), "v1", "pods").list(namespace)
    assert transport.paths() == [path]


@virtual_time
async def test_cluster_scoped_list_refuses_a_namespace() -> None:
    transport = FakeTransport()
    nodes = Resource(Client(transport), "v1", "nodes", namespaced=False)
    with pytest.raises(ConfigError, match="nodes are cluster-scoped: list them without the namespace 'red'"):
        await nodes.list("red")
    assert not transport.asked


def test_argument_order() -> None:
    with pytest.raises(ConfigError, match="not 'configmaps'; the api_version 'v1' comes first"):
        Resource(Client(Server()), "configmaps", "v1")


@virtual_time
async def test_apply_of_a_custom_resource_needs_a_kind() -> None:
    server = Server()
    with pytest.raises(ConfigError) as caught:
        await Resource(Client(server), "example.com/v1", "caves").apply(CONFIGMAP)
    assert str(caught.value) == (
        "apply caves.example.com default/a: the object's kind is missing: add it, such as "
        '"kind": "Cave", or create the resource with kind="Cave"'
    )
    assert not server.asked


@virtual_time
async def test_body_outside_json_is_not_sent() -> None:
    server = Server()
    with pytest.raises(
        ConfigError, match=r"^patch configmaps default/a: the request was not sent: Out of range float"
    ):
        await maps(server).patch("default/a", {"data": {"deleted": float("nan")}})
    assert not server.asked


Verbs = dict[str, Callable[[Maps], Coroutine[Any, Any, object]]]

VERBS: Verbs = {
    "get": lambda maps: maps.get("default/a"),
    "create": lambda maps: maps.create(CONFIGMAP),
    "update": lambda maps: maps.update(CONFIGMAP),
    "patch": lambda maps: maps.patch("default/a", {}),
    "apply": lambda maps: maps.apply(CONFIGMAP),
    "delete": lambda maps: maps.delete("default/a"),
    "ensure_finalizer": lambda maps: maps.ensure_finalizer("default/a", "example.com/f"),
    "drop_finalizer": lambda maps: maps.drop_finalizer("default/a", "example.com/f"),
    "ensure_spec_finalizer": lambda maps: maps.ensure_spec_finalizer("default/a", "example.com/f"),
    "drop_spec_finalizer": lambda maps: maps.drop_spec_finalizer("default/a", "example.com/f"),
}

ALL_VERBS: Verbs = {**VERBS, "evict": lambda maps: maps.evict("default/a")}

NO_RESOURCE = ApiError(404, "NotFound", "404 page not found")
CHECK = (
    "404 page not found; check api_version 'v1', plural 'configmaps' and whether it lives in namespaces "
    "(if not: namespaced=False, or no namespace), or create its CustomResourceDefinition"
)


@pytest.mark.parametrize("verb", VERBS)
@virtual_time
async def test_missing_resource_gives_advice(verb: str) -> None:
    """It is an ObjectNotFoundError, too: without its definition, all objects of a resource are gone."""
    with pytest.raises(ObjectNotFoundError) as caught:
        await VERBS[verb](maps(Server(then=copy(NO_RESOURCE)), kind="ConfigMap"))
    assert CHECK in str(caught.value)
    with pytest.raises(ObjectNotFoundError, match=r"resources are named by their plural, like 'pods'"):
        await VERBS[verb](Resource(Client(Server(then=copy(NO_RESOURCE))), "v1", "pod", kind="ConfigMap"))


@virtual_time
async def test_missing_subresource_gives_advice_but_missing_object_does_not() -> None:
    status = {"status": {"used": 1}}
    with pytest.raises(ObjectNotFoundError, match=r"CustomResourceDefinition with the subresource 'status'$"):
        await maps(Server(then=copy(NO_RESOURCE))).patch_status("default/a", status)
    missing = ApiError(404, "NotFound", 'configmaps "a" not found', {"name": "a", "kind": "configmaps"})
    with pytest.raises(ObjectNotFoundError, match=r'configmaps "a" not found$'):
        await maps(Server(then=missing)).patch_status("default/a", status)


@virtual_time
async def test_status_patch_must_contain_status() -> None:
    """The server accepts other fields, but ignores them."""
    server = Server()
    for strategic in (False, True):
        with pytest.raises(ConfigError, match=r'default/a: .*: \{"status": \{\.\.\.\}\}$'):
            await maps(server).patch_status("default/a", {"conditions": []}, strategic=strategic)
    assert not server.asked


ODD_ANSWERS = [
    b"",
    b"<html>",
    b"[]",
    b"{}",
    b'{"metadata":5}',
    b'{"metadata":{"name":"a","namespace":"default","finalizers":7}}',
    b'{"metadata":{"name":"a","namespace":"default","deletionGracePeriodSeconds":"x"}}',
    b'{"kind":"Namespace","metadata":{"name":"a","namespace":"default"},"spec":7}',
]


@pytest.mark.parametrize("answer", ODD_ANSWERS)
@pytest.mark.parametrize("verb", ALL_VERBS)
@virtual_time
async def test_answer_that_is_not_an_object_is_a_decode_error(verb: str, answer: bytes) -> None:
    """A proxy may answer with anything."""
    with pytest.raises(DecodeError, match=r"configmaps default/a: "):
        await ALL_VERBS[verb](maps(Server(then=answer), kind="ConfigMap"))


@virtual_time
async def test_delete_answer_that_is_not_an_object_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="delete configmaps default/a: the answer is not an object"):
        await maps(Server(then=b"<html>")).delete("default/a")


ABOUT_OTHERS = {
    "a list": b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]}',
    "another object": b'{"kind":"ConfigMap","metadata":{"name":"b","namespace":"default"}}',
    "one of another namespace": b'{"kind":"ConfigMap","metadata":{"name":"a","namespace":"other"}}',
    "a failure": b'{"kind":"Status","metadata":{},"status":"Failure","message":"no"}',
}


@pytest.mark.parametrize("answer", ABOUT_OTHERS.values(), ids=ABOUT_OTHERS)
@pytest.mark.parametrize("verb", ALL_VERBS)
@virtual_time
async def test_answer_about_another_object_is_an_error(verb: str, answer: bytes) -> None:
    """For example, after a redirected write or on a connection out of step: the result of the write is unknown."""
    with pytest.raises(DecodeError, match=r"configmaps default/a: the answer is (about|a failure)"):
        await ALL_VERBS[verb](maps(Server(then=answer), kind="ConfigMap"))


@pytest.mark.parametrize("verb", ["create", "update", "patch", "apply"])
@virtual_time
async def test_success_without_an_object_is_an_error(verb: str) -> None:
    answer = b'{"kind":"Status","metadata":{},"status":"Success"}'
    with pytest.raises(DecodeError, match="configmaps default/a: the answer is about no object"):
        await VERBS[verb](maps(Server(then=answer), kind="ConfigMap"))


@virtual_time
async def test_server_may_generate_the_name() -> None:
    wanted = {"metadata": {"generateName": "a-", "namespace": "default"}}
    made = await maps(Server(then=b'{"metadata":{"name":"a-x7","namespace":"default"}}')).create(wanted)
    assert made.key == "default/a-x7"
    with pytest.raises(DecodeError, match="about other/a-x7"):
        await maps(Server(then=b'{"metadata":{"name":"a-x7","namespace":"other"}}')).create(wanted)


class Dripping(FakeTransport):
    """Answers a byte at a time without an end: a timeout for silence never passes."""

    async def get(self, *args: Any, **options: Any) -> bytes:
        await asyncio.get_running_loop().create_future()
        raise AssertionError


@pytest.mark.parametrize("verb", ["get", "ensure_finalizer"])
@virtual_time
async def test_read_ends_at_its_timeout(verb: str) -> None:
    started = asyncio.get_running_loop().time()
    with pytest.raises(TransportError, match=r"get configmaps default/a: no answer within 3 s"):
        await VERBS[verb](Resource(Client(Dripping()), "v1", "configmaps", timeout=3.0))
    assert asyncio.get_running_loop().time() - started == 3.0
