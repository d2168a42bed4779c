"""Liveness and readiness of controllers, beyond that of their informers."""

from __future__ import annotations

from collections.abc import Iterator

from .state import ControllerState


def controller_liveness_problems(controller: ControllerState) -> Iterator[str]:
    """Yield the reasons why a controller is not alive."""
    for run in controller.stuck:
        yield f"{controller.name} is stuck at {run}"
    if controller.worker_error is not None:
        yield f"{controller.name}: a worker or source failed: {controller.worker_error!r}"


def controller_readiness_problems(controller: ControllerState) -> Iterator[str]:
    """Yield the reasons why a controller is not ready to reconcile, even with synced caches."""
    for trigger in controller.triggers:
        if not trigger.synced:
            yield f"{controller.name}: {trigger.name} has not processed its first list"
