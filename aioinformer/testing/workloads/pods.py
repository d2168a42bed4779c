"""Pods: the scheduler, and a kubelet that starts them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from aioinformer.testing.cluster.binding import bind
from aioinformer.testing.controllers.controller import ClusterController
from aioinformer.testing.objects import Object, with_condition
from aioinformer.testing.storage.builtin import CLAIMS, NODES, PODS
from aioinformer.testing.storage.codec import load, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent

NODE = "embedded"
"""The node of pods if the cluster has none."""

_NODE_FIELD = [field.label for field in PODS.fields].index("spec.nodeName")
_NEVER_STARTED = "ImagePullBackOff"
_UNSCHEDULABLE = (
    "PodScheduled",
    False,
    "Unschedulable",
    "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
)


@dataclass(frozen=True, eq=False)
class Failure:
    """Pods or images that fail."""

    pods: str
    image: str
    reason: str
    _removed: Callable[[Failure], None]

    def remove(self) -> None:
        """End the failure; the pods start."""
        self._removed(self)

    def meets(self, key: str, image: str) -> bool:
        """Return whether a container of a pod fails."""
        return fnmatchcase(key, self.pods) and fnmatchcase(image, self.image)


class Pods(ClusterController):
    """Assigns pods to nodes, runs them, and ends those of Jobs.

    Attributes:
        delays: Seconds until a pod starts (`"start"`) and that one of a Job runs (`"run"`).
    """

    name = "pods"

    def __init__(self, cluster: Cluster, wake: Callable[[], None]) -> None:
        super().__init__(cluster)
        self.delays = {"start": 0.0, "run": 0.0}
        self._failures: list[Failure] = []
        self._wake = wake
        self._waits: dict[tuple[str, str], bool] = {}  # of a uid and a stage: whether the delay is over

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a changed pod, and those that wait for a node when a claim changes."""
        if resource is CLAIMS:
            for stored in self.cluster.collection(PODS).in_namespace(event.namespace):
                if not stored.fields[_NODE_FIELD]:
                    self.add(self._run, stored.key)
        if resource is not PODS:
            return
        if event.current is not None:
            self.add(self._run, event.key)
        elif event.previous is not None:
            for stage in self.delays:
                self._waits.pop((event.previous.uid, stage), None)

    def fail(self, pods: str, image: str, reason: str) -> Failure:
        """Let matching containers fail."""
        failure = Failure(pods, image, reason, self._remove)
        self._failures.append(failure)
        self._run_all()
        return failure

    def _remove(self, failure: Failure) -> None:
        self._failures.remove(failure)
        self._run_all()

    def _run_all(self) -> None:
        for key in self.cluster.collection(PODS).objects:
            self.add(self._run, key)
        self._wake()

    def _run(self, key: str) -> Iterator[None]:
        stored = self.cluster.collection(PODS).objects.get(key)
        if stored is None or stored.terminating:
            return
        pod = load(PODS, stored)
        status = pod.get("status") or {}
        if status.get("phase") in ("Succeeded", "Failed") or pod["spec"].get("schedulingGates"):
            return
        if not pod["spec"].get("nodeName"):
            if not self._has_claims(pod):
                status = with_condition(status, *_UNSCHEDULABLE, self.cluster.now())
                self.set_status(PODS, stored.namespace, stored.name, status)
                return
            target = {"kind": "Node", "name": self._node()}
            bind(
                self.cluster,
                stored.namespace,
                {"metadata": {"name": stored.name}, "target": target},
                dry_run=False,
            )
            yield  # the binding queues the pod again
            return
        if not self._has_waited(key, stored.uid, "start"):
            return
        is_of_job = any(
            reference["kind"] == "Job" for reference in pod["metadata"].get("ownerReferences") or ()
        )
        ran = status.get("phase") == "Running" and is_of_job and self._has_waited(key, stored.uid, "run")
        new = self._status(key, pod, is_of_job=is_of_job, ran=ran)
        self.set_status(PODS, stored.namespace, stored.name, new)
        yield

    def _has_claims(self, pod: Object) -> bool:
        """Return whether all claims of a pod are bound."""
        for volume in pod["spec"].get("volumes") or ():
            if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
                stored = self.cluster.find(CLAIMS, pod["metadata"]["namespace"], name)
                if stored is None or (read(CLAIMS, stored).get("status") or {}).get("phase") != "Bound":
                    return False
        return True

    def _node(self) -> str:
        """Return the node with the fewest pods among those that take pods."""
        nodes = [
            node.name
            for node in self.cluster.collection(NODES).objects.values()
            if not (read(NODES, node).get("spec") or {}).get("unschedulable")
        ]
        if not nodes:
            return NODE
        pods = self.cluster.collection(PODS).objects.values()
        used = Counter(pod.fields[_NODE_FIELD] for pod in pods)
        return min(nodes, key=lambda name: used[name])

    def _has_waited(self, key: str, uid: str, stage: str) -> bool:
        """Return whether a delay is over; the first call starts it."""
        if not self.delays[stage]:
            return True
        if (uid, stage) not in self._waits:
            self._waits[uid, stage] = False
            asyncio.get_running_loop().call_later(self.delays[stage], self._end_wait, key, uid, stage)
        return self._waits[uid, stage]

    def _end_wait(self, key: str, uid: str, stage: str) -> None:
        if (uid, stage) in self._waits:
            self._waits[uid, stage] = True
            self.add(self._run, key)
            self._wake()

    def _status(self, key: str, pod: Object, *, is_of_job: bool, ran: bool) -> Object:
        old, now = pod.get("status") or {}, self.cluster.now()
        containers = pod["spec"].get("containers") or ()
        before = {known["name"]: known for known in old.get("containerStatuses") or ()}
        failing = {
            container["name"]: self._reason(key, container, before.get(container["name"]) or {})
            for container in containers
        }
        reasons = {reason for reason in failing.values() if reason}
        if _NEVER_STARTED in reasons:
            phase = "Pending"
        elif is_of_job and (reasons or ran):
            phase = "Failed" if reasons else "Succeeded"
        else:
            phase = "Running"
        ready = phase == "Running" and not reasons
        status: Object = {
            **old,
            "phase": phase,
            "startTime": old.get("startTime", now),
            "hostIP": "10.1.0.1",
            "podIP": old.get("podIP") or self._address(),
            "containerStatuses": [
                _container(
                    container, before.get(container["name"]) or {}, failing[container["name"]], phase, now
                )
                for container in containers
            ],
        }
        status["podIPs"] = [{"ip": status["podIP"]}]
        completed = "PodCompleted" if phase == "Succeeded" else "ContainersNotReady"
        for kind, holds in (
            ("PodScheduled", True),
            ("Initialized", True),
            ("ContainersReady", ready),
            ("Ready", ready),
        ):
            status = with_condition(status, kind, holds, "" if holds else completed, "", now)
        status["conditions"] = [
            {name: value for name, value in condition.items() if value != ""}
            for condition in status["conditions"]
        ]
        return status

    def _reason(self, key: str, container: Object, before: Object) -> str:
        """Return why a container fails, or `""`."""
        has_started = "running" in (before.get("state") or {})
        for failure in self._failures:
            if failure.meets(key, container.get("image", "")):
                if failure.reason == _NEVER_STARTED and has_started:
                    continue
                return failure.reason
        return ""

    def _address(self) -> str:
        number = self.cluster.resource_version % 65_000 + 1
        return f"10.2.{number // 256}.{number % 256}"


def _container(container: Object, before: Object, reason: str, phase: str, now: str) -> Object:
    """Return the status of a container."""
    state = before.get("state") or {}
    if phase in ("Succeeded", "Failed"):
        ended = {
            "exitCode": 1 if reason else 0,
            "reason": "Error" if reason else "Completed",
            "finishedAt": now,
        }
        state = {"terminated": ended}
    elif reason:
        state = {"waiting": {"reason": reason, "message": f"{reason}: as the test asked"}}
    elif "running" not in state:
        state = {"running": {"startedAt": now}}
    running = "running" in state
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": running,
        "started": running,
        "restartCount": before.get("restartCount", 0),
        "state": state,
    }
