"""Whether an operator is well, beyond its informers: what probes are to be told, and why."""

from __future__ import annotations

from collections.abc import Iterator

from .state import ControllerState


def controller_liveness_problems(controller: ControllerState) -> Iterator[str]:
    """Why a controller is not alive."""
    for run in controller.stuck:
        yield f"{controller.name} is stuck at {run}"
    if controller.worker_error is not None:
        yield f"{controller.name}: a worker or source has died: {controller.worker_error!r}"


def controller_readiness_problems(controller: ControllerState) -> Iterator[str]:
    """Why a controller is not ready to reconcile, though the caches are filled."""
    for trigger in controller.triggers:
        if not trigger.synced:
            yield f"{controller.name}: {trigger.name} has not been through its first list"
