"""The workload controllers, the scheduler and the kubelet, as far as tests of operators need them.

    Deployment ─► ReplicaSet ─► pods      StatefulSet, DaemonSet, Job ─► pods ─► Running and Ready

Each controller is level-triggered: a change queues its owner, and the work compares what exists with what is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.workloads.daemon_sets import DaemonSets
from aioinformer.testing.workloads.deployments import Deployments
from aioinformer.testing.workloads.jobs import Jobs
from aioinformer.testing.workloads.pods import Failure, Pods
from aioinformer.testing.workloads.replica_sets import ReplicaSets
from aioinformer.testing.workloads.stateful_sets import StatefulSets

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.controller import Controller

__all__ = ["Failure", "Workloads"]


class Workloads:
    """Runs workloads, with delays and failures on command.

    Args:
        cluster: The cluster.
        wake: Starts the controllers' work.

    Attributes:
        controllers: The controllers.
    """

    def __init__(self, cluster: Cluster, wake: Callable[[], None]) -> None:
        self._pods = Pods(cluster, wake)
        owners = (Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs)
        self.controllers: list[Controller] = [*(each(cluster) for each in owners), self._pods]

    def delay(self, *, start: float = 0.0, run: float = 0.0) -> None:
        """Set how long pods take from now on, while the server runs.

        Args:
            start: Seconds until a pod on a node runs and is ready.
            run: Seconds that a pod of a Job runs.
        """
        self._pods.delays.update(start=start, run=run)

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
