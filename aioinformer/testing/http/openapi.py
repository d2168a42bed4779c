"""OpenAPI v3, and v2 out of it: a document for each version of a group, with the schemas that `kubectl explain` shows.

The schemas of built-in kinds are the real server's (`make schema` writes them); those of custom resources come from
their definitions. The paths have what kubectl looks for: the kinds, and that writes support `fieldValidation`.
"""

from __future__ import annotations

import hashlib
import lzma
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from aiohttp import web

from aioinformer.testing.http import openapi_v2
from aioinformer.testing.storage.builtin import DEFINITIONS
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType

    Schema = dict[str, Any]

_FILE = Path(__file__).parents[1] / "schema" / "openapi.json.xz"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_JSON_TYPES = ("application/json", "application/*", "*/*", "")
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_OPERATION = {"responses": {"200": {"description": "OK"}}}
_WITHOUT_RESOURCES = (".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Document(NamedTuple):
    """A document and the hash of its content."""

    body: bytes
    hash: str


class OpenAPI:
    """Answers requests for OpenAPI v3.

    Args:
        cluster: The resources and the definitions of custom resources.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def answer(self, request: Request, accept: str) -> web.Response | None:
        """Return the answer to a path below `/openapi/v3`, or None for an unknown document."""
        path = request.path.strip("/").removeprefix("openapi/v3").strip("/")
        if not path:
            return web.Response(body=_encode(self._index()), content_type="application/json")
        documents = self._documents()
        if path not in documents:
            return None
        if all(part.partition(";")[0].strip() not in _JSON_TYPES for part in accept.split(",")):
            return web.Response(status=406)
        document = self._document(path, documents[path])
        headers = {"Vary": "Accept", "Etag": f'"{document.hash}"', "Cache-Control": "no-cache, private"}
        if asked := request.query.get("hash"):
            if asked != document.hash:
                return web.Response(status=301, headers={**headers, "Location": _url(path, document)})
            headers["Cache-Control"] = "public, immutable"
            expires = datetime.now(UTC) + timedelta(days=365)
            headers["Expires"] = expires.strftime("%a, %d %b %Y %H:%M:%S UTC")
        return web.Response(body=document.body, content_type="application/json", headers=headers)

    def answer_v2(self, accept: str, version: str) -> web.Response:
        """Return OpenAPI v2 with all schemas."""
        custom = [resource for resource in self._cluster.registry if resource.custom]
        body = _v2(tuple(custom), tuple(map(self._schema, custom)), version)
        if accept.replace("@", ".").startswith(openapi_v2.PROTOBUF):
            return web.Response(body=openapi_v2.protobuf(body), content_type=openapi_v2.PROTOBUF)
        if "application/json" not in accept and "*/*" not in accept and accept:
            return web.Response(status=406, text="only application/json is served\n")
        return web.Response(body=body, content_type="application/json")

    def _index(self) -> dict[str, Any]:
        return {
            "paths": {
                path: {"serverRelativeURL": _url(path, self._document(path, resources))}
                for path, resources in self._documents().items()
            }
        }

    def _documents(self) -> dict[str, list[ResourceType]]:
        """Return the resources of each document by its path."""
        documents: dict[str, list[ResourceType]] = {path: [] for path in _WITHOUT_RESOURCES}
        for resource in self._cluster.registry:
            if resource.group and not resource.custom:
                documents.setdefault(f"apis/{resource.group}", [])
            documents.setdefault(_path(resource), []).append(resource)
        return documents

    def _document(self, path: str, resources: list[ResourceType]) -> Document:
        return _build(path, tuple(resources), tuple(map(self._schema, resources)))

    def _schema(self, resource: ResourceType) -> bytes:
        """Return the schema of a custom resource as its definition has it, or nothing."""
        if not resource.custom:
            return b""
        definition = self._cluster.find(DEFINITIONS, "", resource.group_resource)
        if definition is None:
            return b""
        versions = load(DEFINITIONS, definition)["spec"]["versions"]
        schemas = [version.get("schema") or {} for version in versions if version["name"] == resource.version]
        return _encode(schemas[0].get("openAPIV3Schema") or {}) if schemas else b""


class _BuiltIn(msgspec.Struct):
    """The content of the file.

    Attributes:
        schemas: The schemas of all documents by name.
        documents: The names of the schemas in each document, by its path.
    """

    schemas: dict[str, Any]
    documents: dict[str, list[str]]


@cache
def _builtin() -> _BuiltIn:
    return msgspec.json.decode(lzma.decompress(_FILE.read_bytes()), type=_BuiltIn)


@lru_cache(maxsize=256)
def _build(path: str, resources: tuple[ResourceType, ...], schemas: tuple[bytes, ...]) -> Document:
    """Return the document of a path and its resources, with their definitions' schemas."""
    builtin = _builtin()
    components = {name: builtin.schemas[name] for name in builtin.documents.get(path, [])}
    paths: dict[str, Any] = {} if resources else {f"/{path}/": {"get": _OPERATION}}
    for resource, schema in zip(resources, schemas, strict=True):
        paths |= _paths(resource)
        if resource.custom:
            components |= _custom(resource, msgspec.json.decode(schema or b"{}"))
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": components},
    }
    body = _encode(document)
    return Document(body, hashlib.sha512(body).hexdigest().upper())


@lru_cache(maxsize=4)
def _v2(resources: tuple[ResourceType, ...], schemas: tuple[bytes, ...], version: str) -> bytes:
    """Return OpenAPI v2 with the schemas of all built-in kinds and of these custom resources."""
    definitions = dict(_builtin().schemas)
    for resource, schema in zip(resources, schemas, strict=True):
        definitions |= _custom(resource, msgspec.json.decode(schema or b"{}"))
    return _encode(openapi_v2.document(definitions, version))


def _paths(resource: ResourceType) -> dict[str, Any]:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}

    def operations(**actions: str) -> dict[str, Any]:
        return {
            method: {
                **_OPERATION,
                "parameters": _PARAMETERS,
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": kind,
            }
            for method, action in actions.items()
        }

    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"/{_path(resource)}{scope}/{resource.plural}"
    if not resource.stored:
        return {collection: operations(post="post")}
    return {
        collection: operations(post="post", get="list"),
        f"{collection}/{{name}}": operations(get="get", put="put", patch="patch", delete="delete"),
    }


def _custom(resource: ResourceType, schema: Schema) -> dict[str, Any]:
    """Return the schemas of a custom resource and of its lists, and those that they refer to."""
    builtin = _builtin()
    type_meta = builtin.schemas[f"{_META}.DeleteOptions"]["properties"]
    kind_fields = {name: type_meta[name] for name in ("apiVersion", "kind")}
    conventions = (
        "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
    )
    name = f"{'.'.join(reversed(resource.group.split('.')))}.{resource.version}.{resource.kind}"

    def metadata(kind: str, description: str) -> Schema:
        return {"description": description, "allOf": [{"$ref": f"#/components/schemas/{_META}.{kind}"}]}

    def kinds(kind: str) -> list[dict[str, str]]:
        return [{"group": resource.group, "version": resource.version, "kind": kind}]

    own = {**_with_unions(schema), "x-kubernetes-group-version-kind": kinds(resource.kind)}
    own["type"] = "object"
    if schema:
        properties = own.get("properties") or {}
        own["properties"] = {
            **properties,
            **kind_fields,
            "metadata": metadata("ObjectMeta", f"Standard object's metadata. {conventions}#metadata"),
        }
    else:
        own["x-kubernetes-preserve-unknown-fields"] = True
    listed = {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **kind_fields,
            "items": {
                "description": f"List of {resource.plural}. {conventions}",
                "type": "array",
                "items": {"$ref": f"#/components/schemas/{name}"},
            },
            "metadata": metadata("ListMeta", f"Standard list metadata. {conventions}#types-kinds"),
        },
        "x-kubernetes-group-version-kind": kinds(f"{resource.kind}List"),
    }
    shared = _find_referred(
        [f"{_META}.{meta}" for meta in ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status")]
    )
    return {**shared, name: own, f"{name}List": listed}


def _with_unions(schema: Any) -> Any:
    """Return a definition's schema with the types of each `x-kubernetes-int-or-string`."""
    if isinstance(schema, list):
        return [_with_unions(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: _with_unions(value) for name, value in schema.items()}
    if result.get("x-kubernetes-int-or-string") is True:
        result.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    return result


def _find_referred(names: Iterable[str]) -> dict[str, Any]:
    """Return built-in schemas with all those that they refer to."""
    schemas: dict[str, Any] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in schemas:
            schemas[name] = _builtin().schemas[name]
            waiting += _references(schemas[name])
    return schemas


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for part in schema for name in _references(part)]
    if not isinstance(schema, dict):
        return []
    if isinstance(reference := schema.get("$ref"), str):
        return [reference.rpartition("/")[2]]
    return [name for part in schema.values() for name in _references(part)]


def _path(resource: ResourceType) -> str:
    """Return the path of the document that a resource is in."""
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _url(path: str, document: Document) -> str:
    return f"/openapi/v3/{path}?hash={document.hash}"
