"""Flow runs whose job failed or was deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from prefect.exceptions import Abort, ObjectNotFound, Pause
from prefect.states import Crashed
from prefect.utilities.engine import propose_state
from prefect_kubernetes import observer

from aioinformer import InformerEvents, KubeObject, NotFoundError, Resource, SharedIndexInformer
from aioinformer.operator import Request, Result

FLOW_RUN = "prefect.io/flow-run-id"

PATIENCE, PAUSE = 30.0, 5.0
"""Seconds that a pending flow run may take to get another job, and between two looks at it."""

logger = logging.getLogger("prefect_kubernetes.informer_observer")


@dataclass
class LostJob:
    """A job that cannot run its flow run any more."""

    job: KubeObject
    is_deleted: bool = False
    since: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    logs: Any = None


class LostJobs:
    """Marks a flow run as crashed if its job is lost and no other job runs it."""

    def __init__(self, informer: SharedIndexInformer[KubeObject], jobs: Resource[KubeObject]) -> None:
        self.informer = informer
        self._jobs = jobs
        self._lost: dict[str, LostJob] = {}
        informer.add_indexers({FLOW_RUN: lambda job: [job.metadata.labels[FLOW_RUN]]})

    async def changes(self) -> AsyncIterator[Request[KubeObject]]:
        """Yield a request for each job that is lost, and keep the job until its flow run is decided."""
        async with InformerEvents(self.informer) as events:
            async for event in events:
                job, is_deleted = event.object, event.type == "DELETED"
                if has_failed(job) or (is_deleted and not status_of(job).get("succeeded")):
                    request = Request(job.namespace, f"{job.name}.{job.uid}")  # a name may be used again
                    lost = self._lost.setdefault(request.key, LostJob(job))
                    lost.job, lost.is_deleted = job, is_deleted
                    yield request

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        """Mark the flow run of a lost job, or look again later."""
        lost = self._lost.get(request.key)
        if lost is not None:
            if not await self._decide(lost):
                return Result(requeue_after=PAUSE)
            self._lost.pop(request.key, None)
        return None

    async def _decide(self, lost: LostJob) -> bool:
        """Return whether the flow run needs nothing more: it is marked, settled, or another job runs it."""
        client = observer.orchestration_client
        flow_run_id = lost.job.metadata.labels[FLOW_RUN]
        others = self.informer.indexer.by_index(FLOW_RUN, flow_run_id)
        if any(runs(job) for job in others if job.uid != lost.job.uid):
            return True
        try:
            flow_run = await client.read_flow_run(UUID(flow_run_id))
        except ObjectNotFound:
            return True
        if observer._flow_run_state_is_settled(flow_run.state):
            return True
        if lost.is_deleted and await self._has_lost_labels_only(lost.job):
            return True
        if flow_run.state.is_pending():
            if lost.logs is None:
                names = {"job_name": lost.job.name, "namespace": lost.job.namespace}
                logs = await observer._fetch_crashed_pod_logs(flow_run_id, logger=logger, **names)
                lost.logs = logs or []
            if asyncio.get_running_loop().time() < lost.since + PATIENCE:
                return False
        logger.warning("Job %s is lost and no other job runs flow run %s: crashed", lost.job.key, flow_run_id)
        reason = (
            "Kubernetes job was deleted"
            if lost.is_deleted
            else "No active or succeeded pods found for any job"
        )
        try:
            state = await propose_state(client, Crashed(message=reason), flow_run_id=UUID(flow_run_id))
        except (Abort, Pause):
            return True  # it ended or paused meanwhile
        if lost.logs and state.is_crashed():
            observer._send_crashed_pod_logs(flow_run_id, lost.logs)
        return True

    async def _has_lost_labels_only(self, job: KubeObject) -> bool:
        """Return whether the job exists: one that the selector does not match any more is reported as deleted."""
        try:
            return (await self._jobs.get(job.key)).uid == job.uid
        except NotFoundError:
            return False


def status_of(job: KubeObject) -> dict[str, Any]:
    """Return the status of a job; empty if it has none."""
    return job.to_dict().get("status", {})


def has_failed(job: KubeObject) -> bool:
    """Return whether a job has failed more often than it may, by Prefect's rule."""
    return status_of(job).get("failed", 0) > job.to_dict()["spec"].get("backoffLimit", 6)


def runs(job: KubeObject) -> bool:
    """Return whether a job runs or has succeeded."""
    return bool(status_of(job).get("active") or status_of(job).get("succeeded"))
