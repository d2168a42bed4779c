"""An update through a Struct keeps the fields that the Struct does not have."""

from __future__ import annotations

import copy
import pickle
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
import pytest

from aioinformer import (
    CachedResource,
    Client,
    ConfigError,
    ConflictError,
    NotFoundError,
    Resource,
    SharedInformerFactory,
)
from aioinformer.errors import AmbiguousEditError
from aioinformer.resources.merging import is_partial, with_unknown_fields
from aioinformer.testing import APIServer
from aioinformer.typed import MapOf


class Port(msgspec.Struct, omit_defaults=True):
    name: str = ""
    number: int = 0


class Spec(msgspec.Struct):
    size: int = 1
    color: str | None = None
    labels: dict[str, str] = {}
    ports: Annotated[list[Port], MapOf("name")] = []
    parts: list[str] = []
    inner: Port | None = None


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""


class Cave(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)


ORIGINAL: dict[str, Any] = {
    "metadata": {"name": "a", "resourceVersion": "7", "finalizers": ["x/y"]},
    "other": [1],
    "spec": {
        "color": "red",
        "future": {"deep": None},
        "labels": {"a": "1", "b": "2"},
        "ports": [{"name": "web", "number": 80, "future": 1}, {"name": "ssh", "number": 22, "future": 2}],
        "inner": {"number": 3, "future": 4},
    },
}
BODY = msgspec.json.encode(ORIGINAL)


def read() -> Cave:
    return msgspec.json.decode(BODY, type=Cave)


def make_expected(**spec: Any) -> dict[str, Any]:
    changed = copy.deepcopy(ORIGINAL)
    changed["spec"] |= spec
    return changed


def test_an_unchanged_object_is_sent_as_it_was() -> None:
    assert with_unknown_fields(BODY, read()) == ORIGINAL


def test_changed_and_added_fields_are_set() -> None:
    cave = read()
    cave.spec.color, cave.spec.size, cave.spec.parts = "blue", 5, ["p"]
    assert with_unknown_fields(BODY, cave) == make_expected(color="blue", size=5, parts=["p"])


def test_removed_fields_and_keys_are_removed() -> None:
    cave = read()
    cave.spec.color = None
    cave.spec.labels = {"b": "2", "c": "3"}
    wanted = make_expected(labels={"b": "2", "c": "3"})
    del wanted["spec"]["color"]
    assert with_unknown_fields(BODY, cave) == wanted


def test_items_keep_their_unknown_fields_in_any_order() -> None:
    cave = read()
    web, ssh = cave.spec.ports
    web.number = 8080
    cave.spec.ports = [Port("new", 1), ssh, web]
    assert with_unknown_fields(BODY, cave)["spec"]["ports"] == [
        {"name": "new", "number": 1},
        {"name": "ssh", "number": 22, "future": 2},
        {"name": "web", "number": 8080, "future": 1},
    ]


def test_long_lists_are_matched_in_linear_time() -> None:
    # Quadratic work would not end within the test's timeout.
    parts = [f"p{number}" for number in range(200_000)]
    body = msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"parts": parts}})
    cave = msgspec.json.decode(body, type=Cave)
    del cave.spec.parts[0]
    assert with_unknown_fields(body, cave)["spec"]["parts"] == parts[1:]


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ([2, 1], [{"number": 2, "future": 2}, {"number": 1, "future": 1}]),
        ([2], [{"number": 2, "future": 2}]),
        ([2, 9, 1], [{"number": 2, "future": 2}, {"number": 9}, {"number": 1, "future": 1}]),
    ],
    ids=["moved", "removed", "added"],
)
def test_items_without_a_name_are_matched_by_equality(
    numbers: list[int], wanted: list[dict[str, int]]
) -> None:
    ports = [{"number": 1, "future": 1}, {"number": 2, "future": 2}]
    body = msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"ports": ports}})
    cave = msgspec.json.decode(body, type=Cave)
    cave.spec.ports = [Port(number=number) for number in numbers]
    assert with_unknown_fields(body, cave)["spec"]["ports"] == wanted


def test_a_part_that_appears_or_goes_is_set_or_removed() -> None:
    cave = read()
    cave.spec.inner = None
    assert "inner" not in with_unknown_fields(BODY, cave)["spec"]
    cave = read()
    assert cave.spec.inner is not None
    cave.spec.inner.number = 0
    assert with_unknown_fields(BODY, cave)["spec"]["inner"] == {"future": 4}


class Settings(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


@pytest.fixture
async def settings() -> AsyncIterator[Resource[Settings]]:
    async with APIServer() as server, Client.from_url(server.url) as client:
        metadata = {"name": "a", "namespace": "default", "labels": {"x": "y"}}
        server.create(
            "v1", "configmaps", {"metadata": metadata, "data": {"k": "1"}, "binaryData": {"b": "AA=="}}
        )
        yield Resource(client, "configmaps", Settings)


async def test_an_update_keeps_unknown_fields(settings: Resource[Settings]) -> None:
    setting = await settings.get("default/a")
    setting.data = {"j": "2"}
    assert (await settings.update(setting)).data == {"j": "2"}
    whole = await Resource(settings._endpoint.client, "configmaps").get("default/a")
    assert whole["binaryData"] == {"b": "AA=="}
    assert whole.metadata.labels == {"x": "y"}


class Toleration(msgspec.Struct):
    key: str


class PodSpec(msgspec.Struct):
    tolerations: list[Toleration] = []


class Pod(msgspec.Struct):
    metadata: Meta
    spec: PodSpec


async def test_an_edit_that_says_too_little_is_not_written(server: APIServer) -> None:
    tolerations = [{"key": key, "operator": "Exists"} for key in "ab"]
    containers = [{"name": "a", "image": "a"}]
    pod = {
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"containers": containers, "tolerations": tolerations},
    }
    server.create("v1", "pods", pod)
    async with Client.from_url(server.url) as client:
        pods = Resource(client, "pods", Pod)
        edited = await pods.get("default/a")
        edited.spec.tolerations[0].key = "c"
        with pytest.raises(AmbiguousEditError, match=r"^update pods default/a: spec.tolerations: ") as raised:
            await pods.update(edited)
        assert raised.value.request == "update pods default/a"
        assert pickle.loads(pickle.dumps(raised.value)).request == "update pods default/a"
        assert (await pods.get("default/a")).metadata.resource_version == edited.metadata.resource_version


def test_a_model_keeps_what_it_lacks() -> None:
    pydantic = pytest.importorskip("pydantic")
    item: Any = pydantic.create_model("Item", host=(str, ...), size=(int, 1))
    spec = pydantic.create_model(
        "Spec",
        color=(str | None, None),
        items=(list.__class_getitem__(item), []),
        labels=(dict[str, str], {}),
    )
    meta = pydantic.create_model("Meta", name=(str, ...), resourceVersion=(str, ""))
    model = pydantic.create_model("Cave", metadata=(meta, ...), spec=(spec, ...))
    items = [{"host": host, "future": host} for host in "ab"]
    original = {
        "metadata": {"name": "a", "resourceVersion": "7", "finalizers": ["x/y"]},
        "spec": {"color": "red", "items": items, "future": [1], "labels": {"a": "1"}},
    }
    body = msgspec.json.encode(original)
    cave = model.model_validate_json(body)
    assert is_partial(cave)
    assert with_unknown_fields(body, cave) == original
    cave.spec.color = None
    cave.spec.items.reverse()
    cave.spec.labels["b"] = "2"
    wanted = {"items": items[::-1], "future": [1], "labels": {"a": "1", "b": "2"}}
    assert with_unknown_fields(body, cave) == {**original, "spec": wanted}
    cave.spec.items[0].host = "c"
    with pytest.raises(AmbiguousEditError, match=r"spec.items: .*\(future\)"):
        with_unknown_fields(body, cave)
    new = model(metadata=meta(name="a"), spec=spec())
    assert not is_partial(new)
    open_model = pydantic.create_model("Open", __config__={"extra": "allow"}, metadata=(meta, ...))
    assert not is_partial(open_model.model_validate_json(body))


class Backend(msgspec.Struct):
    port: int


class Peer(msgspec.Struct):
    ports: list[Backend] = []


class PolicySpec(msgspec.Struct, rename="camel"):
    ingress: list[Peer] = []
    pod_selector: dict[str, Any] | None = None


class Policy(msgspec.Struct):
    metadata: Meta
    spec: PolicySpec


async def test_an_object_that_was_read_is_not_applied_if_that_loses_fields(server: APIServer) -> None:
    peers = [{"from": [{"ipBlock": {"cidr": "10.1.1.1/32"}}], "ports": [{"port": 22, "protocol": "TCP"}]}]
    policy = {
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"podSelector": {}, "ingress": peers},
    }
    server.create("networking.k8s.io/v1", "networkpolicies", policy)
    async with Client.from_url(server.url) as client:
        policies = Resource(client, "networkpolicies", Policy, field_manager="test")
        read = await policies.get("default/a")
        with pytest.raises(
            ConfigError, match=r"would not keep spec.ingress\[\].from, which Policy lacks.*apply a new one"
        ):
            await policies.apply(read, force=True)
        assert (await policies.get("default/a")).metadata.resource_version == read.metadata.resource_version
        read.spec.ingress = []
        await policies.apply(read, force=True)
        new = Policy(Meta("b", "default"), PolicySpec([Peer([Backend(80)])], {}))
        assert (await policies.apply(new)).spec.ingress == new.spec.ingress


class CachedMeta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class CachedSettings(msgspec.Struct):
    metadata: CachedMeta
    data: dict[str, str] = {}


def without_data(obj: CachedSettings) -> CachedSettings:
    obj.data = {}
    return obj


async def test_an_update_keeps_what_the_transformer_removes(settings: Resource[Settings]) -> None:
    client = settings._endpoint.client
    async with SharedInformerFactory(client) as factory:
        informer = factory.for_resource("v1", "configmaps", CachedSettings)
        informer.set_transform(without_data)
        cached = CachedResource(Resource(client, "configmaps", CachedSettings), informer)
        read = await cached.get("default/a")
        assert read.data == {}
        read.metadata.labels = {"new": "label"}
        await cached.update(read)
        whole = await Resource(client, "configmaps").get("default/a")
        assert whole["data"] == {"k": "1"}
        assert whole.metadata.labels == {"new": "label"}


async def test_an_update_of_a_dict_keeps_what_the_transformer_removes(settings: Resource[Settings]) -> None:
    client = settings._endpoint.client
    async with SharedInformerFactory(client) as factory:
        informer = factory.for_resource("v1", "configmaps", dict)
        informer.set_transform(lambda obj: {name: obj[name] for name in obj if name != "binaryData"})
        cached = CachedResource(Resource(client, "configmaps", dict), informer)
        read = copy.deepcopy(await cached.get("default/a"))
        read["data"]["k"] = "2"
        await cached.update(read)
        whole = await Resource(client, "configmaps").get("default/a")
        assert (whole["data"], whole["binaryData"]) == ({"k": "2"}, {"b": "AA=="})


async def test_an_update_of_an_older_object_is_a_conflict(settings: Resource[Settings]) -> None:
    setting = await settings.get("default/a")
    await settings.patch("default/a", {"data": {"k": "2"}})
    with pytest.raises(ConflictError):
        await settings.update(setting)


async def test_a_partial_object_without_version_is_refused(settings: Resource[Settings]) -> None:
    with pytest.raises(
        ConfigError, match=r"Settings has only some of an object's fields, and no resourceVersion"
    ):
        await settings.update(Settings(Meta("a", "default")))


async def test_an_update_of_a_missing_object_is_not_found(settings: Resource[Settings]) -> None:
    with pytest.raises(NotFoundError):
        await settings.update(Settings(Meta("b", "default", "7")))
