"""Discovery, health, tables and metadata."""

from __future__ import annotations

import re
import time

import pytest

from aioinformer.testing import APIServer, PrinterColumn, ResourceType
from aioinformer.testing.tables import columns, row
from tests.testing.client import APIClient

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
AGGREGATED = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
}
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health(api: APIClient, path: str) -> None:
    assert (await api.get(path)).raw == b"ok"


async def test_the_root_names_paths(api: APIClient) -> None:
    assert {"/api", "/apis", "/version"} <= {*(await api.get("/")).body["paths"]}


async def test_version(api: APIClient) -> None:
    assert (await api.get("/version")).body["gitVersion"] == "v1.36.3"


async def test_groups_and_resources(api: APIClient, server: APIServer) -> None:
    server.register(
        ResourceType("example.com", "v1", "caves", "Cave", short_names=("cv",), categories=("all",))
    )
    assert (await api.get("/api")).body["versions"] == ["v1"]
    groups = {group["name"]: group for group in (await api.get("/apis")).body["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert (await api.get("/apis/example.com")).body["versions"][0]["version"] == "v1"
    core = (await api.get("/api/v1")).body
    assert core["groupVersion"] == "v1"
    pods = next(resource for resource in core["resources"] if resource["name"] == "pods")
    assert (pods["kind"], pods["namespaced"], pods["shortNames"]) == ("Pod", True, ["po"])
    apps = {resource["name"]: resource for resource in (await api.get("/apis/apps/v1")).body["resources"]}
    assert apps["deployments/scale"]["kind"] == "Scale"
    (cave, status) = (await api.get("/apis/example.com/v1")).body["resources"]
    assert (cave["singularName"], cave["categories"], status["name"]) == ("cave", ["all"], "caves/status")
    for path in ("/apis/nope", "/apis/nope/v1", "/api/v2", "/openapi/v3/apis/nope/v1", "/openapi/v3"):
        assert (await api.get(path)).status == (200 if path == "/openapi/v3" else 404)


async def test_the_preferred_version_is_the_newest_stable_one(api: APIClient, server: APIServer) -> None:
    for version in ("v1beta1", "foo", "v1", "v1alpha1", "v10", "v2beta1", "v2", "bar", "v1beta2"):
        server.register(ResourceType("example.com", version, "caves", "Cave"))
    ordered = ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]
    group = (await api.get("/apis/example.com")).body
    assert [version["version"] for version in group["versions"]] == ordered
    assert group["preferredVersion"] == {"groupVersion": "example.com/v10", "version": "v10"}
    (item,) = [
        candidate
        for candidate in (await api.get("/apis", AGGREGATED)).body["items"]
        if candidate["metadata"]["name"] == "example.com"
    ]
    assert [version["version"] for version in item["versions"]] == ordered


async def test_aggregated_discovery(api: APIClient) -> None:
    answer = await api.get("/apis", AGGREGATED)
    assert answer.headers["Content-Type"] == AGGREGATED["Accept"].split(",")[0]
    assert "apps" in [item["metadata"]["name"] for item in answer.body["items"]]
    (core,) = (await api.get("/api", AGGREGATED)).body["items"]
    (version,) = core["versions"]
    namespaces = next(resource for resource in version["resources"] if resource["resource"] == "namespaces")
    assert (namespaces["scope"], namespaces["responseKind"]["kind"]) == ("Cluster", "Namespace")
    assert [subresource["subresource"] for subresource in namespaces["subresources"]] == [
        "finalize",
        "status",
    ]


async def test_openapi_says_that_fields_are_validated(api: APIClient) -> None:
    index = (await api.get("/openapi/v3")).body["paths"]
    document = (await api.get(index["apis/apps/v1"]["serverRelativeURL"])).body
    operation = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    assert operation["x-kubernetes-group-version-kind"]["kind"] == "Deployment"
    pod = (await api.get("/openapi/v2")).body["definitions"]["io.k8s.api.core.v1.PodSpec"]
    assert pod["properties"]["containers"]["items"] == {"$ref": "#/definitions/io.k8s.api.core.v1.Container"}
    assert (
        await api.get("/openapi/v2", {"Accept": "application/com.github.proto-openapi.spec.v2"})
    ).status == 406
    for version in (".v1.0", "@v1.0"):
        accept = {"Accept": f"application/com.github.proto-openapi.spec.v2{version}+protobuf"}
        assert (await api.get("/openapi/v2", accept)).raw.startswith(b"\x0a\x032.0")


async def test_a_table(api: APIClient, server: APIServer) -> None:
    server.create(
        "v1",
        "pods",
        {
            "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "c"}, {"name": "d"}]},
            "status": {
                "phase": "Running",
                "containerStatuses": [{"ready": True, "restartCount": 3, "state": {"running": {}}}],
            },
        },
    )
    table = (await api.get(PODS, TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
        "IP",
        "Node",
        "Nominated Node",
        "Readiness Gates",
    ]
    (row,) = table["rows"]
    assert row["cells"][:4] == ["web", "1/2", "Running", "3"]
    assert row["object"]["metadata"]["name"] == "web"
    assert table["metadata"] == {"resourceVersion": str(server.resource_version)}
    assert len((await api.get(f"{PODS}/web", TABLE)).body["rows"]) == 1
    async with api.watch(PODS, TABLE, allowWatchBookmarks="true") as lines:
        first, second = await lines.drop(server)
    assert (first["type"], second["type"]) == ("ADDED", "BOOKMARK")
    assert "columnDefinitions" in first["object"]
    assert second["object"]["columnDefinitions"] is None


async def test_the_columns_of_a_custom_resource(api: APIClient, server: APIServer) -> None:
    shown = (
        PrinterColumn("Depth", ".spec.depth", "integer"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
        PrinterColumn("Odd", "spec", "string"),
    )
    server.register(ResourceType("example.com", "v1", "caves", "Cave", columns=shown))
    server.create("example.com/v1", "caves", {"metadata": {"name": "deep"}, "spec": {"depth": 7}})
    server.create("example.com/v1", "caves", {"metadata": {"name": "odd"}, "spec": "none"})
    table = (await api.get("/apis/example.com/v1/caves", TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Depth", "Age", "Odd"]
    assert [[*row["cells"][:2], row["cells"][3]] for row in table["rows"]] == [
        ["deep", 7, None],
        ["odd", None, None],
    ]


def test_a_custom_resource_without_columns_has_an_age() -> None:
    lease = ResourceType("example.com", "v1", "leases", "Lease")
    assert [column["name"] for column in columns(lease)] == ["Name", "Age"]
    created = {"name": "a", "creationTimestamp": "2000-01-01T00:00:00Z"}
    assert re.fullmatch("[0-9]+y", row(lease, {"metadata": created})[1])


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (5, "5s"),
        (119, "119s"),
        (120, "2m"),
        (301, "5m1s"),
        (60 * 60, "60m"),
        (60 * 60 * 3, "3h"),
        (60 * 60 * 3 + 60, "3h1m"),
        (60 * 60 * 30, "30h"),
        (60 * 60 * 24 * 9, "9d"),
    ],
)
async def test_ages(ago: int, shown: str) -> None:
    server = APIServer(clock=lambda: time.time() - ago)
    pod = server.create("v1", "pods", {"metadata": {"name": "x"}})
    assert row(server.resource("v1", "pods"), pod)[4] == shown
    pod["metadata"]["creationTimestamp"] = "nonsense"
    assert row(server.resource("v1", "pods"), pod)[4] == "<unknown>"


async def test_metadata_only(api: APIClient, server: APIServer) -> None:
    assert (await api.get(PODS, METADATA_LIST)).body["items"] is None
    for name in "ab":
        server.create("v1", "pods", {"metadata": {"name": name}, "spec": {"x": 1}})
    listed = (await api.get(PODS, METADATA_LIST, limit="1")).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert (listed["metadata"]["remainingItemCount"], "continue" in listed["metadata"]) == (1, True)
    (item,) = listed["items"]
    assert set(item) == {"kind", "apiVersion", "metadata"}
    assert (await api.get(f"{PODS}/a", METADATA)).body["kind"] == "PartialObjectMetadata"
    async with api.watch(PODS, METADATA, allowWatchBookmarks="true") as lines:
        events = await lines.drop(server)
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}
    assert events[-1]["type"] == "BOOKMARK"


async def test_component_statuses_are_deprecated_and_read_only(api: APIClient) -> None:
    listed = await api.get("/api/v1/componentstatuses")
    assert listed.body["items"] == []
    assert listed.headers["Warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'
    assert (await api.post("/api/v1/componentstatuses", {"metadata": {"name": "a"}})).status == 405


async def test_built_in_resources_have_hashes_of_their_storage_versions(api: APIClient) -> None:
    resources = (await api.get("/apis/apps/v1")).body["resources"]
    hashes = {resource["name"]: resource.get("storageVersionHash") for resource in resources}
    assert hashes["deployments"] == "8aSe+NMegvE="  # as on every real server
    assert hashes["deployments/status"] is None


async def test_the_core_group_names_the_servers_address(api: APIClient) -> None:
    (address,) = (await api.get("/api")).body["serverAddressByClientCIDRs"]
    assert address["serverAddress"].startswith("127.0.0.1:")
