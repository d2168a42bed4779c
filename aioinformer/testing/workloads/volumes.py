"""Volumes: claims are bound, to a volume that fits or to a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.controllers.controller import ClusterController
from aioinformer.testing.objects import Object
from aioinformer.testing.schema.scalars import parse_quantity
from aioinformer.testing.storage.builtin import CLAIMS, VOLUMES
from aioinformer.testing.storage.codec import load, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent

_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
_PROVISIONED = {"pv.kubernetes.io/provisioned-by": "embedded"}


class Volumes(ClusterController):
    """Binds each claim to the smallest volume that fits, or provisions one if the claim may have a class.

    A claim with `storageClassName: ""` stays Pending until a volume fits.
    """

    name = "volumes"

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a changed claim or volume."""
        if event.current is None:
            return
        if resource is CLAIMS:
            self.add(self._bind, event.key)
        elif resource is VOLUMES:
            self.add(self._settle, event.key)

    def _settle(self, key: str) -> Iterator[None]:
        """Bind a new volume to its claim, or make it Available for all; delete a released one, if it says so."""
        stored = self.cluster.collection(VOLUMES).objects.get(key)
        if stored is None or stored.terminating:
            return
        volume = load(VOLUMES, stored)
        phase = (volume.get("status") or {}).get("phase")
        if phase == "Released" and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.delete(VOLUMES, stored)
            yield
        elif phase in (None, "", "Pending"):
            if owner := volume["spec"].get("claimRef"):
                self.add(self._bind, f"{owner.get('namespace', '')}/{owner.get('name', '')}")
            else:
                self.set_status(VOLUMES, "", stored.name, {"phase": "Available"})
                for claim_key in self.cluster.collection(CLAIMS).objects:
                    self.add(self._bind, claim_key)
            yield

    def _bind(self, key: str) -> Iterator[None]:
        stored = self.cluster.collection(CLAIMS).objects.get(key)
        if stored is None or stored.terminating:
            return
        claim = load(CLAIMS, stored)
        if (claim.get("status") or {}).get("phase") == "Bound":
            return
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": stored.namespace,
            "name": stored.name,
            "uid": stored.uid,
        }
        volume = self._find_fitting(claim)
        if (
            volume is None
            and claim["spec"].get("storageClassName") != ""
            and not claim["spec"].get("volumeName")
        ):
            volume = _provision(claim, reference)
            self.cluster.create(VOLUMES, "", volume)
            yield
        if volume is None:
            self.set_status(CLAIMS, stored.namespace, stored.name, {"phase": "Pending"})
            return
        name = volume["metadata"]["name"]
        self.cluster.modify(VOLUMES, "", name, lambda obj: _with_spec(obj, claimRef=reference))
        self.set_status(VOLUMES, "", name, {"phase": "Bound"})
        yield
        self.cluster.modify(
            CLAIMS, stored.namespace, stored.name, lambda obj: _with_spec(_annotate(obj), volumeName=name)
        )
        modes, capacity = volume["spec"].get("accessModes") or [], volume["spec"].get("capacity") or {}
        status = {"phase": "Bound", "accessModes": modes, "capacity": capacity}
        self.set_status(CLAIMS, stored.namespace, stored.name, status)
        yield

    def _find_fitting(self, claim: Object) -> Object | None:
        """Return the volume that the claim names or that names the claim, or else the smallest that fits."""
        spec, volumes = claim["spec"], []
        wanted = _size(spec.get("resources", {}).get("requests"))
        for stored in self.cluster.collection(VOLUMES).objects.values():
            volume = read(VOLUMES, stored)
            owner = volume["spec"].get("claimRef") or {}
            metadata = claim["metadata"]
            is_own = (owner.get("namespace"), owner.get("name")) == (metadata["namespace"], metadata["name"])
            if stored.terminating or (
                owner and (not is_own or owner.get("uid") not in (None, metadata["uid"]))
            ):
                continue
            if owner or stored.name == spec.get("volumeName"):
                return volume
            if (
                not spec.get("volumeName")
                and (volume["spec"].get("storageClassName") or "") == (spec.get("storageClassName") or "")
                and set(spec.get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())
                and _size(volume["spec"].get("capacity")) >= wanted
            ):
                volumes.append(volume)
        return min(volumes, key=lambda candidate: _size(candidate["spec"].get("capacity")), default=None)


def _provision(claim: Object, reference: Object) -> Object:
    spec, name = claim["spec"], f"pvc-{claim['metadata']['uid']}"
    volume = {
        "capacity": (spec.get("resources") or {}).get("requests") or {},
        "accessModes": spec.get("accessModes") or [],
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": reference,
        "hostPath": {"path": f"/tmp/{name}"},
    }
    if spec.get("storageClassName"):
        volume["storageClassName"] = spec["storageClassName"]
    return {"metadata": {"name": name, "annotations": dict(_PROVISIONED)}, "spec": volume}


def _annotate(obj: Object) -> Object:
    obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), **_BOUND}
    return obj


def _with_spec(obj: Object, **fields: object) -> Object:
    return {**obj, "spec": {**obj["spec"], **fields}}


def _size(quantities: Object | None) -> Fraction:
    return parse_quantity(str((quantities or {}).get("storage", "0")))[0]
