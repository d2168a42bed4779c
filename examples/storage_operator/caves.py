"""Caves: protected while they live, released when no pod mounts them."""

from __future__ import annotations

from contextlib import suppress

from aioinformer import CachedResource, EventRecorder, NotFoundError
from aioinformer.operator import Reconciler, Request, Result

from .model import PROTECTION, Cave, Pod


class CaveReconciler(Reconciler[Cave]):
    """A reconciler that keeps a finalizer on each Cave, also on existing ones; `cleanup` decides when it is removed.

    Args:
        caves: The Caves of the watched namespaces.
        pods: Pods of the same namespaces, with the index ``mount``.
        namespace: The watched namespace; None for all.
        events: Records what happens.
        recheck: Seconds after which pods that mount a Cave are counted again.
    """

    finalizer = PROTECTION

    def __init__(
        self,
        caves: CachedResource[Cave],
        pods: CachedResource[Pod],
        namespace: str | None,
        events: EventRecorder,
        recheck: float,
    ) -> None:
        self._caves = caves
        self._pods = pods
        self._namespace = namespace
        self._events = events
        self._recheck = recheck

    async def reconcile(self, request: Request[Cave]) -> None:
        """Write into the status how many pods mount a Cave."""
        cave = request.object
        assert cave is not None
        if cave.status.phase != "Protected":
            self._events.event(cave, "Normal", "Protected", f"{cave.spec.mount} stays while it is mounted")
        await self._tell(cave, "Protected", len(await self._pods.by_index("mount", str(cave.spec.mount))))

    async def cleanup(self, request: Request[Cave]) -> Result | None:
        """Release a Cave if no pod mounts it.

        The cache is enough to refuse. Before it agrees, it asks the server: the cache may lack a new pod. No pod
        can appear later: see ``backends.py``.
        """
        cave = request.object
        assert cave is not None
        mount = cave.spec.mount
        pods = await self._pods.by_index("mount", str(mount))
        if not pods:
            pods = [pod for pod in await self._pods.resource.list(self._namespace) if mount in pod.mounts]
        if pods:
            self._events.event(cave, "Normal", "StillMounted", f"{len(pods)} pods mount {mount}")
            await self._tell(cave, "Releasing", len(pods))
            return Result(requeue_after=self._recheck)
        self._events.event(cave, "Normal", "Released", f"no pod mounts {mount}")
        return None

    async def _tell(self, cave: Cave, phase: str, pods: int) -> None:
        if (cave.status.phase, cave.status.pods) != (phase, pods):
            with suppress(NotFoundError):  # gone: nothing to report
                await self._caves.patch_status(cave, {"status": {"phase": phase, "pods": pods}})
