"""The workload controllers, the scheduler and the kubelet, as far as tests of operators need them.

    Deployment ─► ReplicaSet ─► pods      StatefulSet, DaemonSet, Job ─► pods ─► Running and Ready
    CronJob ─► Job, on command            StatefulSet ─► claims ─► volumes      Service ─► EndpointSlice

Each controller is level-triggered: a change queues its owner, and the work compares what exists with what is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.workloads.cron_jobs import CronJobs
from aioinformer.testing.workloads.daemon_sets import DaemonSets
from aioinformer.testing.workloads.deployments import Deployments
from aioinformer.testing.workloads.jobs import Jobs
from aioinformer.testing.workloads.pods import Failure, Pods
from aioinformer.testing.workloads.replica_sets import ReplicaSets
from aioinformer.testing.workloads.services import Services
from aioinformer.testing.workloads.stateful_sets import StatefulSets
from aioinformer.testing.workloads.volumes import Volumes

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.controllers.controller import ClusterController

__all__ = ["Failure", "Workloads"]


class Workloads:
    """Runs workloads, with delays, failures and CronJobs on command.

    Args:
        cluster: The cluster.
        wake: Starts the controllers' work.

    Attributes:
        controllers: The controllers.
    """

    def __init__(self, cluster: Cluster, wake: Callable[[], None]) -> None:
        self._pods = Pods(cluster, wake)
        self._cron_jobs = CronJobs(cluster)
        self._wake = wake
        others = (Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, Volumes, Services)
        self.controllers: list[ClusterController] = [
            *(controller_type(cluster) for controller_type in others),
            self._cron_jobs,
            self._pods,
        ]

    def delay(self, *, start: float = 0.0, run: float = 0.0) -> None:
        """Set how long pods take from now on, while the server runs.

        Args:
            start: Seconds until a pod on a node runs and is ready.
            run: Seconds that a pod of a Job runs.
        """
        self._pods.delays.update(start=start, run=run)

    def fire(self, cron_job: str) -> str:
        """Make a CronJob's next Job, and return its name. Schedules are not followed.

        Args:
            cron_job: Its key, such as `"default/nightly"`.

        Returns:
            The Job's name; `""` if the CronJob is suspended, or forbids a second Job while one runs.

        Raises:
            StatusError: 404: there is no such CronJob.
        """
        namespace, _, name = cron_job.rpartition("/")
        made = self._cron_jobs.fire(namespace or "default", name)
        self._wake()
        return made

    def fail(self, pods: str) -> Failure:
        """Let containers crash (CrashLoopBackOff), and pods of Jobs fail, until the result's `remove()` is called.

        Args:
            pods: A pattern of keys, such as `"default/web-*"`.
        """
        return self._pods.fail(pods, "*", "CrashLoopBackOff")

    def fail_image(self, image: str) -> Failure:
        """Let pulls of an image fail (ImagePullBackOff), until the result's `remove()` is called.

        Containers that run already continue.

        Args:
            image: A pattern of images, such as `"registry.example.com/web:*"`.
        """
        return self._pods.fail("*", image, "ImagePullBackOff")
