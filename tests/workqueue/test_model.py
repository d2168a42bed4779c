"""workqueue/: random sequences of calls, with priorities and delays, compared with a simple model."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioinformer import WorkQueue
from aioinformer.errors import QueueShutDownError
from aioinformer.testing.simulation import VirtualTimeLoop

from ..virtual_time import settle

ITEMS = st.sampled_from("abcdef")
PRIORITIES = st.sampled_from([0, 0, 0, -100, 5])


@dataclass
class Model:
    """A simple model of the rules: one list of waiting items, in their order of arrival."""

    ageing: int
    queued: list[tuple[str, int]] = field(default_factory=list)
    processing: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    delayed: dict[str, tuple[float, int]] = field(default_factory=dict)
    passed_over: dict[int, int] = field(default_factory=dict)

    def add(self, item: str, priority: int) -> None:
        if item in self.processing:
            self.again[item] = max(priority, self.again.get(item, priority))
            return
        for position, (other, its_priority) in enumerate(self.queued):
            if other == item:
                if its_priority >= priority:
                    return
                del self.queued[position]
                break
        self.queued.append((item, priority))

    def add_after(self, item: str, when: float, priority: int) -> None:
        earliest, highest = self.delayed.get(item, (math.inf, priority))
        if when < earliest:
            self.delayed.pop(item, None)  # it comes after other items of the same time
        self.delayed[item] = (min(when, earliest), max(priority, highest))

    def pass_time(self, now: float) -> None:
        due = [item for item, (when, _) in self.delayed.items() if when <= now]
        for item in sorted(due, key=lambda item: self.delayed[item][0]):
            self.add(item, self.delayed.pop(item)[1])

    def get(self) -> str:
        highest, *lower = sorted({priority for _, priority in self.queued}, reverse=True)
        overdue = [waiting for waiting in lower if self.passed_over.get(waiting, 0) >= self.ageing]
        chosen = overdue[0] if overdue else highest
        if not overdue:
            for waiting in lower:
                self.passed_over[waiting] = self.passed_over.get(waiting, 0) + 1
        self.passed_over[chosen] = 0
        position = next(at for at, (_, priority) in enumerate(self.queued) if priority == chosen)
        item, priority = self.queued.pop(position)
        self.processing[item] = priority
        return item

    def finish(self, item: str) -> None:
        del self.processing[item]
        if item in self.again:
            self.queued.append((item, self.again.pop(item)))


class AnySequence(RuleBasedStateMachine):
    @initialize(ageing=st.sampled_from([1, 2, 3, 10]))
    def begin(self, ageing: int) -> None:
        self.loop = VirtualTimeLoop()
        self.queue: WorkQueue[str] = WorkQueue(ageing=ageing)
        self.model = Model(ageing)

    @rule(item=ITEMS, priority=PRIORITIES)
    def add(self, item: str, priority: int) -> None:
        self.queue.add(item, priority)
        self.model.add(item, priority)

    @rule(item=ITEMS, delay=st.floats(0.5, 10), priority=PRIORITIES)
    def add_after(self, item: str, delay: float, priority: int) -> None:
        async def add() -> None:
            self.queue.add_after(item, delay, priority)

        self.model.add_after(item, self.loop.time() + delay, priority)
        self.loop.run_until_complete(add())

    @rule(item=ITEMS)
    def cancel_delayed(self, item: str) -> None:
        assert self.queue.cancel_delayed(item) is (self.model.delayed.pop(item, None) is not None)

    @rule(item=ITEMS)
    def discard(self, item: str) -> None:
        waits = [entry for entry in self.model.queued if entry[0] == item]
        assert self.queue.discard(item) is bool(waits)
        for entry in waits:
            self.model.queued.remove(entry)

    @rule(seconds=st.floats(0, 5))
    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.loop.run_until_complete(settle(3))
        self.model.pass_time(self.loop.time())

    @precondition(lambda self: self.model.queued)
    @rule()
    def get(self) -> None:
        assert self.loop.run_until_complete(self.queue.get()) == self.model.get()

    @precondition(lambda self: self.model.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.model.processing)))
        assert self.queue.priority_of(item) == self.model.processing[item]
        self.queue.done(item)
        self.model.finish(item)

    @invariant()
    def they_are_equal(self) -> None:
        if not hasattr(self, "queue"):
            return
        state = self.queue.state
        assert len(self.queue) == state.depth == len(self.model.queued)
        assert sorted(self.queue.items_processing) == sorted(self.model.processing)
        assert state.delayed == len(self.model.delayed)
        assert state.depths == {
            priority: sum(1 for _, its_priority in self.model.queued if its_priority == priority)
            for priority in {priority for _, priority in self.model.queued}
        }

    def teardown(self) -> None:
        if hasattr(self, "queue"):
            self.loop.run_until_complete(self.drain())
            self.loop.close()

    async def drain(self) -> None:
        """Each item that is still due comes once more, and the drain ends."""
        draining = asyncio.create_task(self.queue.shut_down_with_drain())
        await asyncio.sleep(0)
        owed = len(self.model.queued) + len(self.model.again)
        for item in self.queue.items_processing:
            self.queue.done(item)
        worked = 0
        try:
            while True:
                self.queue.done(await self.queue.get())
                worked += 1
        except QueueShutDownError:
            assert worked == owed
        await draining


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
