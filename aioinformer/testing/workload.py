"""A seeded workload: pods are created, changed and deleted while watches end and history expires."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from aioinformer.testing.server import APIServer

NAMESPACE = "default"
NODES = 8
APPS = ("web", "api", "db", "cache", "worker")
PHASES = ("Pending", "Running", "Succeeded", "Failed")


class Workload:
    """Creates, changes, deletes and re-creates pods.

    Args:
        server: The server.
        seed: Determines the operations.

    Attributes:
        done: The number of operations of each kind.
    """

    def __init__(self, server: APIServer, seed: int) -> None:
        self._server = server
        self._random = Random(seed)
        self._names: list[str] = []
        self._next = 0
        self.done: Counter[str] = Counter()

    def populate(self, pods: int) -> None:
        """Create the initial pods."""
        for _ in range(pods):
            self._create()

    def step(self) -> None:
        """Do one operation."""
        dice = self._random.random()
        if dice < 0.2 or not self._names:
            self.done["created"] += 1
            self._create()
        elif dice < 0.8:
            self.done["changed"] += 1
            self._change(self._random.choice(self._names))
        elif dice < 0.95:
            self.done["deleted"] += 1
            self._delete(self._random.randrange(len(self._names)))
        else:
            self.done["re-created"] += 1
            name = self._delete(self._random.randrange(len(self._names)))
            self._create(name)

    async def run(self, per_second: float) -> None:
        """Do operations at a rate until cancelled."""
        pause = 0.02
        due = 0.0
        while True:
            due += per_second * pause
            while due >= 1:
                self.step()
                due -= 1
            await asyncio.sleep(pause)

    def _create(self, name: str = "") -> None:
        if not name:
            name = f"{APPS[self._next % len(APPS)]}-{self._next + 1}"
            self._next += 1
        app = name.partition("-")[0]
        node = f"node-{self._random.randrange(NODES)}"
        pod = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
            "spec": {
                "nodeName": node,
                "containers": [{"name": app, "image": f"registry.example.com/{app}:1"}],
            },
            "status": {"phase": "Pending"},
        }
        self._server.create("v1", "pods", pod)
        self._names.append(name)

    def _change(self, name: str) -> None:
        status = {"phase": self._random.choice(PHASES), "message": f"change {sum(self.done.values())}"}
        self._server.patch("v1", "pods", name, {"status": status}, namespace=NAMESPACE)

    def _delete(self, position: int) -> str:
        self._names[position], self._names[-1] = self._names[-1], self._names[position]
        name = self._names.pop()
        self._server.delete("v1", "pods", name, namespace=NAMESPACE)
        return name


class Troubles:
    """Injects random faults, one after the other.

    Args:
        server: The server.
        seed: Determines the faults.

    Attributes:
        done: The number of faults of each kind.
    """

    def __init__(self, server: APIServer, seed: int) -> None:
        faults = server.faults
        self._random = Random(seed)
        self._kinds: dict[str, Callable[[], object]] = {
            "watches ended": lambda: faults.drop_watches("pods"),
            "watches cut in mid-line": lambda: faults.drop_watches("pods", mid_line=True),
            "history expired": lambda: (faults.expire_history(), faults.drop_watches("pods")),
            "410 in the stream": lambda: faults.watch_error(code=410, resource="pods"),
            "429 on the next watch": lambda: (
                faults.fail(429, verb="watch", retry_after=1),
                faults.drop_watches("pods"),
            ),
            "500 on the next list": lambda: (
                faults.fail(500, verb="list"),
                faults.watch_error(code=410, resource="pods"),
            ),
        }
        self.done: Counter[str] = Counter()

    def step(self) -> str:
        """Inject a fault and return its kind."""
        kind = self._random.choice(list(self._kinds))
        self._kinds[kind]()
        self.done[kind] += 1
        return kind

    async def run(self, every: float, on_fault: Callable[[str], object] = lambda kind: None) -> None:
        """Inject faults until cancelled: the first after a second, then every `every` seconds on average."""
        await asyncio.sleep(1)
        while True:
            on_fault(self.step())
            await asyncio.sleep(every * (0.5 + self._random.random()))
