"""Backends: pods that mount a Cave, begun only where the Cave is known to stay.

Between a look at the Cave and the creation of a pod the Cave may be asked to go, and be gone before the pod is seen.
So a pod is created with a scheduling gate: it mounts nothing yet, and holds the Cave already. Then the Cave is looked
at again, and the gate is opened only if it still protects. Whichever comes first, the deletion of the Cave or that
look, the other sees it: a deletion after the look finds the pod, a look after the deletion leaves the gate closed.
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
    """As many pods as there are to be, each on the Cave. They go with their Backend, as it owns them.

    Args:
        backends: Of the namespaces that are looked after.
        caves: At the server.
        pods: As backends, with the index ``owner``.
        namespace: The one that is looked after; None for all.
        events: Where is told what happens.
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
        """Delete the pods that should not be, create those that should, open the gates of those that may mount."""
        backend = request.object
        if backend is None or backend.metadata.deletion_timestamp is not None:
            return  # its pods are collected
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
                with suppress(AlreadyExistsError):  # by another operator: its pod is on its way here
                    right[name] = await self._pods.create(_pod(backend, name))
                    gated.append(right[name])
            protected = await self._is_protected(mount)
        for pod in gated:
            await (self._open(pod) if protected else self._delete(pod))
        mounted = len(right) if protected else len(right) - len(gated)
        await self._tell(backend, "Mounted" if protected else "WaitingForCave", mounted)

    async def _is_protected(self, mount: Mount) -> bool:
        """Whether whoever mounts a volume from now on keeps its Cave, as the server has it: a cache may be behind."""
        caves = [cave for cave in await self._caves.list(self._namespace) if cave.spec.mount == mount]
        return bool(caves) and all(cave.protects for cave in caves)

    async def _open(self, pod: Pod) -> None:
        """Let a pod begin; where another operator has, the gate is not where it was, and nothing is done."""
        place = [gate.name for gate in pod.spec.scheduling_gates].index(GATE)
        path = f"/spec/schedulingGates/{place}"
        patch = [{"op": "test", "path": f"{path}/name", "value": GATE}, {"op": "remove", "path": path}]
        uid = {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid}
        with suppress(InvalidError, NotFoundError):
            await self._pods.patch(pod, [uid, *patch])

    async def _delete(self, pod: Pod) -> None:
        """Delete a pod as it was seen: not one that took its name, nor one whose gate was opened meanwhile."""
        if pod.metadata.deletion_timestamp is None:
            with suppress(NotFoundError, ConflictError):
                await self._pods.delete(pod, resource_version=pod.metadata.resource_version)

    async def _tell(self, backend: Backend, phase: str, pods: int) -> None:
        if backend.status.phase != phase:
            self._events.event(backend, "Normal", phase, f"{pods} pods may mount {backend.spec.mount}")
        if (backend.status.phase, backend.status.pods) != (phase, pods):
            with suppress(NotFoundError):  # then nobody wants to know
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
