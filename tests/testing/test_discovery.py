"""Discovery, health, tables and metadata: what kubectl and others ask besides objects."""

from __future__ import annotations

import re

import pytest

from aioinformer.testing import APIServer, ResourceType

from .client import APIClient

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
    assert [each["version"] for each in group["versions"]] == ordered
    assert group["preferredVersion"] == {"groupVersion": "example.com/v10", "version": "v10"}
    (item,) = [
        each
        for each in (await api.get("/apis", AGGREGATED)).body["items"]
        if each["metadata"]["name"] == "example.com"
    ]
    assert [each["version"] for each in item["versions"]] == ordered


async def test_aggregated_discovery(api: APIClient) -> None:
    answer = await api.get("/apis", AGGREGATED)
    assert answer.headers["Content-Type"] == AGGREGATED["Accept"].split(",")[0]
    assert "apps" in [item["metadata"]["name"] for item in answer.body["items"]]
    (core,) = (await api.get("/api", AGGREGATED)).body["items"]
    (version,) = core["versions"]
    namespaces = next(each for each in version["resources"] if each["resource"] == "namespaces")
    assert (namespaces["scope"], namespaces["responseKind"]["kind"]) == ("Cluster", "Namespace")
    assert [each["subresource"] for each in namespaces["subresources"]] == ["status", "finalize"]


async def test_openapi_says_that_fields_are_validated(api: APIClient) -> None:
    index = (await api.get("/openapi/v3")).body["paths"]
    document = (await api.get(index["apis/apps/v1"]["serverRelativeURL"])).body
    operation = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    assert operation["x-kubernetes-group-version-kind"]["kind"] == "Deployment"
    assert (await api.get("/openapi/v2")).body["swagger"] == "2.0"
    assert (
        await api.get("/openapi/v2", {"Accept": "application/com.github.proto-openapi.spec.v2"})
    ).status == 406


async def test_a_table(api: APIClient, server: APIServer) -> None:
    server.create(
        "v1",
        "pods",
        {
            "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "c"}, {"name": "d"}]},
            "status": {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 3}]},
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
        first, second = await lines.dropped(server)
    assert (first["type"], second["type"]) == ("ADDED", "BOOKMARK")
    assert "columnDefinitions" in first["object"]
    assert "columnDefinitions" not in second["object"]


@pytest.mark.parametrize(
    ("api_version", "plural", "content", "cells"),
    [
        ("v1", "configmaps", {"data": {"a": "1"}}, [1]),
        ("v1", "secrets", {"data": {}}, ["Opaque", 0]),
        ("v1", "namespaces", {}, ["Active"]),
        ("v1", "nodes", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, ["Ready", ""]),
        ("v1", "nodes", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, ["NotReady", ""]),
        ("v1", "nodes", {}, ["Unknown", ""]),
        ("v1", "services", {"spec": {"ports": [{"port": 80}]}}, ["ClusterIP", "<none>", "80/TCP"]),
        ("apps/v1", "deployments", {"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}, ["1/2", 0, 0]),
        ("v1", "pods", {"status": {"reason": "Evicted"}}, ["0/0", "Evicted", "0"]),
        ("v1", "endpoints", {}, []),
    ],
)
async def test_the_cells_of_a_kind(
    api: APIClient,
    server: APIServer,
    api_version: str,
    plural: str,
    content: dict[str, object],
    cells: list[object],
) -> None:
    server.create(api_version, plural, {"metadata": {"name": "x"}, **content})
    prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    rows = (await api.get(f"{prefix}/{plural}", TABLE, fieldSelector="metadata.name=x")).body["rows"]
    shown = rows[0]["cells"]
    age = next(index for index, cell in enumerate(shown) if re.fullmatch("[0-9]s", str(cell)))
    assert shown[1:age] == cells


async def test_the_columns_of_a_custom_resource(api: APIClient, server: APIServer) -> None:
    columns = (("Depth", ".spec.depth", "integer", 0), ("Age", ".metadata.creationTimestamp", "date", 0))
    server.register(ResourceType("example.com", "v1", "caves", "Cave", columns=columns))
    server.create("example.com/v1", "caves", {"metadata": {"name": "deep"}, "spec": {"depth": 7}})
    server.create("example.com/v1", "caves", {"metadata": {"name": "odd"}, "spec": "none"})
    table = (await api.get("/apis/example.com/v1/caves", TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Depth", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["deep", 7], ["odd", None]]


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
    import time

    from aioinformer.testing.tables import row

    server = APIServer(clock=lambda: time.time() - ago)
    pod = server.create("v1", "pods", {"metadata": {"name": "x"}})
    assert row(server.resource("v1", "pods"), pod)[4] == shown
    pod["metadata"]["creationTimestamp"] = "nonsense"
    assert row(server.resource("v1", "pods"), pod)[4] == "<unknown>"


async def test_metadata_alone(api: APIClient, server: APIServer) -> None:
    for name in "ab":
        server.create("v1", "pods", {"metadata": {"name": name}, "spec": {"x": 1}})
    listed = (await api.get(PODS, METADATA_LIST, limit="1")).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert (listed["metadata"]["remainingItemCount"], "continue" in listed["metadata"]) == (1, True)
    (item,) = listed["items"]
    assert set(item) == {"kind", "apiVersion", "metadata"}
    assert (await api.get(f"{PODS}/a", METADATA)).body["kind"] == "PartialObjectMetadata"
    async with api.watch(PODS, METADATA, allowWatchBookmarks="true") as lines:
        events = await lines.dropped(server)
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}
    assert events[-1]["type"] == "BOOKMARK"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/*", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/json;as=Nonsense", 406),
        ("text/csv", 406),
    ],
)
async def test_what_is_accepted(api: APIClient, accept: str, status: int) -> None:
    assert (await api.get(PODS, {"Accept": accept})).status == status
