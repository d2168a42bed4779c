"""Discovery: groups, versions, resources."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from aioinformer.testing import errors
from aioinformer.testing.http.answers import headers
from aioinformer.testing.http.encodings import JSON
from aioinformer.testing.http.negotiation import encoding_of_document

if TYPE_CHECKING:
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import Registry, ResourceType

_AGGREGATED = "APIGroupDiscoveryList"


class Discovery:
    """Answers the paths below `/api` and `/apis` without a resource."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def knows(self, group: str, version: str) -> bool:
        """Return whether a group's version has any resource."""
        return version in self._registry.group_versions().get(group, ())

    def answer(self, request: Request, accept: str, url: str) -> web.Response:
        """Return the answer to a path, or a 404.

        Args:
            request: The request.
            accept: Its Accept header.
            url: The server's URL, as the client sees it.

        Raises:
            StatusError: 404 for a version that the server lacks, 406.
        """
        path = request.path.rstrip("/")
        if path in ("/api", "/apis"):
            return self._root(path, accept, url)
        document = self._group_document(path, accept)
        return web.Response(status=404, text="404 page not found\n") if document is None else document

    def _group_document(self, path: str, accept: str) -> web.Response | None:
        """Return the document of a group or of its version, or None for another path."""
        parts = path.strip("/").split("/")
        if parts[0] not in ("api", "apis"):
            return None
        if len(parts) == 2 and parts[0] == "apis" and parts[1] in self._registry.group_versions():
            return _document({"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}, accept)
        group, version = _group_version(parts)
        if self.knows(group, version):
            return _document(self._resources(group, version), accept)
        if version and self._registry.has_builtin(group):
            raise errors.path_not_found()
        return None

    def _root(self, path: str, accept: str, url: str) -> web.Response:
        if _AGGREGATED in accept:
            items = [
                self._aggregate(group)
                for group in self._registry.group_versions()
                if (group == "") == (path == "/api")
            ]
            listed = {
                "kind": _AGGREGATED,
                "apiVersion": "apidiscovery.k8s.io/v2",
                "metadata": {},
                "items": items,
            }
            return show_json(listed, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        if path == "/api":
            address = {"clientCIDR": "0.0.0.0/0", "serverAddress": url.partition("://")[2]}
            known = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
            return _document(known, accept)
        groups = [self._group(name) for name in self._registry.group_versions() if name]
        return _document({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}, accept)

    def _group(self, group: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._registry.group_versions()[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> dict[str, Any]:
        listed = []
        for resource in self._registry.of_version(group, version):
            entry = {
                "name": resource.plural,
                "singularName": _singular(resource),
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(resource.verbs),
                **_other_names(resource),
            }
            if "watch" in resource.verbs and not resource.custom:
                entry["storageVersionHash"] = _storage_hash(resource)
            listed.append(entry)
            for name in resource.subresources:
                described = {
                    "name": f"{resource.plural}/{name}",
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    **msgspec.to_builtins(resource.subresource(name)),
                }
                listed.append(described)
        return {
            "kind": "APIResourceList",
            **({"apiVersion": "v1"} if group else {}),  # as the real server has it
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": listed,
        }

    def _aggregate(self, group: str) -> dict[str, Any]:
        versions = []
        for version in self._registry.group_versions()[group]:
            resources = [*map(_aggregate, self._registry.of_version(group, version))]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregate(resource: ResourceType) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": _singular(resource),
        "verbs": list(resource.verbs),
        **_other_names(resource),
    }
    if resource.subresources:
        entry["subresources"] = []
        for name in resource.subresources:
            subresource = resource.subresource(name)
            kind = {
                "group": subresource.group or resource.group,
                "version": subresource.version or resource.version,
                "kind": subresource.kind,
            }
            described = {"subresource": name, "responseKind": kind, "verbs": list(subresource.verbs)}
            entry["subresources"].append(described)
    return entry


def _other_names(resource: ResourceType) -> dict[str, list[str]]:
    """Return the names by which kubectl finds a resource, too."""
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {field: values for field, values in names.items() if values}


def _singular(resource: ResourceType) -> str:
    return resource.singular or resource.kind.lower()


def _storage_hash(resource: ResourceType) -> str:
    """Return what tells clients that the objects are stored in another version than before."""
    kind = f"{resource.stored_group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(kind.encode()).digest()[:8]).decode()


def _group_version(parts: list[str]) -> tuple[str, str]:
    """Return the group and version of a path below /api or /apis."""
    if len(parts) == 2 and parts[0] == "api":
        return "", parts[1]
    if len(parts) == 3 and parts[0] == "apis":
        return parts[1], parts[2]
    return "", ""


def _document(value: dict[str, Any], accept: str) -> web.Response:
    """Return a document as JSON or YAML."""
    encoding = encoding_of_document(accept)
    return web.Response(body=encoding.body(value), headers=headers(encoding.media_type))


def show_json(value: Any, content_type: str = "application/json") -> web.Response:
    """Return an answer with any JSON."""
    return web.Response(body=JSON.body(value), headers=headers(content_type))
