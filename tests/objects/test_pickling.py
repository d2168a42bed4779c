"""What people keep in tasks for other processes, or on disk, survives pickle."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from aioinformer import (
    ApiError,
    DeletedFinalStateUnknown,
    KubeObject,
    ListOptions,
    OwnerReference,
    WatchEvent,
    field,
)
from aioinformer import errors as errors_module
from aioinformer.objects.fields import Field

POD = KubeObject.from_dict({"metadata": {"name": "a"}, "spec": {"containers": [{"image": "x"}, {}]}})


@pytest.mark.parametrize("again", [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("in_place", [False, True])
def test_field_reads_the_same_after_pickle(again: Any, in_place: bool) -> None:
    copied = again(Field("spec.containers[*].image", in_place=in_place))
    assert copied.path == "spec.containers[*].image"
    assert copied(POD) == (["x", None] if in_place else ["x"])
    assert again(field("metadata.name"))(POD) == "a"


@pytest.mark.parametrize(
    "value",
    [
        POD,
        POD.metadata,
        OwnerReference("a"),
        WatchEvent("ADDED", POD),
        ListOptions(limit=5),
        DeletedFinalStateUnknown("a", POD),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_equal_after_pickle(value: Any) -> None:
    copied = pickle.loads(pickle.dumps(value))
    assert copied == value or repr(copied) == repr(value)


@pytest.mark.parametrize("name", sorted(errors_module.__all__))
def test_errors_say_the_same_after_pickle(name: str) -> None:
    kind = getattr(errors_module, name)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        pytest.skip("no error")
    for arguments in (
        ("text",),
        (404, "NotFound", "gone"),
        (POD, ValueError("x")),
        ("a", POD, ValueError("x")),
    ):
        try:
            error = kind(*arguments)
        except TypeError:
            continue
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied)) == (kind, str(error))
        if isinstance(error, ApiError):
            assert copied.status == error.status
        return
