"""Custom resources by the schemas of their definitions: read, defaulted, checked, and refused."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, ResourceType, StatusError
from tests.testing.client import MERGE, APIClient

CRDS = "apiextensions.k8s.io/v1", "customresourcedefinitions"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CAVES = "example.com/v1", "caves"
CAVES_PATH = "/apis/example.com/v1/namespaces/default/caves"
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def definition(schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    v1 = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": "caves", "kind": "Cave"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [v1]}
    return {"metadata": {"name": "caves.example.com"}, "spec": spec}


def define(spec: dict[str, Any], **version: Any) -> APIServer:
    server = APIServer()
    server.create(*CRDS, definition(struct(spec=spec, status=struct(phase=TEXT)), **version))
    return server


def cave(spec: Any, name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Cave", "metadata": {"name": name}, "spec": spec}


def test_unknown_fields_are_dropped_and_defaults_set() -> None:
    inner = struct(count=NUMBER | {"default": 7}, label=TEXT)
    server = define(struct(size=NUMBER | {"default": 1}, inner=inner | {"default": {}}))
    assert server.create(*CAVES, cave({"odd": 1, "size": None}))["spec"] == {"size": 1, "inner": {"count": 7}}
    assert server.update(*CAVES, cave({"inner": {"label": "x"}}))["spec"] == {
        "size": 1,
        "inner": {"count": 7, "label": "x"},
    }


def test_the_given_object_is_not_modified() -> None:
    server, given = define(struct(size=NUMBER | {"default": 1})), cave({"odd": 1})
    server.create(*CAVES, given)
    assert given == cave({"odd": 1})


def test_preserved_fields_are_kept() -> None:
    server = define({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    assert server.create(*CAVES, cave({"any": {"thing": [1]}}))["spec"] == {"any": {"thing": [1]}}


def test_a_resource_without_a_schema_keeps_all_fields() -> None:
    server = APIServer()
    server.register(ResourceType("example.com", "v1", "caves", "Cave"))
    assert server.create(*CAVES, cave({"any": 7}))["spec"] == {"any": 7}


def test_faults_of_unchanged_values_are_tolerated() -> None:
    server = define(struct(a=TEXT, b=TEXT))
    server.create(*CAVES, cave({"a": "long", "b": "x"}))
    changed = definition(struct(spec=struct(a=TEXT | {"maxLength": 2}, b=TEXT)))
    server.update(*CRDS, changed)
    server.update(*CAVES, cave({"a": "long", "b": "y"}))
    with pytest.raises(StatusError, match=r"spec\.a: Too long: may not be more than 2 bytes"):
        server.update(*CAVES, cave({"a": "other", "b": "y"}))


def test_stored_objects_show_the_defaults_of_a_changed_definition() -> None:
    server = define(struct(a=TEXT))
    before = server.create(*CAVES, cave({"a": "x"}))
    server.update(*CRDS, definition(struct(spec=struct(a=TEXT, b=TEXT | {"default": "new"}))))
    after = server.get(*CAVES, "a")
    assert after["spec"] == {"a": "x", "b": "new"}
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def with_rule(schema: dict[str, Any], **rule: Any) -> dict[str, Any]:
    return schema | {"x-kubernetes-validations": [rule]}


UNSUPPORTED = with_rule({"type": "array", "items": NUMBER}, rule="self.all(i, v, v > i)")


def test_a_definition_says_which_rules_are_not_enforced() -> None:
    server = APIServer()
    server.create(*CRDS, definition(struct(a=UNSUPPORTED)))
    conditions = server.get(*CRDS, "caves.example.com")["status"]["conditions"]
    (not_enforced,) = [
        condition for condition in conditions if condition["type"] == "ValidationRulesNotEnforced"
    ]
    assert (not_enforced["status"], not_enforced["reason"]) == ("True", "NotSupported")
    assert (
        "x-kubernetes-validations[0].rule: the embedded server cannot evaluate all" in not_enforced["message"]
    )
    changed = server.get(*CRDS, "caves.example.com")
    changed["spec"]["versions"] = definition(struct(a=TEXT))["spec"]["versions"]
    server.update(*CRDS, changed)
    conditions = server.get(*CRDS, "caves.example.com")["status"]["conditions"]
    (not_enforced,) = [
        condition for condition in conditions if condition["type"] == "ValidationRulesNotEnforced"
    ]
    assert not_enforced["status"] == "False"


async def test_clients_are_warned_of_rules_that_are_not_enforced(api: APIClient) -> None:
    answer = await api.post(PATH, definition(struct(a=UNSUPPORTED)))
    assert answer.status == 201
    assert "the embedded server cannot evaluate all" in answer.headers["Warning"]


async def test_unknown_fields_are_refused_reported_or_ignored(api: APIClient) -> None:
    await api.post(PATH, definition(struct(spec=struct(a=TEXT))))
    strict = await api.post(f"{CAVES_PATH}?fieldValidation=Strict", cave({"odd": 1}))
    assert strict.status == 400
    assert strict.body["message"].endswith('strict decoding error: unknown field "spec.odd"')
    warned = await api.post(CAVES_PATH, cave({"odd": 1}))
    assert (warned.status, warned.headers["Warning"]) == (201, r'299 - "unknown field \"spec.odd\""')
    ignored = await api.post(f"{CAVES_PATH}?fieldValidation=Ignore", cave({"odd": 1}, "b"))
    assert (ignored.status, ignored.headers.get("Warning"), ignored.body["spec"]) == (201, None, {})


def test_faults_of_metadata_and_schema_are_reported_together() -> None:
    server = define(struct(size=NUMBER | {"maximum": 1}))
    with pytest.raises(StatusError) as refused:
        server.create(*CAVES, cave({"size": 2}, name="not valid!"))
    causes = refused.value.status["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["metadata.name", "spec.size"]


async def test_labels_of_the_wrong_type_are_refused_in_patches(api: APIClient) -> None:
    await api.post(PATH, definition(struct(spec=struct())))
    await api.post(CAVES_PATH, cave({}))
    answer = await api.patch(f"{CAVES_PATH}/a", {"metadata": {"labels": 7}}, MERGE)
    why = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"
    assert (answer.status, answer.body["message"].endswith(why)) == (422, True), answer.body


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (
            {"generation": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64",
        ),
        (
            {"labels": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            {"ownerReferences": [{"uid": 5}]},
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.uid of type types.UID",
        ),
        (
            {"creationTimestamp": "soon"},
            'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
        ),
    ],
)
async def test_metadata_of_the_wrong_type_is_refused(api: APIClient, metadata: Any, why: str) -> None:
    await api.post(PATH, definition(struct(spec=struct())))
    wrong = {**cave({}), "metadata": {"name": "a", **metadata}}
    answer = await api.post(CAVES_PATH, wrong)
    message = 'Cave in version "v1" cannot be handled as a Cave: ' + why
    assert (answer.status, answer.body["message"]) == (400, message)
    await api.post(CAVES_PATH, cave({}))
    answer = await api.patch(f"{CAVES_PATH}/a", {"metadata": metadata}, MERGE)
    assert (answer.status, answer.body["message"].endswith(why)) == (422, True), answer.body


def test_counts_of_the_scale_are_checked() -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    server = define(struct(size=NUMBER), subresources={"scale": scale})
    with pytest.raises(
        StatusError, match=r"\.spec\.size: Invalid value: -1: should be a non-negative integer"
    ):
        server.create(*CAVES, cave({"size": -1}))
    with pytest.raises(
        StatusError, match=r"\.spec\.size accessor error: \[\] is of the type \[\]interface {}"
    ):
        server.create(*CAVES, cave([]))


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (
            struct(a=struct(size=NUMBER | {"default": "x"})),
            r"properties\[spec\].properties\[a\].properties\[size\]",
        ),
        (struct(a={"type": "array", "items": NUMBER | {"default": "x"}}), r"properties\[a\].items"),
    ],
)
def test_defaults_that_do_not_fit_their_schema_are_refused(schema: Any, where: str) -> None:
    with pytest.raises(StatusError, match=rf"{where}\.default: Invalid value: "):
        define(schema)


@pytest.mark.parametrize("values", [NUMBER | {"default": "x"}, struct(size=NUMBER | {"default": "x"})])
def test_defaults_in_the_values_of_maps_are_not_checked(values: Any) -> None:
    define(struct(a={"type": "object", "additionalProperties": values}))
