"""`kubectl apply`, then `kubectl apply --server-side`; `tests/e2e/test_kubectl.py` runs kubectl."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.testing import APIServer, StatusError
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.codec import load

NAME = "kubectl.kubernetes.io/last-applied-configuration"
CLIENT_SIDE = "kubectl-client-side-apply"
PATH = ("", "v1", "configmaps")


class Kubectl:
    """The writes of kubectl to one ConfigMap."""

    def __init__(self) -> None:
        self._cluster = APIServer().cluster
        resource_type = self._cluster.registry.find(*PATH)
        assert resource_type is not None
        self._resource = resource_type

    def create(self, data: dict[str, str], manager: str = CLIENT_SIDE) -> Object:
        metadata = {"name": "a", "annotations": {NAME: json.dumps(configuration(data))}}
        options = WriteOptions(field_manager=manager)
        return self._load(
            self._cluster.create(self._resource, "default", {"metadata": metadata, "data": data}, options)
        )

    def change(self, manager: str, change: dict[str, Any]) -> Object:
        options = WriteOptions(field_manager=manager)
        return self._load(
            self._cluster.modify(self._resource, "default", "a", lambda obj: {**obj, **change}, options)
        )

    def apply(self, data: dict[str, str], manager: str = "kubectl") -> Object:
        options = WriteOptions(field_manager=manager)
        stored, _ = self._cluster.apply(self._resource, "default", "a", configuration(data), options)
        return self._load(stored)

    def _load(self, stored: Any) -> Object:
        return load(self._resource, stored)


def configuration(data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def managers(obj: Object) -> list[tuple[str, str]]:
    return sorted((entry["manager"], entry["operation"]) for entry in obj["metadata"]["managedFields"])


@pytest.fixture
def kubectl() -> Kubectl:
    return Kubectl()


def test_client_side_apply_owns_what_it_creates(kubectl: Kubectl) -> None:
    (entry,) = kubectl.create({"k": "1"})["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == (CLIENT_SIDE, "Update")
    assert entry["fieldsV1"]["f:data"]["f:k"] == {}
    assert managers(kubectl.change("editor", {"data": {"k": "2"}})) == [
        ("editor", "Update"),
        (CLIENT_SIDE, "Update"),
    ]


def test_other_clients_are_not_tracked() -> None:
    assert "managedFields" not in Kubectl().create({"k": "1"}, "python")["metadata"]


def test_server_side_apply_takes_over_what_client_side_apply_set(kubectl: Kubectl) -> None:
    kubectl.create({"k": "1", "<": "&"})
    applied = kubectl.apply({"k": "2", "<": "&"})
    assert applied["data"]["k"] == "2"
    text = applied["metadata"]["annotations"][NAME]
    assert json.loads(text) == configuration({"k": "2", "<": "&"})
    assert r"\u003c" in text


def test_other_managers_still_conflict(kubectl: Kubectl) -> None:
    kubectl.create({"k": "1"})
    with pytest.raises(StatusError, match=f'conflict with "{CLIENT_SIDE}" using v1'):
        kubectl.apply({"k": "2"}, "another")
    kubectl.change("editor", {"data": {"k": "3"}})
    with pytest.raises(StatusError, match='conflict with "editor" using v1'):
        kubectl.apply({"k": "2"})


def test_dropped_keys_go_once_the_managers_are_migrated(kubectl: Kubectl) -> None:
    kubectl.create({"k": "1", "m": "1"})
    kubectl.apply({"k": "1", "m": "1"})
    before = kubectl.change("reader", {})
    migrated = [entry for entry in before["metadata"]["managedFields"] if entry["manager"] != CLIENT_SIDE]
    kubectl.change("kubectl", {"metadata": {**before["metadata"], "managedFields": migrated}})
    assert kubectl.apply({"k": "1"})["data"] == {"k": "1"}


@pytest.mark.parametrize("text", ["{", "[]", '{"apiVersion": "v2", "data": {"k": "1"}}'])
def test_an_unusable_annotation_takes_over_nothing(kubectl: Kubectl, text: str) -> None:
    created = kubectl.create({"k": "1"})
    metadata = {**created["metadata"], "annotations": {NAME: text}}
    kubectl.change(CLIENT_SIDE, {"metadata": metadata})
    with pytest.raises(StatusError, match="conflict with"):
        kubectl.apply({"k": "2"})
