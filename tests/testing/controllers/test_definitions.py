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
COLUMN = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}


def definition(plural: str = "caves", kind: str = "Cave", **spec: Any) -> dict[str, Any]:
    names = {"plural": plural, "kind": kind, **spec.pop("names", {})}
    wanted = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [V1], **spec}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": wanted}


def conditions(server: APIServer, name: str) -> dict[str, tuple[str, str]]:
    status = server.get(*CRDS, f"{name}.example.com")["status"]
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (
            definition(group="other.com"),
            r'metadata.name: Invalid value: "caves.example.com": must be spec.names',
        ),
        (definition(group=""), "spec.group: Required value"),
        (
            definition(group="example"),
            'spec.group: Invalid value: "example": should be a domain with at least',
        ),
        (definition(group="Example.com"), "spec.group: Invalid value: .* a lowercase RFC 1123 subdomain"),
        (definition(names={"plural": "", "kind": ""}), "spec.names.plural: Required value"),
        (definition(names={"plural": "Caves"}), "spec.names.plural: Invalid value: .* a DNS-1035 label"),
        (definition(kind="a b"), "spec.names.kind: Invalid value: .*may have mixed case"),
        (definition(kind="C" * 64), "must be no more than 63 characters"),
        (definition(names={"listKind": "Cave"}), "kind and listKind may not be the same"),
        (definition(names={"shortNames": ["cv", "C V"]}), r"spec.names.shortNames\[1\]: Invalid value"),
        (definition(scope=""), "spec.scope: Required value"),
        (definition(scope="World"), 'Unsupported value: "World": supported values: "Cluster", "Namespaced"'),
        (
            definition(versions=[{**V1, "schema": None}]),
            r"spec.versions\[0\].schema.openAPIV3Schema: Required",
        ),
        (definition(versions=[{**V1, "name": "1"}]), r"spec.versions\[0\].name: Invalid value"),
        (
            definition(versions=[{**V1, "additionalPrinterColumns": [{**COLUMN, "type": "int"}]}]),
            r"spec.additionalPrinterColumns\[0\].type: Invalid value: .* must be one of boolean,date",
        ),
        (
            definition(versions=[V1, version("v2", additionalPrinterColumns=[{**COLUMN, "jsonPath": "a"}])]),
            r"spec.versions\[1\].additionalPrinterColumns\[0\].JSONPath: .* simple json path starting with \.",
        ),
        (
            definition(versions=[{**V1, "subresources": {"scale": {"specReplicasPath": ".spec.size"}}}]),
            "spec.subresources.scale.statusReplicasPath: Required value",
        ),
        (
            definition(versions=[{**V1, "subresources": {"scale": {"specReplicasPath": ".size"}}}]),
            "spec.subresources.scale.specReplicasPath: .* should be a json path under .spec",
        ),
        (definition(versions=[V1, version("v1")]), "must contain unique version names"),
        (definition(versions=[version("v1")]), "must have exactly one version marked as storage version"),
        (definition(versions=[]), "must have exactly one version marked as storage version"),
        (
            definition(versions="v1"),
            "^400 .*cannot unmarshal string into Go struct field CustomResourceDefinitionSpec.spec.versions",
        ),
        (definition(names={"kind": 7}), "^400 .*names.kind"),
    ],
)
def test_invalid_definitions_are_refused(refused: dict[str, Any], why: str) -> None:
    with pytest.raises(StatusError, match=why):
        APIServer().create(*CRDS, refused)


def test_kubernetes_groups_need_an_approval() -> None:
    server = APIServer()
    wanted = definition(group="example.k8s.io")
    wanted["metadata"]["name"] = "caves.example.k8s.io"
    approved = "api-approved.kubernetes.io"
    where = rf"metadata.annotations\[{approved}\]"
    with pytest.raises(
        StatusError, match=f'{where}: Required value: protected groups must .* "{approved}", see'
    ):
        server.create(*CRDS, wanted)
    wanted["metadata"]["annotations"] = {approved: "yes"}
    with pytest.raises(StatusError, match=f'{where}: Invalid value: "yes": .* with either a URL or a reason'):
        server.create(*CRDS, wanted)
    wanted["metadata"]["annotations"] = {approved: "unapproved, a test"}
    server.create(*CRDS, wanted)
    for value in ("unapproved, as before", "https://example.com/1"):
        server.patch(*CRDS, "caves.example.k8s.io", {"metadata": {"annotations": {approved: value}}})
    with pytest.raises(StatusError, match=f"{where}: Required value"):
        server.patch(*CRDS, "caves.example.k8s.io", {"metadata": {"annotations": {approved: None}}})


def test_immutable_fields_of_definitions() -> None:
    server = APIServer()
    server.create(*CRDS, definition())
    for changed, field in (
        ({"scope": "Cluster"}, "spec.scope"),
        ({"group": "other.com"}, "spec.group"),
        ({"names": {"kind": "Hole"}}, "spec.names.kind"),
        ({"names": {"plural": "holes"}}, "spec.names.plural"),
    ):
        with pytest.raises(StatusError, match=f"{field}: Invalid value: .*: field is immutable"):
            server.patch(*CRDS, "caves.example.com", {"spec": changed})


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


@pytest.mark.parametrize(
    ("other", "reason", "message"),
    [
        (definition("holes", kind="Cave"), "ListKindConflict", '"CaveList" is already in use'),
        (definition("holes", kind="Hole", names={"singular": "cv"}), "SingularConflict", '"cv" is already'),
        (
            definition("holes", kind="Hole", names={"shortNames": ["cv", "cave", "h"]}),
            "ShortNamesConflict",
            '["cv" is already in use, "cave" is already in use]',
        ),
    ],
)
def test_name_of_another_definition_is_refused(other: dict[str, Any], reason: str, message: str) -> None:
    server = APIServer()
    server.create(*CRDS, definition(names={"shortNames": ["cv"]}))
    server.create(*CRDS, other)
    assert conditions(server, "caves") == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert conditions(server, "holes") == {
        "NamesAccepted": ("False", reason),
        "Established": ("False", "NotAccepted"),
    }
    status = server.get(*CRDS, "holes.example.com")["status"]
    assert status["conditions"][0]["message"].startswith(message)
    with pytest.raises(StatusError, match="does not have the resource 'holes'"):
        server.resource("example.com/v1", "holes")
    server.delete(*CRDS, "caves.example.com")
    assert conditions(server, "holes")["Established"] == ("True", "InitialNamesAccepted")
    assert server.resource("example.com/v1", "holes").kind == other["spec"]["names"]["kind"]


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


def test_terminating_definition_refuses_new_objects() -> None:
    server = APIServer()
    server.create(*CRDS, definition())
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    server.create("example.com/v1", "caves", held)
    server.delete(*CRDS, "caves.example.com")
    assert conditions(server, "caves")["Terminating"] == ("True", "InstanceDeletionInProgress")
    why = 'caves.example.com "new" is forbidden: create not allowed while custom resource definition is terminating'
    with pytest.raises(StatusError, match=why):
        server.create("example.com/v1", "caves", {"metadata": {"name": "new"}})
    server.patch("example.com/v1", "caves", "held", {"metadata": {"finalizers": None}})
    with pytest.raises(StatusError, match="not found"):
        server.get(*CRDS, "caves.example.com")


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
    assert [each["version"] for each in (await api.get("/apis/example.com")).body["versions"]] == ["v2"]
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
