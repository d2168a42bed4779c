"""Tables of `kubectl get` and the objects of a new server; tests/e2e compares both with the real server."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer.testing import APIServer, PrinterColumn, ResourceType
from aioinformer.testing.http.listing import Page
from aioinformer.testing.http.negotiation import negotiate
from aioinformer.testing.rules.values import decode_values
from aioinformer.testing.storage.builtin import BUILTIN, PODS
from aioinformer.testing.tables import columns, row


@pytest.mark.parametrize(
    "resource",
    [resource_type for resource_type in BUILTIN if resource_type.stored],
    ids=lambda resource_type: resource_type.plural,
)
def test_every_column_has_a_cell(resource: ResourceType) -> None:
    obj = decode_values(resource, {"metadata": {"name": "a"}})
    assert len(row(resource, obj)) >= len(columns(resource)) >= 2


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_deleted_pod_shows_that_it_ends(status: dict[str, str], shown: str) -> None:
    metadata = {"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    assert row(PODS, {"metadata": metadata, "status": status})[2] == shown


def test_column_of_a_definition_has_its_description() -> None:
    depth = PrinterColumn("Depth", ".spec.depth", "integer", description="Metres.")
    plain = PrinterColumn("Depth", ".spec.depth", "integer")
    shown = [
        columns(ResourceType("example.com", "v1", "caves", "Cave", columns=(column,)))[1]
        for column in (depth, plain)
    ]
    assert [column["description"] for column in shown] == [
        "Metres.",
        "Custom resource definition column (in JSONPath format): .spec.depth",
    ]


def test_new_server_has_the_service_of_the_api() -> None:
    server = APIServer()
    service = server.get("v1", "services", "kubernetes")
    assert service["spec"]["clusterIP"] == "10.0.0.1"
    assert server.get("rbac.authorization.k8s.io/v1", "clusterroles", "cluster-admin")["rules"]
    assert service["metadata"]["uid"] != server.get("v1", "endpoints", "kubernetes")["metadata"]["uid"]


def test_seeded_objects_leave_versions_to_the_test() -> None:
    server = APIServer()
    assert server.resource_version == 4
    created = server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    assert created["metadata"]["resourceVersion"] == "5"


def test_table_is_built_in_small_steps(server: APIServer) -> None:
    for number in range(5):
        server.create("v1", "pods", {"metadata": {"name": f"a{number}"}, "spec": {}})
    stored = server.cluster.collection(PODS).in_namespace("default")
    view = negotiate("application/json;as=Table;g=meta.k8s.io;v=v1", PODS, "", "list")
    *pauses, table = view.page(Page(stored, 1))
    assert pauses == [b""] * 5
    assert len(msgspec.json.decode(table)["rows"]) == 5
