"""Jobs: pods that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object, is_true, with_condition
from aioinformer.testing.storage.builtin import JOBS
from aioinformer.testing.workloads.owner import Owner, is_active, is_ready, pod_of

if TYPE_CHECKING:
    from collections.abc import Iterator


_FAILED = (
    "FailureTarget",
    "Failed",
    "BackoffLimitExceeded",
    "Job has reached the specified backoff limit",
)
_COMPLETE = (
    "SuccessCriteriaMet",
    "Complete",
    "CompletionsReached",
    "Reached expected number of succeeded pods",
)


class Jobs(Owner):
    """Makes pods until enough have succeeded, or too many have failed. Indexed Jobs are treated like others."""

    name = "job-controller"
    resource = JOBS

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Make missing pods, and count those that have ended."""
        spec, old = owner["spec"], owner.get("status") or {}
        if spec.get("suspend") or is_true(owner, "Complete") or is_true(owner, "Failed"):
            return
        name, uid, now = owner["metadata"]["name"], owner["metadata"]["uid"], self.cluster.now()
        pods = self.children(owner)
        succeeded, failed = (
            sum(child["status"]["phase"] == phase for child in pods) for phase in ("Succeeded", "Failed")
        )
        active = [child for child in pods if is_active(child)]
        parallelism = spec["parallelism"]
        completions = spec.get("completions") or parallelism
        is_failed, is_done = failed > spec["backoffLimit"], succeeded >= completions
        status = {
            **old,
            "terminating": 0,
            "uncountedTerminatedPods": {},
            "startTime": old.get("startTime", now),
            "succeeded": succeeded,
            "failed": failed,
        }
        if is_failed or is_done:
            for pod in active:
                self.drop(pod)
                yield
            before, kind, reason, message = _FAILED if is_failed else _COMPLETE
            status = with_condition(status, before, True, reason, message, now)
            status = with_condition(status, kind, True, reason, message, now) | {"active": 0, "ready": 0}
            if is_done:
                status["completionTime"] = now
        else:
            missing = min(parallelism, completions - succeeded) - len(active)
            for _ in range(missing):
                pod = pod_of(spec["template"], generateName=f"{name}-")
                labels = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": uid}
                pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
                self.make(owner, pod)
                yield
            status |= {"active": len(active) + max(0, missing), "ready": sum(map(is_ready, active))}
        self.write_status(owner, status)
        yield
