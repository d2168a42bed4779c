"""The cells of volumes, claims and storage classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.tables.formats import at, join, name_of_class, size

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.tables.formats import Cell

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _phase(obj: Object) -> str:
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else str(at("status.phase")(obj))


def _modes(path: str) -> Cell:
    return lambda obj: ",".join(
        short for mode, short in _MODES.items() if mode in (at(path, None)(obj) or ())
    )


def _if_bound(cell: Cell) -> Cell:
    """Return a cell of a claim that is empty until it has a volume."""
    return lambda claim: cell(claim) if at("spec.volumeName")(claim) else ""


def _class(obj: Object) -> Any:
    annotated = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return at("spec.storageClassName")(obj) if annotated is None else annotated


def _claim(volume: Object) -> str:
    claim = at("spec.claimRef", None)(volume)
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _audiences(driver: Object) -> str:
    requests = at("spec.tokenRequests", None)(driver)
    return "<unset>" if requests is None else ",".join(request["audience"] for request in requests)


_VOLUME: dict[str, Cell] = {
    "Status": _phase,
    "StorageClass": _class,
    "VolumeAttributesClass": at("spec.volumeAttributesClassName", "<unset>"),
    "VolumeMode": at("spec.volumeMode"),
}

STORAGE: dict[str, dict[str, Cell]] = {
    "CSIDriver.storage.k8s.io": {
        "AttachRequired": at("spec.attachRequired"),
        "PodInfoOnMount": at("spec.podInfoOnMount"),
        "StorageCapacity": at("spec.storageCapacity"),
        "TokenRequests": _audiences,
        "RequiresRepublish": at("spec.requiresRepublish"),
        "Modes": join("spec.volumeLifecycleModes", "<none>"),
    },
    "CSINode.storage.k8s.io": {"Drivers": size("spec.drivers")},
    "CSIStorageCapacity.storage.k8s.io": {
        "StorageClassName": at("storageClassName"),
        "Capacity": at("capacity", "<unset>"),
    },
    "PersistentVolume": {
        **_VOLUME,
        "Capacity": at("spec.capacity.storage", "0"),
        "Access Modes": _modes("spec.accessModes"),
        "Reclaim Policy": at("spec.persistentVolumeReclaimPolicy"),
        "Claim": _claim,
        "Reason": at("status.reason"),
    },
    "PersistentVolumeClaim": {
        **_VOLUME,
        "Volume": at("spec.volumeName"),
        "Capacity": _if_bound(at("status.capacity.storage", "0")),
        "Access Modes": _if_bound(_modes("status.accessModes")),
    },
    "StorageClass.storage.k8s.io": {
        "Name": name_of_class(
            "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
        ),
        "Provisioner": at("provisioner"),
        "ReclaimPolicy": at("reclaimPolicy"),
        "VolumeBindingMode": at("volumeBindingMode"),
        "AllowVolumeExpansion": at("allowVolumeExpansion", False),
    },
    "VolumeAttachment.storage.k8s.io": {
        "Attacher": at("spec.attacher"),
        "PV": at("spec.source.persistentVolumeName"),
        "Node": at("spec.nodeName"),
        "Attached": at("status.attached"),
    },
    "VolumeAttributesClass.storage.k8s.io": {"DriverName": at("driverName")},
}
