"""Objects from YAML and JSON files, applied in an order in which each finds what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..client import Client
from ..errors import AioInformerError, ConfigError
from ..resources import Resource

SUFFIXES = (".yaml", ".yml", ".json")

FIRST = (
    "CustomResourceDefinition", "Namespace", "StorageClass", "PriorityClass", "ServiceAccount", "Role", "ClusterRole",
)  # fmt: skip
"""Kinds that others need, in the order in which they are applied."""

DEFINITION = "CustomResourceDefinition"
TIMEOUT = 30.0
"""Seconds until a definition must be served."""


class Manifest(NamedTuple):
    """An object of a file.

    Attributes:
        source: The file, and the number of the document in it.
    """

    source: str
    obj: dict[str, Any]


def read_manifests(path: Path) -> list[Manifest]:
    """Return the objects of a file, or of all files of a folder and the folders in it.

    Raises:
        ConfigError: There are none, or a file cannot be read, or has something that is no object.
    """
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES) if path.is_dir() else [path]
    manifests = [manifest for file in files for manifest in _read(file)]
    if not manifests:
        raise ConfigError(f"{path}: no objects in files that end with {', '.join(SUFFIXES)}")
    return manifests


def _read(file: Path) -> Iterator[Manifest]:
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{file}: nested too deeply") from error
    for number, document in enumerate(documents, 1):
        source = f"{file}, document {number}"
        if document is not None:
            yield from (Manifest(source, obj) for obj in _objects(source, document))


def _objects(source: str, document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: not an object: {document!r:.60}")
    if document.get("kind") == "List" and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(source, item)
        return
    metadata = document.get("metadata")
    missing = [name for name in ("apiVersion", "kind") if not isinstance(document.get(name), str)]
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        missing.append("metadata.name")
    if missing:
        raise ConfigError(f"{source}: the object has no {' and no '.join(missing)}")
    yield document


async def apply_manifests(client: Client, manifests: Iterable[Manifest], field_manager: str) -> None:
    """Apply objects; definitions first, then what else others need.

    Raises:
        ConfigError: The server does not know a kind.
        AioInformerError: The server refused an object; the error names the file.
    """
    for source, obj in sorted(manifests, key=lambda manifest: _rank(manifest.obj["kind"])):
        try:
            await _apply(client, obj, field_manager)
        except AioInformerError as error:
            raise ConfigError(f"{source}: {obj['kind']} {obj['metadata']['name']}: {error}") from error


async def _apply(client: Client, obj: dict[str, Any], field_manager: str) -> None:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind, name = obj["kind"].lower(), obj["metadata"]["name"]
    api_resource = await client.discovery.find(f"{kind}.{version}.{group}" if group else f"{kind}.{version}")
    if api_resource.namespaced:
        obj = {**obj, "metadata": {"namespace": client.namespace, **obj["metadata"]}}
    resource = Resource(client, api_resource, field_manager=field_manager)
    await resource.apply(obj, force=True)
    if obj["kind"] == DEFINITION:
        await resource.wait_for(name, "condition=Established", TIMEOUT)


def _rank(kind: str) -> int:
    return FIRST.index(kind) if kind in FIRST else len(FIRST)
