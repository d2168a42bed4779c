"""CustomResourceDefinitions: validation, names, status, and the served resources."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, ResourceType, StatusError
from tests.testing.client import APIClient

CRDS = "apiextensions.k8s.io/v1", "customresourcedefinitions"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {"openAPIV3Schema": {"type": "object"}}


def version(name: str, **content: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": False, "schema": SCHEMA, **content}


V1 = version("v1", storage=True)


def definition(plural: str = "caves", kind: str = "Cave", **spec: Any) -> dict[str, Any]:
    names = {"plural": plural, "kind": kind, **spec.pop("names", {})}
    wanted = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [V1], **spec}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": wanted}


def conditions(server: APIServer, name: str) -> dict[str, tuple[str, str]]:
    status = server.get(*CRDS, f"{name}.example.com")["status"]
    return {
        condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]
    }


def test_versions_that_were_stored_stay() -> None:
    server = APIServer()
    server.create(*CRDS, definition())
    v1, v2 = version("v1"), version("v2", storage=True)
    changed = server.patch(*CRDS, "caves.example.com", {"spec": {"versions": [v1, v2]}})
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    with pytest.raises(
        StatusError, match=r'status.storedVersions\[0\]: Invalid value: "v1": missing from spec'
    ):
        server.patch(*CRDS, "caves.example.com", {"spec": {"versions": [v2]}})
    with pytest.raises(StatusError, match="must have at least one stored version"):
        server.patch(*CRDS, "caves.example.com", {"spec": {"versions": []}, "status": {"storedVersions": []}})
    server.patch(*CRDS, "caves.example.com", {"status": {"storedVersions": ["v2"]}})
    server.patch(*CRDS, "caves.example.com", {"spec": {"versions": [v2]}})


def test_conflicting_new_name_keeps_the_served_names() -> None:
    server = APIServer()
    server.create(*CRDS, definition(names={"shortNames": ["cv"]}))
    server.create(*CRDS, definition("holes", kind="Hole", names={"shortNames": ["h"]}))
    server.patch(
        *CRDS, "holes.example.com", {"spec": {"names": {"shortNames": ["cv"], "categories": ["all"]}}}
    )
    assert conditions(server, "holes") == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    holes = server.resource("example.com/v1", "holes")
    assert (holes.short_names, holes.categories) == (("h",), ("all",))
    server.patch(*CRDS, "caves.example.com", {"spec": {"names": {"shortNames": None}}})
    assert server.resource("example.com/v1", "holes").short_names == ("cv",)
    assert server.resource("example.com/v1", "caves").short_names == ()


def test_clients_cannot_set_the_status() -> None:
    server = APIServer()
    settled = {"type": "Established", "status": "True"}
    server.create(*CRDS, {**definition(), "status": {"conditions": [settled], "storedVersions": ["v7"]}})
    assert conditions(server, "caves")["NamesAccepted"] == ("True", "NoConflicts")
    server.update(*CRDS, definition(names={"shortNames": ["cv"]}))  # without its status
    assert server.resource("example.com/v1", "caves").short_names == ("cv",)
    server.patch(*CRDS, "caves.example.com", {"status": {"conditions": [{}, settled], "acceptedNames": None}})
    assert server.get(*CRDS, "caves.example.com")["status"]["acceptedNames"]["kind"] == "Cave"


async def test_a_custom_resource(api: APIClient, server: APIServer) -> None:
    caves = "/apis/example.com/v1/namespaces/default/caves"
    assert (await api.get(caves)).status == 404
    assert (await api.post(PATH, definition())).status == 201
    cave = {"metadata": {"name": "deep"}, "spec": {"depth": 7}}
    assert "Object 'Kind' is missing" in (await api.post(caves, cave)).body["message"]
    assert (await api.post(caves, {**cave, "kind": "Cave"})).body["message"] == (
        "the API version in the data () does not match the expected API version (example.com/v1)"
    )
    assert (await api.post(caves, {**cave, "kind": "Cave", "apiVersion": "example.com/v1"})).status == 201
    listed = await api.get(caves)
    current = str(server.resource_version)
    assert listed.raw.startswith(
        b'{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Cave","m'
    )
    assert listed.raw.endswith(
        b'],"kind":"CaveList","metadata":{"continue":"","resourceVersion":"' + current.encode() + b'"}}\n'
    )
    async with api.watch(caves, resourceVersion=current) as lines:
        assert (await api.delete(f"{PATH}/caves.example.com")).status == 200
        assert [event["type"] for event in await lines.rest()] == ["DELETED"]
    assert (await api.get(caves)).status == 404


async def test_a_version_that_is_no_longer_served(api: APIClient, server: APIServer) -> None:
    v1, v2 = version("v1"), version("v2", storage=True)
    server.create(*CRDS, definition(scope="Cluster", versions=[v1, v2]))
    cave = {"apiVersion": "example.com/v1", "kind": "Cave", "metadata": {"name": "deep"}}
    assert (await api.post("/apis/example.com/v1/caves", cave)).status == 201
    current = str(server.resource_version)
    async with (
        api.watch("/apis/example.com/v1/caves", resourceVersion=current) as old,
        api.watch("/apis/example.com/v2/caves", resourceVersion=current) as new,
    ):
        server.patch(*CRDS, "caves.example.com", {"spec": {"versions": [{**v1, "served": False}, v2]}})
        assert (await old.rest(), await new.rest()) == ([], [])
    for path in ("/apis/example.com/v1", "/apis/example.com/v1/caves"):
        assert (await api.get(path)).status == 404
    assert (await api.post("/apis/example.com/v1/caves", cave)).status == 404
    assert [served["version"] for served in (await api.get("/apis/example.com")).body["versions"]] == ["v2"]
    assert len((await api.get("/apis/example.com/v2/caves")).body["items"]) == 1
    async with api.watch("/apis/example.com/v2/caves", resourceVersion=current) as late:
        assert (await late.next())["object"]["reason"] == "Expired"


async def test_a_resource_without_a_definition(api: APIClient, server: APIServer) -> None:
    server.register(ResourceType("example.com", "v1", "caves", "Cave", namespaced=False))
    server.create("example.com/v1", "caves", {"metadata": {"name": "deep"}})
    assert (await api.get("/apis/example.com/v1/caves/deep")).body["kind"] == "Cave"


async def test_a_custom_resource_is_scaled_where_its_definition_says(api: APIClient) -> None:
    paths = {
        "specReplicasPath": ".spec.crew.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {**V1, "schema": {"openAPIV3Schema": anything}, "subresources": {"status": {}, "scale": paths}}
    ]
    await api.post(PATH, definition("ships", "Ship", versions=versions))
    ships = "/apis/example.com/v1/namespaces/default/ships"
    ship = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}}
    await api.post(ships, ship)
    refused = await api.get(f"{ships}/a/scale")
    assert (refused.status, refused.body["reason"]) == (500, "InternalError")
    assert refused.body["message"].endswith('the spec replicas field ".spec.crew.size" does not exist')
    await api.patch(f"{ships}/a/status", {"status": {"size": 1, "selector": "a=b"}})
    scaled = await api.patch(f"{ships}/a/scale", {"spec": {"replicas": 5}})
    assert scaled.body["spec"] == {"replicas": 5}
    assert scaled.body["status"] == {"replicas": 1, "selector": "a=b"}
    assert (await api.get(f"{ships}/a/scale")).raw == scaled.raw
    applied = await api.patch(
        f"{ships}/a/scale", scaled.body, "application/apply-patch+yaml", fieldManager="me"
    )
    assert (applied.status, "request to convert CR" in applied.body["message"]) == (500, True)
    assert (await api.get(f"{ships}/a")).body["spec"] == {"crew": {"size": 5}}
