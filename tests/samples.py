"""Sample objects for tests."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from aioinformer import Compression, KubeObject
from aioinformer.cache import TypeMeta
from aioinformer.informer.compression import Compressor

POD = TypeMeta("v1", "Pod")


def pod_dict(name: str = "a", namespace: str = "ns", version: str = "1", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata | more.pop("metadata", {}), **more}


def pod(name: str = "a", namespace: str = "ns", version: str = "1", **more: Any) -> KubeObject:
    return KubeObject.from_bytes(json.dumps(pod_dict(name, namespace, version, **more)).encode())


def configmap(
    name: str = "a", *finalizers: str, namespace: str = "", labels: dict[str, str] | None = None, **data: str
) -> dict[str, Any]:
    """Return what creates a ConfigMap."""
    given = {"namespace": namespace, "labels": labels, "finalizers": list(finalizers)}
    metadata = {"name": name, **{field: value for field, value in given.items() if value}}
    return {"metadata": metadata, "data": data}


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    finalizers: list[str] | None = None


class Pod(msgspec.Struct, rename="camel"):
    metadata: Meta
    api_version: str = ""
    kind: str = ""
    spec: dict[str, Any] = {}


class LoosePod(msgspec.Struct):
    """An object whose metadata is a dict."""

    metadata: dict[str, Any]


class WireMeta(msgspec.Struct):
    name: str
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815


class WirePod(msgspec.Struct):
    """An object whose metadata has camelCase attributes, as in JSON."""

    metadata: WireMeta


SMALL = Compression(dictionary_size=64, samples=8)
"""A compression that starts with the second object."""

LONG = {f"field-{n}": f"some value {n % 3}" for n in range(100)}


def compress_object(obj: KubeObject) -> KubeObject:
    """Return an object in the form that a compressing store keeps."""
    compressor = Compressor(SMALL)
    compressor.pack(pod("first", spec=LONG))
    packed: KubeObject = compressor.pack(obj)
    return packed
