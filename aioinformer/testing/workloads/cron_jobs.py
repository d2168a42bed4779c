"""CronJobs: Jobs on command. No schedule is followed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object, is_true
from aioinformer.testing.storage.builtin import CRON_JOBS, JOBS
from aioinformer.testing.storage.codec import load
from aioinformer.testing.workloads.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobs(Owner):
    """Makes a Job for each command, tracks those that run, and deletes those that ended long ago."""

    name = "cronjob-controller"
    resource = CRON_JOBS
    child = JOBS

    def fire(self, namespace: str, name: str) -> str:
        """Make the Job of the current minute, or of the first one later that has none; return its name.

        Returns:
            `""` if the CronJob is suspended, or forbids a second Job while one runs.

        Raises:
            StatusError: 404: there is no such CronJob.
        """
        owner = load(CRON_JOBS, self.cluster.get(CRON_JOBS, namespace, name))
        spec = owner["spec"]
        active = [child for child in self.children(owner) if not _end_of(child)]
        if spec.get("suspend") or (active and spec.get("concurrencyPolicy") == "Forbid"):
            return ""
        if spec.get("concurrencyPolicy") == "Replace":
            for job in active:
                self.drop(job, policy="Background")
        minute = int(self.cluster.time()) // 60
        if last := (owner.get("status") or {}).get("lastScheduleTime"):
            minute = max(minute, int(datetime.fromisoformat(last).timestamp()) // 60 + 1)
        scheduled = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        template = spec["jobTemplate"]
        metadata = template.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), _SCHEDULED: scheduled}
        made: Object = {"metadata": {"name": f"{name}-{minute}", "annotations": annotations}}
        if metadata.get("labels"):
            made["metadata"]["labels"] = metadata["labels"]
        made["spec"] = dict(template["spec"])
        self.make(owner, made)
        self.write_status(owner, {**(owner.get("status") or {}), "lastScheduleTime": scheduled})
        return f"{name}-{minute}"

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Write which Jobs run, and delete the surplus of those that have ended."""
        spec, jobs = owner["spec"], self.children(owner)
        status: Object = {
            name: value for name, value in (owner.get("status") or {}).items() if name != "active"
        }
        active = [_reference(job) for job in jobs if not _end_of(job)]
        if active:
            status["active"] = active
        completed = [job for job in jobs if _end_of(job) == "Complete"]
        if times := [job["status"]["completionTime"] for job in completed]:
            status["lastSuccessfulTime"] = max(times)
        self.write_status(owner, status)
        yield
        failed = [job for job in jobs if _end_of(job) == "Failed"]
        for ended, limit in (
            (completed, spec["successfulJobsHistoryLimit"]),
            (failed, spec["failedJobsHistoryLimit"]),
        ):
            for job in ended[: max(0, len(ended) - limit)]:
                self.drop(job, policy="Background")
                yield


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    names = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **names}


def _end_of(job: Object) -> str:
    """Return how a Job has ended, `""` if it has not."""
    return next((end for end in ("Complete", "Failed") if is_true(job, end)), "")
