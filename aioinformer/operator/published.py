"""CustomResourceDefinitions as the server publishes them for all users: by discovery and OpenAPI v3.

An operator's account may not read CustomResourceDefinitions, and what is missing here does not matter to it.
"""

from __future__ import annotations

from typing import Any

from ..client import Client
from ..errors import ApiError
from .reviews import TIMEOUT

Object = dict[str, Any]

_OWN = ("apiVersion", "kind", "metadata")
"""Fields of all objects, which the server describes by itself."""


async def published_definition(client: Client, wanted: Object) -> Object | None:
    """Return what the server publishes of a definition, None if it serves no version of it.

    What it does not publish is as in the wanted definition.

    Args:
        client: Of the server.
        wanted: The definition of the classes.

    Raises:
        AioInformerError: The server does not answer.
    """
    spec = wanted["spec"]
    versions, scope = [], spec["scope"]
    for version in spec["versions"]:
        path = f"apis/{spec['group']}/{version['name']}"
        try:
            resources = (await client.get_json(f"/{path}", timeout=TIMEOUT))["resources"]
            document = await client.get_json(f"/openapi/v3/{path}", timeout=TIMEOUT)
        except ApiError as error:
            if error.status == 404:
                continue
            raise
        served = {resource["name"]: resource for resource in resources}
        plural = spec["names"]["plural"]
        if plural not in served:
            continue
        scope = "Namespaced" if served[plural]["namespaced"] else "Cluster"
        versions.append(_published_version(version, plural, served, document))
    if not versions:
        return None
    conversion = {"strategy": "Webhook"} if len(spec["versions"]) > 1 else {}  # not published
    return {**wanted, "spec": {**spec, "scope": scope, "versions": versions, "conversion": conversion}}


def _published_version(version: Object, plural: str, served: Object, document: Object) -> Object:
    """Return a version with the schema and the subresources that the server has."""
    declared = version.get("subresources") or {}
    subresources = {
        name: declared.get(name, {}) for name in ("status", "scale") if f"{plural}/{name}" in served
    }
    schema = {"openAPIV3Schema": _schema_of(served[plural]["kind"], document, version)}
    return {**version, "schema": schema, "subresources": subresources}


def _schema_of(kind: str, document: Object, version: Object) -> Object:
    """Return the schema of a kind, with its own fields alone as they are in a definition."""
    for schema in (document.get("components") or {}).get("schemas", {}).values():
        kinds = schema.get("x-kubernetes-group-version-kind") or ()
        if any(one["kind"] == kind for one in kinds):
            break
    else:
        return {}
    wanted = version["schema"]["openAPIV3Schema"]
    properties = {name: field for name, field in (schema.get("properties") or {}).items() if name not in _OWN}
    own = {name: field for name, field in (wanted.get("properties") or {}).items() if name in _OWN}
    published = {name: value for name, value in schema.items() if name != "x-kubernetes-group-version-kind"}
    return {**published, "properties": {**own, **properties}}
