"""A work queue alone: workers, retries with a back-off, and a shutdown that drains the queue.

python examples/work_queue.py
"""

from __future__ import annotations

import asyncio

from aioinformer import WorkQueue
from aioinformer.workqueue import ItemExponentialFailureRateLimiter


async def work(queue: WorkQueue[str], failures: dict[str, int]) -> None:
    """Process items; no other worker gets an item before `done`."""
    async for url in queue:
        try:
            if failures.get(url, 0) > 0:
                failures[url] -= 1
                raise ConnectionError(url)
            print("fetched", url, "after", queue.num_requeues(url), "failures")
            queue.forget(url)
        except ConnectionError:
            queue.add_rate_limited(url)
        finally:
            queue.done(url)


async def main() -> None:
    """Fetch each page once, however often it was added."""
    queue: WorkQueue[str] = WorkQueue(ItemExponentialFailureRateLimiter(base_delay=0.01, max_delay=60))
    failures = {"example.com/b": 2}
    async with asyncio.TaskGroup() as workers:
        for _ in range(2):
            workers.create_task(work(queue, failures))
        for url in ("example.com/a", "example.com/b", "example.com/a"):
            queue.add(url)
        queue.add_after("example.com/later", 0.2)
        while queue.state.delayed:
            await asyncio.sleep(0.01)
        queue.add("example.com/low", priority=-1)
        queue.add("example.com/high", priority=1)
        await queue.shut_down_with_drain()
        print("drained")


if __name__ == "__main__":
    asyncio.run(main())
