"""How one handler gets its notifications, and why a slow one delays nobody else.

    add ─► pending deque ─► run task ─► handler

`add` never waits. Each handler has a deque and a run task of its own, which takes one notification after the other and
calls the handler. So what waits for a slow handler waits in its own deque, where `depth` and `high_water` count it.

    python examples/listener_handoff.py
"""

from __future__ import annotations

import asyncio

from aioinformer import (
    AddNotification,
    KubeObject,
    Processor,
    ProcessorListener,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
)

NUMBER = 2000


class Slow(ResourceEventHandler[KubeObject]):
    """Stands at every notification until it is let go on."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self.has_begun.set()
        await self.may_go_on.wait()


async def main() -> None:
    """Hand the same notifications to a slow and a fast handler."""
    slow = Slow()
    seen: list[str] = []
    fast = ResourceEventHandlerFuncs[KubeObject](on_add=lambda obj, is_in_initial_list: seen.append(obj.key))
    slow_listener = ProcessorListener(slow, name="slow")
    fast_listener = ProcessorListener(fast, name="fast")
    processor = Processor()
    processor.add_listener(slow_listener)
    processor.add_listener(fast_listener)
    running = asyncio.create_task(processor.run())
    try:
        for number in range(NUMBER):
            pod = KubeObject.from_dict({"metadata": {"name": f"pod-{number}", "namespace": "default"}})
            processor.distribute(AddNotification(pod, is_in_initial_list=True), is_sync=False)
        await fast_listener.wait_initial_delivered()
        await slow.has_begun.wait()
        print(f"fast: {len(seen)} seen, depth {fast_listener.depth}, high water {fast_listener.high_water}")
        print(
            f"slow: {slow_listener.state.delivered} delivered, depth {slow_listener.depth}, "
            f"at {slow_listener.state.handling}"
        )
        slow.may_go_on.set()
        await slow_listener.wait_initial_delivered()
        print(f"slow: {slow_listener.state.delivered} delivered, depth {slow_listener.depth}")
    finally:
        running.cancel()
        await asyncio.wait({running})


if __name__ == "__main__":
    asyncio.run(main())
