"""What users of the storage operator create."""

from __future__ import annotations

from typing import Any

from examples.storage_operator import operator

Object = dict[str, Any]

SERVER = "10.0.0.7"
API_VERSION = "storage.example.com/v1"
PROTECTION = "abc/cave-protection"

DEFINITIONS: list[Object] = operator.definitions()

API_VERSIONS = {"caves": API_VERSION, "backends": API_VERSION, "pods": "v1"}


def cave(name: str, volume: str = "") -> Object:
    spec = {"server": SERVER, "volume": volume or name}
    return {"apiVersion": API_VERSION, "kind": "Cave", "metadata": {"name": name}, "spec": spec}


def backend(name: str, volume: str, replicas: int = 1) -> Object:
    spec = {"server": SERVER, "volume": volume, "image": "example.com/web:1", "replicas": replicas}
    return {"apiVersion": API_VERSION, "kind": "Backend", "metadata": {"name": name}, "spec": spec}


def csi_pod(name: str, volume: str) -> Object:
    """A pod that another client created."""
    attributes = {"server": SERVER, "share": f"/{volume}"}
    csi = {"driver": "nfs.csi.k8s.io", "volumeAttributes": attributes}
    spec = {
        "containers": [{"name": "main", "image": "example.com/main"}],
        "volumes": [{"name": "data", "csi": csi}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def mounts(pod: Object) -> set[str]:
    """The volumes on the server that a pod mounts: those of tests are all on one server."""
    names = set()
    for volume in pod["spec"].get("volumes") or []:
        if "nfs" in volume:
            names.add(volume["nfs"]["path"].strip("/"))
        elif "csi" in volume:
            names.add(volume["csi"]["volumeAttributes"]["share"].strip("/"))
    return names


def is_gated(pod: Object) -> bool:
    return bool(pod["spec"].get("schedulingGates"))
