"""The API servers that tests can run on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from aioinformer import Client
from aioinformer.testing import APIServer


@dataclass(frozen=True)
class ServerUnderTest:
    """The API server of a test: the fixture ``api_server``.

    Attributes:
        kind: ``"embedded"``, ``"kubernetes"`` or ``"kubeconfig"``, as ``--api-server`` says.
        kubeconfig: Its kubeconfig; None for the user's own.
    """

    kind: str
    kubeconfig: Path | None = None
    _embedded: APIServer | None = None

    @property
    def embedded(self) -> APIServer:
        """The embedded server, for faults and for changes in one step. On other servers the test is skipped."""
        if self._embedded is None:
            pytest.skip(f"needs the embedded API server, not --api-server {self.kind}")
        return self._embedded

    def connect(self) -> Client:
        """Return another client. The test opens it: ``async with api_server.connect() as client``."""
        return Client.from_kubeconfig(path=self.kubeconfig)
