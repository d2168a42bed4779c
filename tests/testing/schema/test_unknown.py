"""Unknown and duplicate fields."""

from __future__ import annotations

from aioinformer.testing import APIServer
from aioinformer.testing.schema.node import Node
from aioinformer.testing.schema.unknown import FieldCheck, duplicate_fields, unknown_fields
from tests.testing.client import APIClient

PODS = "/api/v1/namespaces/default/pods"
TEXT = Node(type="string")
SCHEMA = Node(
    type="object",
    properties={
        "spec": Node(
            type="object",
            properties={
                "free": Node(type="object", preserves_unknown=True, properties={"a": TEXT}),
                "items": Node(type="array", items=Node(type="object", properties={"a": TEXT})),
                "labels": Node(type="object", items=TEXT),
            },
        )
    },
)


def test_unknown_fields_have_paths() -> None:
    obj = {
        "kind": "A",
        "other": 1,
        "spec": {"items": [{"a": "b"}, {"b": 1}, 5], "labels": {"x": "y"}, "free": {"b": 1}, "c": 1},
    }
    assert list(unknown_fields(SCHEMA, obj)) == ["other", "spec.items[1].b", "spec.c"]


def test_duplicate_fields_have_paths() -> None:
    body = b'{"a": 1, "b": [{"c": 1, "c": 2, "c": 3}], "a": 2}'
    assert duplicate_fields(body, {"a": 2, "b": [{"c": 3}]}) == [
        'duplicate field "b[0].c"',
        'duplicate field "a"',
    ]
    assert duplicate_fields(b'{"a": "\\":"}', {"a": '":'}) == []


def test_strict_refuses_and_warn_warns() -> None:
    assert (
        FieldCheck("Strict").check(["a", "b"])
        == 'strict decoding error: unknown field "a", unknown field "b"'
    )
    check = FieldCheck("", ['duplicate field "c"'])
    assert check.check(["a"]) == ""
    assert check.warnings == ['duplicate field "c"', 'unknown field "a"']
    ignored = FieldCheck("Ignore")
    assert (ignored.check(["a"]), ignored.warnings) == ("", [])


async def test_field_validation_of_requests(api: APIClient, server: APIServer) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a", "imag": "b"}]}}
    refused = await api.post(PODS, pod, fieldValidation="Strict")
    assert (refused.status, refused.body["message"]) == (
        400,
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
        '"spec.containers[0].imag"',
    )
    warned = await api.post(PODS, pod)
    assert warned.headers.getall("Warning") == ['299 - "unknown field \\"spec.containers[0].imag\\""']
    assert "imag" not in warned.body["spec"]["containers"][0]
    patched = await api.patch(f"{PODS}/a", {"spec": {"foo": 1}}, fieldValidation="Strict")
    assert patched.status == 422
    assert patched.body["message"].endswith('strict decoding error: unknown field "spec.foo"')
    ignored = await api.patch(f"{PODS}/a", {"spec": {"foo": 1}}, fieldValidation="Ignore")
    assert (ignored.status, "Warning" in ignored.headers) == (200, False)
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"foo": 1}}
    failed = await api.patch(f"{PODS}/a", applied, "application/apply-patch+yaml", fieldManager="me")
    assert (failed.status, failed.body["message"]) == (
        500,
        "failed to create typed patch object (/a; /v1, Kind=Pod): .spec.foo: field not declared in schema",
    )
