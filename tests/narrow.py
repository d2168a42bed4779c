"""An object type that not every object fits, and objects that do and do not fit it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from aioinformer.cache import UndecodableObject
from aioinformer.objects.undecodable import undecodable


class Metadata(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    finalizers: list[str] = []
    deletion_timestamp: str | None = None
    owner_references: list[dict[str, Any]] = []


class Spec(msgspec.Struct):
    node: str


class Narrow(msgspec.Struct):
    """A pod that names its node."""

    metadata: Metadata
    spec: Spec


def raw(name: str, version: int, node: object = "n1", **metadata: Any) -> bytes:
    """Return an object's bytes. It fits if the node is a string."""
    own = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**own, **metadata}, "spec": {"node": node}}
    ).encode()


def fit(name: str, version: int, node: str = "n1", **metadata: Any) -> Narrow:
    """Return an object that fits."""
    return msgspec.json.decode(raw(name, version, node, **metadata), type=Narrow)


def unfit(name: str, version: int, **metadata: Any) -> UndecodableObject:
    """Return an object that does not fit."""
    return undecodable(raw(name, version, 7, **metadata), None, f"{name} does not fit")
