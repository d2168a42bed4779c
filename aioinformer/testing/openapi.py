"""OpenAPI v3 for `kubectl apply`: writes support `fieldValidation`; there are no schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioinformer.testing.resources import Registry, ResourceType

_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def index(registry: Registry) -> dict[str, Any]:
    """Return the index of the documents."""
    paths: dict[str, Any] = {}
    for group, versions in registry.group_versions().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> dict[str, Any]:
    """Return the document of a group's version."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    for resource in registry:
        if (resource.group, resource.version) != (group, version):
            continue
        kind = {"group": group, "version": version, "kind": resource.kind}
        schemas[_schema_name(resource)] = {
            "type": "object",
            "x-kubernetes-group-version-kind": [kind],
            "x-kubernetes-preserve-unknown-fields": True,
        }
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        collection = f"{base}{scope}/{resource.plural}"
        paths[collection] = {"post": _operation("post", kind), "get": _operation("list", kind)}
        paths[f"{collection}/{{name}}"] = {
            "get": _operation("get", kind),
            "put": _operation("put", kind),
            "patch": _operation("patch", kind),
            "delete": _operation("delete", kind),
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(action: str, kind: dict[str, str]) -> dict[str, Any]:
    return {
        "parameters": _PARAMETERS,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }


def _schema_name(resource: ResourceType) -> str:
    group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{group}.{resource.version}.{resource.kind}"
