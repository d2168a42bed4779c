"""Caves: protected while they live, released when no pod mounts them.

The controller keeps the finalizer on each Cave, also on existing ones; `release` decides when it is removed.
"""

from __future__ import annotations

from contextlib import suppress

from aioinformer import NotFoundError
from aioinformer.operator import Context, Request, Result

from .model import CAVES, PODS, Cave, CavePhase, CaveStatus, Pod, Settings


async def protect(request: Request[Cave], context: Context) -> None:
    """Write into the status how many pods mount a Cave."""
    cave = request.object
    assert cave is not None
    mount = cave.spec.mount
    if cave.status is None or cave.status.phase != "Protected":
        context.events.event(cave, "Normal", "Protected", f"{mount} stays while it is mounted")
    await _report(cave, context, "Protected", len(await context.resource(PODS).by_index("mount", str(mount))))


async def release(request: Request[Cave], context: Context) -> Result | None:
    """Release a Cave if no pod mounts it.

    The cache is enough to refuse. Before it agrees, it asks the server: the cache may lack a new pod. No pod can appear
    later: see ``backends.py``.
    """
    cave = request.object
    assert cave is not None
    mount = cave.spec.mount
    pods = await context.resource(PODS).by_index("mount", str(mount))
    if not pods:
        listed = await context.uncached(PODS).list(context.namespace)
        pods = [pod for pod in listed if mount in pod.mounts]
    if pods:
        context.events.event(cave, "Normal", "StillMounted", f"{len(pods)} pods mount {mount}")
        await _report(cave, context, "Releasing", len(pods))
        return Result(requeue_after=context.get(Settings).recheck)
    context.events.event(cave, "Normal", "Released", f"no pod mounts {mount}")
    return None


def caves_of(pod: Pod, context: Context) -> list[Request[Cave]]:
    """Return the Caves that a pod mounts."""
    index = context.resource(CAVES).informer.indexer
    return [Request.of(cave) for mount in pod.mounts for cave in index.by_index("mount", str(mount))]


async def _report(cave: Cave, context: Context, phase: CavePhase, pods: int) -> None:
    if cave.status != CaveStatus(phase, pods):
        with suppress(NotFoundError):  # gone: nothing to report
            await context.resource(CAVES).patch_status(cave, {"status": {"phase": phase, "pods": pods}})
