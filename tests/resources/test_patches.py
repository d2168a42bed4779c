"""JSON patches of finalizers: they fail if the object has changed."""

from __future__ import annotations

import pytest

from aioinformer import InvalidError
from aioinformer.errors import ObjectNotFoundError
from aioinformer.resources.endpoint import lifecycle_of
from aioinformer.resources.patches import patch_adding, patch_removing


def test_adding_a_finalizer() -> None:
    assert patch_adding("u", [], "x") == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/finalizers", "value": None},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x"]},
    ]
    assert patch_adding("", ["a", "b"], "x") == [
        {"op": "test", "path": "/metadata/finalizers", "value": ["a", "b"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "x"},
    ]


def test_removing_a_finalizer() -> None:
    assert patch_removing("u", ["x", "a", "x"], "x") == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/finalizers/2", "value": "x"},
        {"op": "remove", "path": "/metadata/finalizers/2"},
        {"op": "test", "path": "/metadata/finalizers/0", "value": "x"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]


@pytest.mark.parametrize(
    ("body", "is_deleted", "is_kept", "is_gone"),
    [
        (b'{"metadata":{"uid":"u"}}', False, False, False),
        (b'{"metadata":{"uid":"u","finalizers":["x"]}}', False, True, False),
        (b'{"metadata":{"uid":"u","deletionTimestamp":"t","finalizers":["x"]}}', True, True, False),
        (
            b'{"metadata":{"uid":"u","deletionTimestamp":"t","deletionGracePeriodSeconds":0}}',
            True,
            False,
            True,
        ),
        (
            b'{"metadata":{"uid":"u","deletionTimestamp":"t","deletionGracePeriodSeconds":30}}',
            True,
            True,
            False,
        ),
        (
            b'{"kind":"Namespace","metadata":{"uid":"u","deletionTimestamp":"t"},"spec":{"finalizers":["x"]}}',
            True,
            True,
            False,
        ),
        (
            b'{"kind":"Cave","metadata":{"uid":"u","deletionTimestamp":"t"},"spec":{"finalizers":["x"]}}',
            True,
            False,
            True,
        ),
        (b'{"kind":"Status","metadata":{},"details":{"uid":"u"}}', True, False, True),
    ],
)
def test_lifecycle_fields_of_an_answer(body: bytes, is_deleted: bool, is_kept: bool, is_gone: bool) -> None:
    seen = lifecycle_of(body)
    assert (seen.uid, seen.is_deleted, seen.is_kept, seen.is_gone) == ("u", is_deleted, is_kept, is_gone)


def test_refusal_has_all_details() -> None:
    causes = [
        {"reason": "FieldValueRequired", "field": "spec.size", "message": "Required value"},
        {"reason": "Other", "message": "it is Tuesday"},
        {"reason": "FieldValueInvalid", "field": "spec.kind", "message": "said already"},
    ]
    error = InvalidError(
        422, "Invalid", "spec.kind: said already", {"causes": causes, "retryAfterSeconds": 3}
    )
    assert str(error) == (
        "422 Invalid: spec.kind: said already (spec.size: Required value; it is Tuesday); again in 3 s"
    )
    assert [cause.field for cause in error.causes] == ["spec.size", "", "spec.kind"]
    missing = ObjectNotFoundError(404, "NotFound", "no", {"causes": "odd"})
    assert missing.causes == ()
    assert (missing.key, missing.resource) == ("", "")
