"""What the operator reads of objects, and how it matches pods and Caves.

A volume is identified by its server's address and its name there. Two kinds of pod volumes are supported:

    nfs: {server: 10.0.0.7, path: /deep}
    csi: {driver: nfs.csi.k8s.io, volumeAttributes: {server: 10.0.0.7, share: /deep}}
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from aioinformer import OwnerReference
from aioinformer.operator import CustomResource, Kind
from aioinformer.typed import Column, Rule

GROUP = "storage.example.com"
API_VERSION = f"{GROUP}/v1"
PROTECTION = "abc/cave-protection"
"""The finalizer that keeps a Cave while it is mounted."""

GATE = "abc/cave"
"""The scheduling gate of a pod that must not start, and so not mount, before its Cave is known to stay."""

NFS_DRIVER = "nfs.csi.k8s.io"

CavePhase = Literal["Protected", "Releasing"]
BackendPhase = Literal["Mounted", "WaitingForCave"]

Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class Settings(msgspec.Struct):
    """The operator's settings: ``STORAGE_OPERATOR_RECHECK`` in the environment.

    Attributes:
        recheck: Seconds between counts of a deleted Cave's pods.
    """

    recheck: Annotated[float, Meta(gt=0)] = 20.0


class Mount(NamedTuple):
    """A volume on a server. As a string, ``10.0.0.7:/deep``, it is the value of the index ``mount``."""

    server: str
    volume: str

    def __str__(self) -> str:
        return f"{self.server}:/{self.volume}"


class Location(msgspec.Struct):
    """Where a volume is."""

    server: Annotated[Text, Meta(description="The address of the NFS server.")]
    volume: Annotated[Text, Meta(description="The volume's name there: exported as /name.")]

    @property
    def mount(self) -> Mount:
        return Mount(self.server, self.volume)


class CaveStatus(msgspec.Struct):
    """What the operator knows of a Cave."""

    phase: CavePhase
    pods: Annotated[int, Meta(description="How many pods mount it.")]


COLUMNS = [
    Column("Server", ".spec.server"),
    Column("Volume", ".spec.volume"),
    Column("Phase", ".status.phase"),
    Column("Pods", ".status.pods"),
]


class Cave(CustomResource, group=GROUP, version="v1", columns=COLUMNS):
    """Shared storage."""

    spec: Annotated[Location, Rule("self == oldSelf", "a Cave is where it is")]
    status: CaveStatus | None = None

    @property
    def protects(self) -> bool:
        """Whether it stays for pods that mount it from now on."""
        return self.metadata.deletion_timestamp is None and PROTECTION in self.metadata.finalizers


class BackendSpec(Location, kw_only=True):
    """The Cave that a workload mounts, and the workload."""

    image: Text
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1


class BackendStatus(msgspec.Struct):
    """What the operator knows of a Backend."""

    phase: BackendPhase
    pods: Annotated[int, Meta(description="How many of its pods may mount the Cave.")]


class Backend(CustomResource, group=GROUP, version="v1", columns=COLUMNS):
    """A workload on shared storage."""

    spec: BackendSpec
    status: BackendStatus | None = None


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


class PodMetadata(msgspec.Struct, rename="camel", kw_only=True):
    """The metadata that this operator uses: nothing else of the many pods is kept in memory."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] = []


class Pod(msgspec.Struct):
    """A pod: its mounts and its owners."""

    metadata: PodMetadata
    spec: PodSpec

    @property
    def mounts(self) -> set[Mount]:
        """The volumes that it mounts or will mount. A pod counts until it is gone: its kubelet may still unmount."""
        return {volume.mount for volume in self.spec.volumes if volume.mount is not None}

    @property
    def is_gated(self) -> bool:
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)


def by_mount(obj: Cave | Backend) -> list[str]:
    """Return the value of the index ``mount`` of Caves and Backends."""
    return [str(obj.spec.mount)]


def pods_by_mount(pod: Pod) -> list[str]:
    """Return the values of the index ``mount`` of pods."""
    return sorted(map(str, pod.mounts))


CAVES = Kind(Cave, indexers={"mount": by_mount})
BACKENDS = Kind(Backend, indexers={"mount": by_mount})
PODS = Kind("pods", Pod, indexers={"mount": pods_by_mount, "owner": "metadata.ownerReferences[*].uid"})
