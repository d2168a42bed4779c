"""An update through a Struct keeps the fields that the Struct does not have."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from aioinformer import Client, ConfigError, ConflictError, NotFoundError, Resource
from aioinformer.resources.merging import with_unknown_fields
from aioinformer.testing import APIServer


class Port(msgspec.Struct, omit_defaults=True):
    name: str = ""
    number: int = 0


class Spec(msgspec.Struct):
    size: int = 1
    color: str | None = None
    labels: dict[str, str] = {}
    ports: list[Port] = []
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


def merged(body: bytes, edited: msgspec.Struct) -> dict[str, Any]:
    return with_unknown_fields(
        msgspec.json.decode(body), msgspec.json.decode(body, type=type(edited)), edited
    )


def read() -> Cave:
    return msgspec.json.decode(BODY, type=Cave)


def expected(**spec: Any) -> dict[str, Any]:
    changed = copy.deepcopy(ORIGINAL)
    changed["spec"] |= spec
    return changed


def test_an_unchanged_object_is_sent_as_it_was() -> None:
    assert merged(BODY, read()) == ORIGINAL


def test_changed_and_added_fields_are_set() -> None:
    cave = read()
    cave.spec.color, cave.spec.size, cave.spec.parts = "blue", 5, ["p"]
    assert merged(BODY, cave) == expected(color="blue", size=5, parts=["p"])


def test_removed_fields_and_keys_are_removed() -> None:
    cave = read()
    cave.spec.color = None
    cave.spec.labels = {"b": "2", "c": "3"}
    wanted = expected(labels={"b": "2", "c": "3"})
    del wanted["spec"]["color"]
    assert merged(BODY, cave) == wanted


def test_items_keep_their_unknown_fields_in_any_order() -> None:
    cave = read()
    web, ssh = cave.spec.ports
    web.number = 8080
    cave.spec.ports = [Port("new", 1), ssh, web]
    assert merged(BODY, cave)["spec"]["ports"] == [
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
    assert merged(body, cave)["spec"]["parts"] == parts[1:]


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ([5, 2], [{"number": 5, "future": 1}, {"number": 2, "future": 2}]),
        ([2], [{"number": 2, "future": 2}]),
        ([2, 9, 1], [{"number": 2, "future": 2}, {"number": 9}, {"number": 1, "future": 1}]),
    ],
    ids=["same length", "removed", "added"],
)
def test_items_without_a_name_are_matched_by_index_or_equality(
    numbers: list[int], wanted: list[dict[str, int]]
) -> None:
    ports = [{"number": 1, "future": 1}, {"number": 2, "future": 2}]
    body = msgspec.json.encode({"metadata": {"name": "a"}, "spec": {"ports": ports}})
    cave = msgspec.json.decode(body, type=Cave)
    cave.spec.ports = [Port(number=each) for each in numbers]
    assert merged(body, cave)["spec"]["ports"] == wanted


def test_a_part_that_appears_or_goes_is_set_or_removed() -> None:
    cave = read()
    cave.spec.inner = None
    assert "inner" not in merged(BODY, cave)["spec"]
    cave = read()
    assert cave.spec.inner is not None
    cave.spec.inner.number = 0
    assert merged(BODY, cave)["spec"]["inner"] == {"future": 4}


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
    found = await settings.get("default/a")
    found.data = {"j": "2"}
    assert (await settings.update(found)).data == {"j": "2"}
    whole = await Resource(settings._endpoint.client, "configmaps").get("default/a")
    assert whole["binaryData"] == {"b": "AA=="}
    assert whole.metadata.labels == {"x": "y"}


async def test_an_update_of_an_older_object_is_a_conflict(settings: Resource[Settings]) -> None:
    found = await settings.get("default/a")
    await settings.patch("default/a", {"data": {"k": "2"}})
    with pytest.raises(ConflictError):
        await settings.update(found)


async def test_a_partial_object_without_version_is_refused(settings: Resource[Settings]) -> None:
    with pytest.raises(
        ConfigError, match=r"Settings has only some of an object's fields, and no resourceVersion"
    ):
        await settings.update(Settings(Meta("a", "default")))


async def test_an_update_of_a_missing_object_is_not_found(settings: Resource[Settings]) -> None:
    with pytest.raises(NotFoundError):
        await settings.update(Settings(Meta("b", "default", "7")))
