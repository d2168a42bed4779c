"""The real kube-apiserver instead of the replay server; it creates pods and patches them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from tests.kubernetes.controlplane import ControlPlane

from .pods import NAMESPACES, SENT, pod

AT_ONCE = 8
"""Concurrent requests."""
STRIDE = 7919
"""The distance between the numbers of changed objects, so that each object changes once per round."""

_ANONYMOUS_ADMIN = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "anonymous-admin"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}],
}
"""The clients of the benchmarks have no credentials."""

_encode = msgspec.json.encode


class RealServer:
    """A control plane with pods, as a context manager with the interface of ``ReplayServer``.

    Args:
        cores: The cores of its processes.
    """

    def __init__(self, cores: Iterable[int]) -> None:
        self._cores = set(cores)
        self._plane = ControlPlane()
        self._paths: list[str] = []
        self._cursor = 0

    def __enter__(self) -> Self:
        here = os.sched_getaffinity(0)
        os.sched_setaffinity(0, here & self._cores or here)
        try:
            self._plane.start()
        finally:
            os.sched_setaffinity(0, here)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._plane.stop()

    @property
    def http(self) -> str:
        raise NotImplementedError("the kube-apiserver speaks TLS only")

    @property
    def https(self) -> str:
        return self._plane.url

    @property
    def ca(self) -> Path:
        return self._plane.ca_file

    def configure(self, objects: int) -> None:
        """Create pods up to this number. Existing pods stay.

        Raises:
            ValueError: More pods exist already.
        """
        if objects < len(self._paths):
            raise ValueError(f"there are {len(self._paths)} pods already, more than {objects}")
        asyncio.run(self._create(objects))

    def flow(self, events: int, rate: float, watchers: int) -> dict[str, Any]:
        """Change pods, each stamped with the time at which its patch is sent.

        Args:
            events: The number of changes.
            rate: Changes per second; 0 for as fast as the server accepts them.
            watchers: Ignored: watches start at the list's version.
        """
        return asyncio.run(self._change(events, rate))

    def expire(self) -> None:
        raise NotImplementedError("the real server cannot expire its history on command")

    def counts(self) -> dict[str, int]:
        raise NotImplementedError("the real server does not count its requests")

    async def _create(self, objects: int) -> None:
        async with self._session() as session:
            if not self._paths:
                await self._post(
                    session, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", _ANONYMOUS_ADMIN
                )
                for number in range(NAMESPACES):
                    namespace = {"metadata": {"name": f"team-{number}"}}
                    await self._post(session, "/api/v1/namespaces", namespace)
            numbers = iter(range(len(self._paths), objects))

            async def work() -> None:
                for number in numbers:
                    wanted = acceptable(pod(number))
                    collection = f"/api/v1/namespaces/{wanted['metadata']['namespace']}/pods"
                    await self._post(session, collection, wanted)
                    self._paths.append(f"{collection}/{wanted['metadata']['name']}")

            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(work())

    async def _change(self, events: int, rate: float) -> dict[str, Any]:
        numbers = iter(range(events))
        first = last = late = 0
        async with self._session() as session:
            start = time.monotonic_ns()

            async def work() -> None:
                nonlocal first, last, late
                for number in numbers:
                    if rate:
                        due = start + int(number / rate * 1e9)
                        await asyncio.sleep((due - time.monotonic_ns()) / 1e9)
                        late = time.monotonic_ns() - due
                    last = time.monotonic_ns()
                    first = first or last
                    path = self._paths[(self._cursor + number) * STRIDE % len(self._paths)]
                    await self._patch(session, path, last)

            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(work())
        self._cursor += events
        return {"events": events, "first": first, "last": last, "late_us": late / 1e3}

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Authorization": f"Bearer {self._plane.token}"}
        connector = aiohttp.TCPConnector(ssl=self._plane.ssl_context(), limit=AT_ONCE)
        async with aiohttp.ClientSession(self.https, connector=connector, headers=headers) as session:
            yield session

    async def _post(self, session: aiohttp.ClientSession, path: str, wanted: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json"}
        async with session.post(path, data=_encode(wanted), headers=headers) as response:
            await _require_accepted(response)

    async def _patch(self, session: aiohttp.ClientSession, path: str, sent: int) -> None:
        patch = {"metadata": {"annotations": {SENT: f"{sent:019}"}}}
        headers = {"Content-Type": "application/merge-patch+json"}
        async with session.patch(path, data=_encode(patch), headers=headers) as response:
            await _require_accepted(response)


async def _require_accepted(response: aiohttp.ClientResponse) -> None:
    said = await response.read()
    if response.status >= 300:
        raise RuntimeError(f"{response.method} {response.url.path}: {response.status} {said[:500].decode()}")


def acceptable(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that can be created: without the server's own fields, and without priority classes."""
    given = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
    metadata = {name: value for name, value in wanted["metadata"].items() if name not in given}
    spec = {name: value for name, value in wanted["spec"].items() if not name.startswith("priority")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
