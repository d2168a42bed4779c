"""Backends: pods that mount a Cave, started only if the Cave will stay.

Between reading the Cave and creating a pod, the Cave may be deleted, and be gone before the pod is seen. So a pod is
created with a scheduling gate: it mounts nothing yet, but already keeps the Cave. Then the Cave is read again, and the
gate is opened only if the Cave is still protected. A deletion after that read finds the pod; a read after the deletion
leaves the gate closed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aioinformer import AlreadyExistsError, ConflictError, InvalidError, NotFoundError
from aioinformer.operator import Context, Request, owner_reference

from .model import BACKENDS, CAVES, GATE, PODS, Backend, BackendPhase, BackendStatus, Cave, Mount, Pod


async def mount(request: Request[Backend], context: Context) -> None:
    """Keep the wanted number of pods, each with the Cave: delete surplus ones, create missing ones, open gates."""
    backend = request.object
    if backend is None or backend.metadata.deletion_timestamp is not None:
        return  # its pods are garbage collected
    cave = backend.spec.mount
    wanted = {f"{backend.name}-{number}" for number in range(backend.spec.replicas)}
    owned = await context.resource(PODS).by_index("owner", backend.metadata.uid)
    pods = {pod.metadata.name: pod for pod in owned}
    right = {name: pod for name, pod in pods.items() if name in wanted and cave in pod.mounts}
    for name in sorted(pods.keys() - right.keys()):
        await _delete(pods[name], context)
    missing = sorted(wanted - pods.keys())
    gated = [pod for pod in right.values() if pod.is_gated]
    protected = not (missing or gated) or await _is_protected(cave, context)
    if missing and protected:
        for name in missing:
            with suppress(AlreadyExistsError):  # by another instance: the cache gets its pod soon
                right[name] = await context.resource(PODS).create(_pod(backend, name))
                gated.append(right[name])
        protected = await _is_protected(cave, context)
    for pod in gated:
        await (_open(pod, context) if protected else _delete(pod, context))
    mounted = len(right) if protected else len(right) - len(gated)
    await _report(backend, context, "Mounted" if protected else "WaitingForCave", mounted)


def backends_of(cave: Cave, context: Context) -> list[Request[Backend]]:
    """Return the Backends that want to mount a Cave."""
    index = context.resource(BACKENDS).informer.indexer
    return [Request.of(backend) for backend in index.by_index("mount", str(cave.spec.mount))]


async def _is_protected(mount: Mount, context: Context) -> bool:
    """Return whether new mounts of a volume keep its Cave, by a read from the server: a cache may be stale."""
    listed = await context.uncached(CAVES).list(context.namespace)
    caves = [cave for cave in listed if cave.spec.mount == mount]
    return bool(caves) and all(cave.protects for cave in caves)


async def _open(pod: Pod, context: Context) -> None:
    """Open a pod's gate; do nothing if another instance has opened it."""
    place = [gate.name for gate in pod.spec.scheduling_gates].index(GATE)
    path = f"/spec/schedulingGates/{place}"
    patch = [{"op": "test", "path": f"{path}/name", "value": GATE}, {"op": "remove", "path": path}]
    uid = {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid}
    with suppress(InvalidError, NotFoundError):
        await context.resource(PODS).patch(pod, [uid, *patch])


async def _delete(pod: Pod, context: Context) -> None:
    """Delete exactly the pod that was read: not one of the same name, nor one whose gate was opened meanwhile."""
    if pod.metadata.deletion_timestamp is None:
        with suppress(NotFoundError, ConflictError):
            await context.resource(PODS).delete(pod, resource_version=pod.metadata.resource_version)


async def _report(backend: Backend, context: Context, phase: BackendPhase, pods: int) -> None:
    if backend.status is None or backend.status.phase != phase:
        context.events.event(backend, "Normal", phase, f"{pods} pods may mount {backend.spec.mount}")
    if backend.status != BackendStatus(phase, pods):
        with suppress(NotFoundError):  # gone: nothing to report
            await context.resource(BACKENDS).patch_status(backend, {"status": {"phase": phase, "pods": pods}})


def _pod(backend: Backend, name: str) -> dict[str, Any]:
    spec = backend.spec
    cave = {"name": "cave", "nfs": {"server": spec.server, "path": f"/{spec.volume}"}}
    container = {
        "name": "main",
        "image": spec.image,
        "volumeMounts": [{"name": "cave", "mountPath": "/cave"}],
    }
    owners = [owner_reference(backend)]
    return {
        "metadata": {"name": name, "namespace": backend.namespace, "ownerReferences": owners},
        "spec": {"schedulingGates": [{"name": GATE}], "volumes": [cave], "containers": [container]},
    }
