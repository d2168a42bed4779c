"""Discovery: versions, groups, resources, health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from aioinformer.testing import errors
from aioinformer.testing.openapi import document, index
from aioinformer.testing.resources import verbs_of

if TYPE_CHECKING:
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import Registry, ResourceType

_VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "aioinformer/testing",
}

_HEALTH = frozenset(["/healthz", "/livez", "/readyz"])
PUBLIC = _HEALTH | {"/version"}
"""Paths that need no token."""

_AGGREGATED = "APIGroupDiscoveryList"
_OPENAPI_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class Discovery:
    """Answers the paths without a resource."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def knows(self, group: str, version: str) -> bool:
        """Return whether a group's version has any resource."""
        return version in self._registry.group_versions().get(group, ())

    def has_builtin_group(self, group: str) -> bool:
        """Return whether a group has a built-in resource; unknown paths in it then get a Status."""
        return any(resource.group == group and not resource.custom for resource in self._registry)

    def answer(self, request: Request, accept: str) -> web.Response:
        """Return the answer to a path, or a 404.

        Raises:
            StatusError: 405 for writing methods.
        """
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        path = request.path.rstrip("/")
        if path in _HEALTH:
            return web.Response(text="ok")
        if not path:
            return _json({"paths": sorted([*PUBLIC, "/api", "/apis", "/openapi/v2", "/openapi/v3"])})
        if path == "/version":
            return _json(_VERSION)
        if path in ("/api", "/apis"):
            return self._root(path, accept)
        if path == "/openapi/v3":
            return _json(index(self._registry))
        if path == "/openapi/v2":
            return _openapi_v2(accept)
        parts = path.strip("/").split("/")
        if path.startswith("/openapi/v3/"):
            group, version = _group_version(parts[2:])
            if self.knows(group, version):
                return _json(document(self._registry, group, version))
        elif parts[0] == "api" or len(parts) == 3:
            group, version = _group_version(parts)
            if self.knows(group, version):
                return _json(self._resources(group, version))
            if self.has_builtin_group(group):
                raise errors.path_not_found()
        elif len(parts) == 2 and parts[0] == "apis" and parts[1] in self._registry.group_versions():
            return _json({"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])})
        return web.Response(status=404, text="404 page not found\n")

    def _root(self, path: str, accept: str) -> web.Response:
        if _AGGREGATED in accept:
            items = [
                self._aggregated(group)
                for group in self._registry.group_versions()
                if (group == "") == (path == "/api")
            ]
            listed = {
                "kind": _AGGREGATED,
                "apiVersion": "apidiscovery.k8s.io/v2",
                "metadata": {},
                "items": items,
            }
            return _json(listed, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        if path == "/api":
            return _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        groups = [self._group(name) for name in self._registry.group_versions() if name]
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _group(self, group: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._registry.group_versions()[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> dict[str, Any]:
        listed = []
        for resource in self._registry:
            if (resource.group, resource.version) != (group, version):
                continue
            entry = {
                "name": resource.plural,
                "singularName": _singular(resource),
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(resource.verbs),
            }
            if resource.short_names:
                entry["shortNames"] = list(resource.short_names)
            if resource.categories:
                entry["categories"] = list(resource.categories)
            listed.append(entry)
            for name in resource.subresources:
                described = {
                    "name": f"{resource.plural}/{name}",
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    **_subresource_kind(resource, name),
                    "verbs": list(verbs_of(name)),
                }
                listed.append(described)
        return {
            "kind": "APIResourceList",
            **({"apiVersion": "v1"} if group else {}),  # as the real server has it
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": listed,
        }

    def _aggregated(self, group: str) -> dict[str, Any]:
        versions = []
        for version in self._registry.group_versions()[group]:
            resources = [
                self._aggregated_resource(resource)
                for resource in self._registry
                if (resource.group, resource.version) == (group, version)
            ]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    def _aggregated_resource(self, resource: ResourceType) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "resource": resource.plural,
            "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": _singular(resource),
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        if resource.subresources:
            entry["subresources"] = []
            for name in resource.subresources:
                described = _subresource_kind(resource, name)
                kind = {
                    "group": described.get("group", resource.group),
                    "version": described.get("version", resource.version),
                    "kind": described["kind"],
                }
                entry["subresources"].append(
                    {"subresource": name, "responseKind": kind, "verbs": list(verbs_of(name))}
                )
        return entry


def _singular(resource: ResourceType) -> str:
    return resource.singular or resource.kind.lower()


def _subresource_kind(resource: ResourceType, name: str) -> dict[str, str]:
    match name:
        case "scale":
            return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        case "eviction":
            return {"group": "policy", "version": "v1", "kind": "Eviction"}
        case "binding":
            return {"kind": "Binding"}
    return {"kind": resource.kind}


def _group_version(parts: list[str]) -> tuple[str, str]:
    """Return the group and version of a path below /api or /apis."""
    if len(parts) == 2 and parts[0] == "api":
        return "", parts[1]
    if len(parts) == 3 and parts[0] == "apis":
        return parts[1], parts[2]
    return "", ""


def _openapi_v2(accept: str) -> web.Response:
    """Return an empty schema; kubectl requests it as protobuf for a List or an unknown kind."""
    if accept.replace("@", ".").startswith(_OPENAPI_V2_PROTOBUF):
        return web.Response(body=b"\x0a\x032.0", content_type=_OPENAPI_V2_PROTOBUF)  # field 1, "swagger"
    if "application/json" not in accept and "*/*" not in accept and accept:
        return web.Response(status=406, text="only application/json is served\n")
    described = {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": _VERSION["gitVersion"]},
        "paths": {},
        "definitions": {},
    }
    return _json(described)


def _json(value: Any, content_type: str = "application/json") -> web.Response:
    headers = {"Content-Type": content_type, "Cache-Control": "no-cache, private"}
    return web.Response(body=msgspec.json.encode(value) + b"\n", headers=headers)
