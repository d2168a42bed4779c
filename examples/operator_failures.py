"""Failing reconciles: each object is retried by itself with a growing delay, and the state says which and why.

python examples/operator_failures.py
"""

from __future__ import annotations

import asyncio
import logging

from aioinformer import Client, KubeObject, TerminalError
from aioinformer.errors import InvalidResultError, ReconcileError, ReconcileTimeout
from aioinformer.operator import (
    Controller,
    ControllerState,
    Manager,
    ManagerState,
    Reconciler,
    Request,
    Result,
    RunState,
    TriggerState,
)
from aioinformer.testing import APIServer
from aioinformer.workqueue import ItemFastSlowRateLimiter


class Mounting(Reconciler[KubeObject]):
    """A reconciler whose mounts fail."""

    def __init__(self) -> None:
        self.tries: list[str] = []

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        self.tries.append(request.name)
        match request.name:
            case "away":
                raise ConnectionError("10.0.0.7 does not answer")  # retried with a growing delay
            case "misspelt":
                raise TerminalError("there is no volume 'depe'")  # not retried before the object changes
            case "hanging":
                await asyncio.sleep(3600)  # cancelled after `timeout`, then retried
            case "mistaken":
                return 20  # type: ignore[return-value]  # should be Result(requeue_after=20)
        return None


def report(state: ManagerState) -> None:
    """Print what a dashboard would show; `print(manager.state)` is for people."""
    for controller in state.controllers:
        print(f"{controller.name}: {controller.failing} objects failing, {controller.terminal} for good")
        for run in controller.running:
            print_run(run)
        for trigger in controller.triggers:
            print_trigger(trigger)


def print_run(run: RunState) -> None:
    """Print a running reconcile; it is stuck if it ignores its cancellation."""
    print(f"{run.key}: {'stuck' if run.stuck else 'running'}")


def print_trigger(trigger: TriggerState) -> None:
    """Print a trigger; your predicates, map functions and sources may fail, too."""
    print(f"{trigger.name}: {trigger.seen} seen, {trigger.failed} failed")


def kind_of_failure(state: ControllerState) -> str:
    """Return the kind of the last error."""
    match state.last_error:
        case ReconcileTimeout():
            return "it took too long"
        case InvalidResultError():
            return "our bug"
        case ReconcileError():
            return "it cannot work"
        case _:
            return "the environment"


async def main() -> None:
    """Fail on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        manager = Manager(client)
        mounting = Mounting()
        controller = manager.add(
            Controller(
                "mounting",
                mounting,
                manager.for_resource("v1", "configmaps"),
                timeout=1,
                rate_limiter=ItemFastSlowRateLimiter(fast_delay=0.01, slow_delay=60, max_fast_attempts=2),
            )
        )
        async with manager:
            for name, tries in (("away", 3), ("misspelt", 1), ("mistaken", 3), ("hanging", 1)):
                server.create("v1", "configmaps", {"metadata": {"name": name}})
                while mounting.tries.count(name) < tries:
                    await asyncio.sleep(0.01)
                if name == "hanging":
                    report(manager.state)
                while controller.state.running:
                    await asyncio.sleep(0.01)
                print(f"{name}: {controller.state.last_error} ({kind_of_failure(controller.state)})")


if __name__ == "__main__":
    logging.getLogger("aioinformer.operator").setLevel(logging.CRITICAL)  # else each failure is an ERROR
    asyncio.run(main())
