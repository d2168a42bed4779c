"""The cells of pods: how many containers are ready, what the pod is doing, how often it restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.objects import condition_of, is_true
from aioinformer.testing.tables.formats import age, at

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.tables.formats import Cell

_COMPLETED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


class _Summary(NamedTuple):
    ready: str
    status: str
    restarts: str


class _Progress(NamedTuple):
    """What the containers of a pod tell: the reason for its status, and whose restarts count."""

    reason: str
    ready: int
    restarted: list[Object]


def _summary(pod: Object) -> _Summary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {
        container.get("name")
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    reason = status.get("reason") or status.get("phase") or ""
    if (condition_of(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    begun, initializing = _add_init_containers(pod, sidecars, reason)
    if not initializing or is_true(pod, "Initialized"):
        restarted = [container for container in begun.restarted if container.get("name") in sidecars]
        begun = _add_containers(pod, _Progress(begun.reason, begun.ready, restarted))
    total = len(spec.get("containers") or ()) + len(sidecars)
    return _Summary(
        f"{begun.ready}/{total}", _status_of_deleted(pod, begun.reason), _restarts(begun.restarted)
    )


def _add_init_containers(pod: Object, sidecars: set[Any], reason: str) -> tuple[_Progress, bool]:
    """Return the progress of the init containers, and whether one of them has not done its work."""
    statuses = at("status.initContainerStatuses", ())(pod)
    ready = 0
    for number, status in enumerate(statuses):
        state = status.get("state") or {}
        ended, waits = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if ended is not None and not ended.get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        if ended is not None:
            reason = f"Init:{_end(ended)}"
        elif waits and waits != "PodInitializing":
            reason = f"Init:{waits}"
        else:
            reason = f"Init:{number}/{len(at('spec.initContainers', ())(pod))}"
        return _Progress(reason, ready, statuses[: number + 1]), True
    return _Progress(reason, ready, list(statuses)), False


def _add_containers(pod: Object, begun: _Progress) -> _Progress:
    """Return the progress with the ordinary containers; the first one's reason counts most."""
    reason, ready, restarted = begun
    statuses = at("status.containerStatuses", ())(pod)
    runs, error = False, ""
    for status in reversed(statuses):
        state = status.get("state") or {}
        ended = state.get("terminated")
        if waits := (state.get("waiting") or {}).get("reason"):
            reason = waits
        elif ended is not None:
            reason = _end(ended)
            error = reason if ended.get("exitCode") else error
        elif status.get("ready") and "running" in state:
            runs = True
            ready += 1
    if reason == "Completed":
        if runs and is_true(pod, "Ready"):
            reason = "Running"
        elif error or runs:
            reason = error or "NotReady"
    return _Progress(reason, ready, [*restarted, *statuses])


def _status_of_deleted(pod: Object, reason: str) -> str:
    """Return the status of a pod, which a deletion changes."""
    if "deletionTimestamp" not in pod["metadata"]:
        return reason
    if at("status.reason")(pod) == "NodeLost":
        return "Unknown"
    return reason if at("status.phase")(pod) in _COMPLETED else "Terminating"


def _end(terminated: Object) -> str:
    """Return why a container ended."""
    if reason := terminated.get("reason"):
        return str(reason)
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(statuses: list[Object]) -> str:
    restarts = sum(status.get("restartCount") or 0 for status in statuses)
    ends = [at("lastState.terminated.finishedAt")(status) for status in statuses]
    last = max(ends, default="")
    return f"{restarts} ({age(last)} ago)" if restarts and last else str(restarts)


def _ip(pod: Object) -> str:
    ips = at("status.podIPs", ())(pod)
    return (ips[0].get("ip") if ips else "") or "<none>"


def _gates(pod: Object) -> str:
    gates = at("spec.readinessGates", ())(pod)
    passed = sum(is_true(pod, gate["conditionType"]) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else "<none>"


def completion(pod: Object) -> list[Object]:
    """Return the conditions of a pod's row: whether it has completed."""
    phase = at("status.phase")(pod)
    message = _COMPLETED.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


POD: dict[str, Cell] = {
    "Ready": lambda pod: _summary(pod).ready,
    "Status": lambda pod: _summary(pod).status,
    "Restarts": lambda pod: _summary(pod).restarts,
    "IP": _ip,
    "Node": at("spec.nodeName", "<none>"),
    "Nominated Node": at("status.nominatedNodeName", "<none>"),
    "Readiness Gates": _gates,
}
