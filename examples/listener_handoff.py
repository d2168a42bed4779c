"""How one handler gets its notifications, and why a slow handler does not delay the others.

    add ─► pending deque ─► pop task ─► channel ─► run task ─► handler

`add` never waits. The deque takes every notification. The pop task forwards them, a batch at a time, through a channel
that holds one batch. The run task calls the handler for each notification of a batch. So the notifications for a
slow handler wait in its own deque, and `depth` and `high_water` count them.

    python examples/listener_handoff.py
"""

from __future__ import annotations

import asyncio

from aioinformer import KubeObject, ResourceEventHandler, ResourceEventHandlerFuncs
from aioinformer.cache import AddNotification, Processor, ProcessorListener

NUMBER = 2000


class Slow(ResourceEventHandler[KubeObject]):
    """Waits in every call until it is released."""

    def __init__(self) -> None:
        self.has_started = asyncio.Event()
        self.is_released = asyncio.Event()

    async def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self.has_started.set()
        await self.is_released.wait()


async def main() -> None:
    """Distribute the same notifications to a slow and a fast handler."""
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
        await slow.has_started.wait()
        print(f"fast: {len(seen)} seen, depth {fast_listener.depth}, high water {fast_listener.high_water}")
        print(
            f"slow: {slow_listener.state.delivered} delivered, depth {slow_listener.depth}, "
            f"at {slow_listener.state.handling}"
        )
        slow.is_released.set()
        await slow_listener.wait_initial_delivered()
        print(f"slow: {slow_listener.state.delivered} delivered, depth {slow_listener.depth}")
    finally:
        running.cancel()
        await asyncio.wait({running})


if __name__ == "__main__":
    asyncio.run(main())
