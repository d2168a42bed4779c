"""Backends: pods that mount a Cave, started only if the Cave will stay.

Between reading the Cave and creating a pod, the Cave may be deleted, and be gone before the pod is seen. So a pod is
created with a scheduling gate: it mounts nothing yet, but already keeps the Cave. Then the Cave is read again, and the
gate is opened only if the Cave is still protected. A deletion after that read finds the pod; a read after the deletion
leaves the gate closed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aioinformer import (
    AlreadyExistsError,
    CachedResource,
    ConflictError,
    EventRecorder,
    InvalidError,
    NotFoundError,
    Resource,
)
from aioinformer.operator import Reconciler, Request, owner_reference

from .model import GATE, Backend, Cave, Mount, Pod


class BackendReconciler(Reconciler[Backend]):
    """A reconciler that keeps the wanted number of pods, each with the Cave. Their Backend owns them.

    Args:
        backends: The Backends of the watched namespaces.
        caves: Caves, read from the server.
        pods: Pods of the same namespaces, with the index ``owner``.
        namespace: The watched namespace; None for all.
        events: Records what happens.
    """

    def __init__(
        self,
        backends: CachedResource[Backend],
        caves: Resource[Cave],
        pods: CachedResource[Pod],
        namespace: str | None,
        events: EventRecorder,
    ) -> None:
        self._backends = backends
        self._caves = caves
        self._pods = pods
        self._namespace = namespace
        self._events = events

    async def reconcile(self, request: Request[Backend]) -> None:
        """Delete surplus pods, create missing ones, and open the gates of pods that may mount."""
        backend = request.object
        if backend is None or backend.metadata.deletion_timestamp is not None:
            return  # its pods are garbage collected
        mount = backend.spec.mount
        wanted = {f"{backend.metadata.name}-{number}" for number in range(backend.spec.replicas)}
        pods = {pod.metadata.name: pod for pod in await self._pods.by_index("owner", backend.metadata.uid)}
        right = {name: pod for name, pod in pods.items() if name in wanted and mount in pod.mounts}
        for name in sorted(pods.keys() - right.keys()):
            await self._delete(pods[name])
        missing = sorted(wanted - pods.keys())
        gated = [pod for pod in right.values() if pod.is_gated]
        protected = not (missing or gated) or await self._is_protected(mount)
        if missing and protected:
            for name in missing:
                with suppress(AlreadyExistsError):  # by another instance: the cache gets its pod soon
                    right[name] = await self._pods.create(_pod(backend, name))
                    gated.append(right[name])
            protected = await self._is_protected(mount)
        for pod in gated:
            await (self._open(pod) if protected else self._delete(pod))
        mounted = len(right) if protected else len(right) - len(gated)
        await self._tell(backend, "Mounted" if protected else "WaitingForCave", mounted)

    async def _is_protected(self, mount: Mount) -> bool:
        """Return whether new mounts of a volume keep its Cave, by a read from the server: a cache may be stale."""
        caves = [cave for cave in await self._caves.list(self._namespace) if cave.spec.mount == mount]
        return bool(caves) and all(cave.protects for cave in caves)

    async def _open(self, pod: Pod) -> None:
        """Open a pod's gate; do nothing if another instance has opened it."""
        place = [gate.name for gate in pod.spec.scheduling_gates].index(GATE)
        path = f"/spec/schedulingGates/{place}"
        patch = [{"op": "test", "path": f"{path}/name", "value": GATE}, {"op": "remove", "path": path}]
        uid = {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid}
        with suppress(InvalidError, NotFoundError):
            await self._pods.patch(pod, [uid, *patch])

    async def _delete(self, pod: Pod) -> None:
        """Delete exactly the pod that was read: not one of the same name, nor one whose gate was opened meanwhile."""
        if pod.metadata.deletion_timestamp is None:
            with suppress(NotFoundError, ConflictError):
                await self._pods.delete(pod, resource_version=pod.metadata.resource_version)

    async def _tell(self, backend: Backend, phase: str, pods: int) -> None:
        if backend.status.phase != phase:
            self._events.event(backend, "Normal", phase, f"{pods} pods may mount {backend.spec.mount}")
        if (backend.status.phase, backend.status.pods) != (phase, pods):
            with suppress(NotFoundError):  # gone: nothing to report
                await self._backends.patch_status(backend, {"status": {"phase": phase, "pods": pods}})


def _pod(backend: Backend, name: str) -> dict[str, Any]:
    metadata, spec = backend.metadata, backend.spec
    cave = {"name": "cave", "nfs": {"server": spec.server, "path": f"/{spec.volume}"}}
    container = {
        "name": "main",
        "image": spec.image,
        "volumeMounts": [{"name": "cave", "mountPath": "/cave"}],
    }
    return {
        "metadata": {
            "name": name,
            "namespace": metadata.namespace,
            "ownerReferences": [owner_reference(backend)],
        },
        "spec": {"schedulingGates": [{"name": GATE}], "volumes": [cave], "containers": [container]},
    }
