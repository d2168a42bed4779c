"""An event loop with virtual time and a seeded order of execution: hours pass in milliseconds.

asyncio runs callbacks in the order in which they became ready, which hides bugs that need another order. This loop
draws the next of several ready tasks, as FoundationDB's and tokio's simulators do.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

from aioinformer.testing.simulation.errors import (
    DeadlockError,
    LivelockError,
    SimulationError,
    VirtualTimeoutError,
)
from aioinformer.testing.simulation.line import SERVERS
from aioinformer.testing.simulation.tasks import describe_tasks

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from random import Random

T = TypeVar("T")

START = 1000.0
"""Loop time at which every simulation begins."""

STEPS_AT_ONCE = 1_000_000
"""Callbacks at one moment of virtual time after which the loop reports a livelock."""

_MANY_TIMERS = 100


class SimulatedNetwork(Protocol):
    """The network that the loop's sockets connect to."""

    port: int

    async def reach(self) -> None:
        """Check that the server accepts connections."""

    def join(self, protocol: Any) -> asyncio.Transport:
        """Connect a client's protocol to the server and return the client's transport."""
        ...


class SimulatedTask(asyncio.Task[Any]):
    """A task whose hash is its number, so that sets of tasks iterate in the same order in every run."""

    __slots__ = ("number", "serves")

    def __init__(self, number: int, coroutine: Any, **options: Any) -> None:
        self.number = number
        context = options.get("context")
        self.serves = SERVERS.get() if context is None else context.get(SERVERS, False)
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self.number


PROCESS: contextvars.ContextVar[str] = contextvars.ContextVar("PROCESS", default="")
"""The simulated process that a task belongs to, with all tasks that it creates; see `VirtualTimeLoop.freeze`."""


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """An asyncio event loop whose virtual clock jumps to the next timer when nothing is ready.

    With `random`, the loop draws what runs next: any task, any of the timers that were due first, or the oldest of
    the plain callbacks. Plain callbacks (`call_soon`, a future's done callbacks) keep their order among themselves, as
    `call_soon` guarantees and protocols require. Tasks do not keep asyncio's first-in-first-out order, on purpose.
    Without `random` the loop keeps asyncio's order.

    There is no real I/O; sockets connect to `network`. `run_in_executor` runs the function in a thread and blocks the
    loop until it returns.

    Args:
        random: Draws the order; None keeps asyncio's.
        until: Loop time at which the simulation fails; it starts at 1000 s.

    Attributes:
        steps: How many callbacks have run.
        failures: The contexts passed to the loop's exception handler, such as exceptions that were never retrieved.
        after_step: Called after every callback, if set.
        network: The network that sockets connect to.
    """

    # Attributes of BaseEventLoop since Python 3.4
    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, random: Random | None = None, until: float = float("inf")) -> None:
        super().__init__()
        self._now = START
        self._until = until
        self._draw = None if random is None else random.random
        self._tasks_made = 0
        self._tasks = WeakSet[SimulatedTask]()
        self._steps_then = 0
        self.steps = 0
        self._frozen: dict[str, list[asyncio.Handle]] = {}
        self.failures: list[dict[str, Any]] = []
        self.after_step: Callable[[], object] | None = None
        self.network: SimulatedNetwork | None = None
        self.set_exception_handler(lambda _, context: self.failures.append(context))
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._now

    @property
    def is_idle(self) -> bool:
        """True if nothing else is ready to run before time passes."""
        return not self._ready

    def work(self, seconds: float) -> None:
        """Let time pass while running code blocks the event loop."""
        self._now += seconds

    def freeze(self, process: str) -> None:
        """Run nothing of a process, as after SIGSTOP. Time goes on, and its timers fire late."""
        self._frozen.setdefault(process, [])

    def thaw(self, process: str) -> None:
        """Let a process run again: all that became due meanwhile is ready at once."""
        self._ready.extend(self._frozen.pop(process, []))

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> asyncio.Task[Any]:
        self._tasks_made += 1
        if options.get("name") is None:
            options["name"] = f"Task-{self._tasks_made}"
        task = SimulatedTask(self._tasks_made, coroutine, loop=loop, **options)
        self._tasks.add(task)
        return task

    def report_unretrieved(self) -> None:
        """Report every task whose exception was never retrieved, also tasks that are still referenced."""
        for task in self._tasks:
            if task._log_traceback:
                name = getattr(task.get_coro(), "__qualname__", task.get_name())
                self.call_exception_handler(
                    {
                        "message": f"Task exception was never retrieved: {name}",
                        "exception": task.exception(),
                        "task": task,
                    }
                )

    def _run_once(self) -> None:
        """Run until stopped; without I/O to poll, one call is enough."""
        ready = self._ready
        while not self._stopping:
            timers = self._scheduled
            while timers and timers[0]._cancelled:
                self._timer_cancelled_count -= 1
                heapq.heappop(timers)._scheduled = False
            if not ready:
                if not timers:
                    raise DeadlockError(
                        f"deadlock: every task waits and no timer is set:\n{describe_tasks(self)}"
                    )
                self._jump(timers[0]._when)
            while timers and timers[0]._when <= self._now:
                timer = heapq.heappop(timers)
                timer._scheduled = False
                ready.append(timer)
            handle = (
                ready.popleft() if self._draw is None or len(ready) == 1 else self._draw_handle(self._draw)
            )
            if handle._cancelled:
                continue
            if self._frozen and (held := self._frozen.get(_process_of(handle))) is not None:
                held.append(handle)
                continue
            handle._run()
            self.steps += 1
            if self.after_step is not None:
                self.after_step()
            if self.steps - self._steps_then > STEPS_AT_ONCE:
                self._steps_then = self.steps
                raise LivelockError(
                    f"livelock: {STEPS_AT_ONCE} callbacks have run and no time has passed:\n{describe_tasks(self)}"
                )

    def _draw_handle(self, draw: Callable[[], float]) -> asyncio.Handle:
        """Draw what runs next: any task, a timer that was due first, or the oldest plain callback."""
        choices: list[int] = []
        plain = False
        due: float | None = None
        for position, handle in enumerate(self._ready):
            if isinstance(getattr(handle._callback, "__self__", None), asyncio.Task):
                choices.append(position)
            elif type(handle) is asyncio.TimerHandle:
                if due is None or due == handle.when():
                    due = handle.when()
                    choices.append(position)
            elif not plain:
                plain = True
                choices.append(position)
        position = choices[int(draw() * len(choices))]
        drawn: asyncio.Handle = self._ready[position]
        del self._ready[position]
        return drawn

    def _jump(self, when: float) -> None:
        if when > self._until:
            passed = self._until - START
            raise VirtualTimeoutError(f"not done after {passed:g} virtual seconds:\n{describe_tasks(self)}")
        self._now = max(self._now, when)
        self._steps_then = self.steps
        if self._timer_cancelled_count > _MANY_TIMERS and self._timer_cancelled_count * 2 > len(
            self._scheduled
        ):
            for timer in self._scheduled:
                timer._scheduled = not timer._cancelled
            self._scheduled[:] = [timer for timer in self._scheduled if not timer._cancelled]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run a function in a thread and block the loop until it returns."""
        future: asyncio.Future[T] = self.create_future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                future.set_result(context.run(func, *args))
            except BaseException as error:
                future.set_exception(error)

        thread = threading.Thread(target=run, name="simulated executor")
        thread.start()
        thread.join()
        return future

    # Sockets connect to the simulated server.

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        await self._network_at(address).reach()

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        if options.get("ssl"):
            raise SimulationError("TLS is not simulated")
        sock = options.get("sock")
        if sock is not None:
            sock.close()  # sock_connect has checked its address
            network = self._network_at(None)
        else:
            network = self._network_at((host, port))
            await network.reach()
        protocol = protocol_factory()
        transport = network.join(protocol)
        protocol.connection_made(transport)
        return transport, protocol

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        if sock is not None:
            sock.close()
        raise SimulationError("a simulation has a single server: use world.server")

    def _network_at(self, address: Any) -> SimulatedNetwork:
        if self.network is None or (address is not None and address[1] != self.network.port):
            raise SimulationError(
                f"cannot connect to {address}: a simulation only has the network of world.server"
            )
        return self.network

    def _write_to_self(self) -> None:
        """Do nothing: there is no selector to wake."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: there is no I/O."""


def _process_of(handle: Any) -> str:
    context: contextvars.Context = handle._context
    return context.get(PROCESS, "")


def is_servers(task: asyncio.Task[Any]) -> bool:
    """Return whether a task belongs to the simulated server."""
    if isinstance(task, SimulatedTask):
        return task.serves
    return sys.version_info >= (3, 12) and bool(task.get_context().get(SERVERS, False))


async def idle() -> None:
    """Wait until nothing more can run before time passes."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    while not loop.is_idle:  # noqa: ASYNC110 - no event says that the loop is idle
        await asyncio.sleep(0)
