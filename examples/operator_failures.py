"""What becomes of reconciles that fail: each object by itself, later each time, and the state says which and why.

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
    """Mounts what cannot be mounted."""

    def __init__(self) -> None:
        self.tries: list[str] = []

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        self.tries.append(request.name)
        match request.name:
            case "away":
                raise ConnectionError("10.0.0.7 does not answer")  # tried again, later each time
            case "misspelt":
                raise TerminalError("there is no volume 'depe'")  # not tried again before it is changed
            case "hanging":
                await asyncio.sleep(3600)  # cancelled after `timeout`, and tried again
            case "mistaken":
                return 20  # type: ignore[return-value]  # Result(requeue_after=20) was meant
        return None


def report(state: ManagerState) -> None:
    """What one would put into a dashboard; `print(manager.state)` is for people."""
    for controller in state.controllers:
        print(f"{controller.name}: {controller.failing} objects failing, {controller.terminal} for good")
        for run in controller.running:
            tell_run(run)
        for trigger in controller.triggers:
            tell_trigger(trigger)


def tell_run(run: RunState) -> None:
    """A reconcile that goes on; one that does not even end when it is cancelled is stuck."""
    print(f"{run.key}: {'stuck' if run.stuck else 'running'}")


def tell_trigger(trigger: TriggerState) -> None:
    """What makes the controller run; predicates, map functions and sources are yours, and may fail too."""
    print(f"{trigger.name}: {trigger.seen} seen, {trigger.failed} failed")


def kind_of_failure(state: ControllerState) -> str:
    """Whose fault the last one was."""
    match state.last_error:
        case ReconcileTimeout():
            return "it took too long"
        case InvalidResultError():
            return "a bug of ours"
        case ReconcileError():
            return "it cannot work"
        case _:
            return "the world's"


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
    logging.getLogger("aioinformer.operator").setLevel(logging.CRITICAL)  # each failure would be an ERROR
    asyncio.run(main())
