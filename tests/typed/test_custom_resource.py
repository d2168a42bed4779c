"""CustomResource classes: metadata, conditions, and reconcilers on them."""

from __future__ import annotations

import asyncio
import copy
import pickle
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest

from aioinformer import (
    Client,
    ConfigError,
    KubeObject,
    Resource,
    add_finalizer,
    find_status_condition,
    is_status_condition_true,
    remove_finalizer,
    remove_status_condition,
    set_status_condition,
)
from aioinformer.operator import Controller, GenerationChanged, Manager, Request, owner_reference
from aioinformer.testing import APIServer, eventually
from aioinformer.typed import CamelStruct, Condition, CustomResource, MapOf, Metadata, crd


class SiteStatus(CamelStruct, kw_only=True):
    pages: int = 0
    conditions: Annotated[list[Condition], MapOf("type")] = []


class Site(CustomResource, group="sites.example.com", version="v1"):
    spec: dict[str, Any] = {}
    status: SiteStatus | None = None


NOW = datetime(2026, 1, 1, tzinfo=UTC)

JSON: dict[str, Any] = {
    "apiVersion": "sites.example.com/v1",
    "kind": "Site",
    "metadata": {
        "name": "a",
        "namespace": "b",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "labels": {"x": "y"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "q", "controller": True}],
        "managedFields": [{}],
    },
    "spec": {"x": 1},
}


def site() -> Site:
    return msgspec.convert(JSON, Site)


def test_metadata_is_typed() -> None:
    obj = site()
    assert (obj.key, obj.name, obj.namespace) == ("b/a", "a", "b")
    assert obj.metadata.creation_timestamp == NOW
    assert obj.metadata.owner_references[0].controller
    assert KubeObject.from_dict(JSON).decode(Site) == obj
    assert pickle.loads(pickle.dumps(obj)) == copy.deepcopy(obj) == obj


def test_a_new_object_has_its_type_and_no_empty_metadata() -> None:
    made = msgspec.to_builtins(Site({"x": 1}, metadata=Metadata(name="a")))
    assert (made["apiVersion"], made["kind"]) == ("sites.example.com/v1", "Site")
    assert made["metadata"] == {"name": "a"}


def test_helpers_take_it() -> None:
    obj, changed = add_finalizer(site(), "example.com/a")
    assert changed
    assert obj.metadata.finalizers == ["example.com/a"]
    assert remove_finalizer(obj, "example.com/a")[0] == site()
    assert owner_reference(obj)["kind"] == "Site"


def test_conditions_of_a_class() -> None:
    obj, changed = set_status_condition(site(), "Ready", "True", "Done", now=NOW)
    assert changed
    ready = Condition(
        type="Ready", status="True", reason="Done", last_transition_time=NOW, observed_generation=2
    )
    assert obj.status == SiteStatus(conditions=[ready])
    assert set_status_condition(obj, "Ready", "True", "Done") == (obj, False)
    assert is_status_condition_true(obj, "Ready")
    assert find_status_condition(obj, "Other") is None
    removed, _ = remove_status_condition(obj, "Ready")
    assert removed.status == SiteStatus()
    with pytest.raises(ConfigError, match=r"status of a Plain has no conditions: give its class `conditions"):
        set_status_condition(Plain(Metadata()), "Ready", "True", "Done")


@pytest.mark.parametrize("pages", [1, "a transformer's text"])
async def test_a_reconciler_cannot_change_the_cache(pages: Any) -> None:
    done = asyncio.Event()

    def transform(site: Site) -> Site:
        site.status = SiteStatus(pages=pages)
        return site

    async with APIServer() as server, Client.from_url(server.url) as client:
        await Resource(client, "crds").create(crd(Site))
        await Resource(client, Site).create(Site({"x": 1}, metadata=Metadata(name="a", namespace="default")))
        manager = Manager(client)
        informer = manager.for_resource(Site)
        informer.set_transform(transform)

        async def reconcile(request: Request[Site]) -> None:
            assert request.object is not None
            assert request.object == informer.lister.get("default/a")
            request.object.spec["x"] = 2
            request.object.metadata.labels["y"] = "z"
            done.set()

        manager.add(Controller("sites", reconcile, informer))
        async with manager:
            await done.wait()
            cached = informer.lister.get("default/a")
    assert (cached.spec, cached.metadata.labels) == ({"x": 1}, {})


def test_a_condition_is_described_for_readers_of_the_definition() -> None:
    schema = crd(Site)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    condition = schema["properties"]["status"]["properties"]["conditions"]["items"]
    texts = [condition["description"], *(prop["description"] for prop in condition["properties"].values())]
    assert len(texts) == 7
    assert not [text for text in texts if "`" in text or "MapOf" in text]


class Plain(msgspec.Struct):
    metadata: Metadata


def test_misspelt_class_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="shortnames"):

        class Wrong(CustomResource, shortnames=("w",)):  # pyright: ignore[reportArgumentType]
            pass


async def test_a_controller_reconciles_objects_of_the_class() -> None:
    events: list[str] = []
    async with APIServer() as server, Client.from_url(server.url) as client:
        await Resource(client, "crds").create(crd(Site))
        manager = Manager(client)
        sites, maps = manager.resource(Site), manager.resource("cm")

        async def reconcile(request: Request[Site]) -> None:
            obj = request.object
            assert obj is not None
            metadata = {
                "name": obj.name,
                "namespace": obj.namespace,
                "ownerReferences": [owner_reference(obj)],
            }
            await maps.apply({"metadata": metadata, "data": {"x": str(obj.spec["x"])}})
            obj, changed = set_status_condition(obj, "Ready", "True", "Done")
            if changed:
                await sites.update_status(obj)

        async def clean_up(request: Request[Site]) -> None:
            events.append(f"removed {request.key}")

        manager.add(
            Controller(
                "sites", reconcile, sites, predicate=GenerationChanged(), owns=[maps],
                finalizer="example.com/a", cleanup=clean_up,
            )
        )  # fmt: skip
        async with manager:
            created = await sites.create(Site({"x": 1}, metadata=Metadata(name="a", namespace="default")))
            await eventually(
                lambda: is_status_condition_true(sites.informer.lister.get("default/a"), "Ready")
            )
            assert (await maps.get(created.key))["data"] == {"x": "1"}
            await sites.delete(created.key)
            await eventually(lambda: events == ["removed default/a"])
