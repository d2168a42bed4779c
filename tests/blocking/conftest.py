"""An embedded API server for tests without an event loop, and a check that they leave no threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from aioinformer import Client
from aioinformer.testing import APIServer


class Server:
    """An embedded API server in a thread of its own.

    Attributes:
        api: The server itself, for its event loop.
        portal: Calls that event loop.
    """

    def __init__(self, api: APIServer, portal: BlockingPortal) -> None:
        self.api = api
        self.portal = portal

    @property
    def url(self) -> str:
        return self.api.url

    def client(self) -> Client:
        return Client.from_url(self.url)

    def create(self, *names: str, **fields: Any) -> None:
        """Create ConfigMaps in the namespace default."""
        for name in names:
            labels = {"labels": {"app": name}}
            metadata = {"name": name, "namespace": "default", **labels}
            self.portal.call(self.api.create, "v1", "configmaps", {"metadata": metadata, **fields})

    def set_data(self, name: str, **data: str) -> None:
        """Change a ConfigMap."""
        self.portal.call(self.api.patch, "v1", "configmaps", name, {"data": data}, "default")

    def delete(self, name: str) -> None:
        """Delete a ConfigMap."""
        self.portal.call(self.api.delete, "v1", "configmaps", name, "default")


@pytest.fixture
def server() -> Iterator[Server]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(APIServer()) as api:
        yield Server(api, portal)


@pytest.fixture(autouse=True)
def _leaves_no_threads() -> Iterator[None]:
    yield
    deadline = time.monotonic() + 5
    while threads := [thread for thread in threading.enumerate() if thread.name.startswith("aioinformer")]:
        assert time.monotonic() < deadline, threads
        time.sleep(0.01)  # a thread of a pool ends a moment after its executor


def wait_until(condition: Any, timeout: float = 10) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
