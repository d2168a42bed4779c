"""OpenAPI v3: the index, the documents and their hashes; `tests/e2e` compares the schemas with the real server's."""

from __future__ import annotations

from typing import Any

from aioinformer.testing import APIServer, ResourceType
from tests.testing.client import APIClient

DEFINITION: dict[str, Any] = {
    "metadata": {"name": "caves.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "caves", "kind": "Cave"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"port": {"x-kubernetes-int-or-string": True}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


async def url_of(api: APIClient, path: str) -> str:
    url: str = (await api.get("/openapi/v3")).body["paths"][path]["serverRelativeURL"]
    return url


async def test_a_document_is_found_by_its_hash(api: APIClient) -> None:
    url = await url_of(api, "apis/apps/v1")
    path, _, asked = url.partition("?hash=")
    document = await api.get(url)
    assert document.headers["Etag"] == f'"{asked}"'
    assert document.headers["Cache-Control"] == "public, immutable"
    assert (await api.get(path)).headers["Cache-Control"] == "no-cache, private"
    async with api.session.get(f"{api.url}{path}?hash=OLD", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (301, url)
    assert (await api.get(path, {"Accept": "application/yaml"})).status == 406
    assert (await api.get("/openapi/v3/apis/nope/v1")).status == 404


async def test_a_custom_resource_has_the_schema_of_its_definition(api: APIClient, server: APIServer) -> None:
    server.create("apiextensions.k8s.io/v1", "customresourcedefinitions", DEFINITION)
    url = await url_of(api, "apis/example.com/v1")
    schemas = (await api.get(url)).body["components"]["schemas"]
    cave = schemas["com.example.v1.Cave"]
    assert cave["properties"]["spec"]["properties"]["port"]["anyOf"] == [
        {"type": "integer"},
        {"type": "string"},
    ]
    assert cave["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Cave"}
    ]
    assert schemas["com.example.v1.CaveList"]["properties"]["items"]["items"]["$ref"].endswith("v1.Cave")
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference" in schemas
    change = [
        {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "A cave."}
    ]
    server.patch("apiextensions.k8s.io/v1", "customresourcedefinitions", "caves.example.com", change)
    assert await url_of(api, "apis/example.com/v1") != url


async def test_a_registered_resource_may_have_any_field(api: APIClient, server: APIServer) -> None:
    server.register(ResourceType("example.com", "v1", "caves", "Cave"))
    document = (await api.get("/openapi/v3/apis/example.com/v1")).body
    assert (
        document["components"]["schemas"]["com.example.v1.Cave"]["x-kubernetes-preserve-unknown-fields"]
        is True
    )
