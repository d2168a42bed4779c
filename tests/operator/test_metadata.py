"""operator/metadata.py: what is read of each kind of object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import ConfigError, KubeObject
from aioinformer.operator import owner_reference
from aioinformer.operator.metadata import Owner, is_deleting, owners_of, type_of

FIELDS: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Cave",
    "metadata": {
        "name": "blue",
        "uid": "1-2",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "3", "controller": True}
        ],
    },
}


class Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    deletion_timestamp: str | None = None
    owner_references: list[dict[str, Any]] = []


class Cave(msgspec.Struct, rename="camel"):
    metadata: Meta
    api_version: str = ""
    kind: str = ""


KINDS: list[Any] = [KubeObject.from_dict, dict, lambda fields: msgspec.convert(fields, Cave)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object(kind: Any) -> None:
    obj = kind(FIELDS)
    assert type_of(obj) == ("example.com/v1", "Cave")
    assert owners_of(obj) == [Owner("v1", "Node", "n", "3", True)]
    assert is_deleting(obj)
    assert owner_reference(obj) == {
        "apiVersion": "example.com/v1",
        "kind": "Cave",
        "name": "blue",
        "uid": "1-2",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert owner_reference(obj, controller=False)["controller"] is False


@pytest.mark.parametrize("kind", KINDS)
def test_what_says_little(kind: Any) -> None:
    obj = kind({"metadata": {"name": "blue"}})
    assert type_of(obj) == ("", "")
    assert owners_of(obj) == []
    assert not is_deleting(obj)
    with pytest.raises(ConfigError, match="an owner has apiVersion, kind, name and uid"):
        owner_reference(obj)
