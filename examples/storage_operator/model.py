"""What the operator reads of objects, and how it matches pods and Caves.

A volume is identified by its server's address and its name there. Two kinds of pod volumes are supported:

    nfs: {server: 10.0.0.7, path: /deep}
    csi: {driver: nfs.csi.k8s.io, volumeAttributes: {server: 10.0.0.7, share: /deep}}
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

GROUP = "storage.example.com"
API_VERSION = f"{GROUP}/v1"
PROTECTION = "abc/cave-protection"
"""The finalizer that keeps a Cave while it is mounted."""

GATE = "abc/cave"
"""The scheduling gate of a pod that must not start, and so not mount, before its Cave is known to stay."""

NFS_DRIVER = "nfs.csi.k8s.io"


class Mount(NamedTuple):
    """A volume on a server. As a string, ``10.0.0.7:/deep``, it is the value of the index ``mount``."""

    server: str
    volume: str

    def __str__(self) -> str:
        return f"{self.server}:/{self.volume}"


class OwnerReference(msgspec.Struct, rename="camel"):
    """An owner of an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Metadata(msgspec.Struct, rename="camel", kw_only=True):
    """The metadata that this operator uses."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] = []


class Status(msgspec.Struct):
    """The status of both kinds."""

    phase: str = ""
    pods: int = 0


class CaveSpec(msgspec.Struct):
    """The location of a Cave."""

    server: str
    volume: str

    @property
    def mount(self) -> Mount:
        return Mount(self.server, self.volume)


class Cave(msgspec.Struct, rename="camel"):
    """Shared storage."""

    metadata: Metadata
    spec: CaveSpec
    status: Status = msgspec.field(default_factory=Status)
    api_version: str = API_VERSION
    kind: str = "Cave"

    @property
    def protects(self) -> bool:
        """Whether it stays for pods that mount it from now on."""
        return self.metadata.deletion_timestamp is None and PROTECTION in (self.metadata.finalizers or ())


class BackendSpec(CaveSpec):
    """The Cave that a workload mounts, and the workload."""

    image: str
    replicas: int = 1


class Backend(msgspec.Struct, rename="camel"):
    """A workload on shared storage."""

    metadata: Metadata
    spec: BackendSpec
    status: Status = msgspec.field(default_factory=Status)
    api_version: str = API_VERSION
    kind: str = "Backend"


class NfsSource(msgspec.Struct):
    server: str
    path: str


class CsiSource(msgspec.Struct, rename="camel"):
    driver: str
    volume_attributes: dict[str, str] = {}


class Volume(msgspec.Struct):
    nfs: NfsSource | None = None
    csi: CsiSource | None = None

    @property
    def mount(self) -> Mount | None:
        if self.nfs is not None:
            return Mount(self.nfs.server, self.nfs.path.strip("/"))
        if self.csi is not None and self.csi.driver == NFS_DRIVER:
            attributes = self.csi.volume_attributes
            return Mount(attributes.get("server", ""), attributes.get("share", "").strip("/"))
        return None


class Gate(msgspec.Struct):
    name: str


class PodSpec(msgspec.Struct, rename="camel"):
    volumes: list[Volume] = []
    scheduling_gates: list[Gate] = []


class Pod(msgspec.Struct):
    """A pod: its mounts and its owners."""

    metadata: Metadata
    spec: PodSpec

    @property
    def mounts(self) -> set[Mount]:
        """The volumes that it mounts or will mount. A pod counts until it is gone: its kubelet may still unmount."""
        return {volume.mount for volume in self.spec.volumes if volume.mount is not None}

    @property
    def is_gated(self) -> bool:
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)


def by_mount(obj: Cave | Backend) -> list[str]:
    """Return the values of the index ``mount`` of Caves and Backends."""
    return [str(obj.spec.mount)]


def pods_by_mount(pod: Pod) -> list[str]:
    """Return the values of the index ``mount`` of pods."""
    return sorted(map(str, pod.mounts))


def pods_by_owner(pod: Pod) -> list[str]:
    """Return the values of the index ``owner`` of pods: their owners' uids."""
    return [owner.uid for owner in pod.metadata.owner_references]
