"""The two servers that are compared, each ready for a client."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from aioinformer.testing import APIServer, User
from tests.e2e.api import API
from tests.kubernetes.configuration import CONTROLLERS
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.server_data import ENDPOINT
from tests.kubernetes.threads import in_thread

EMBEDDED, REAL = "embedded", "real"


class Target(NamedTuple):
    """A running server.

    Attributes:
        name: EMBEDDED or REAL.
        url: Its address.
        kubeconfig: A file with the administrator's context.
        api: Sends requests as the administrator.
    """

    name: str
    url: str
    kubeconfig: Path
    api: API


@asynccontextmanager
async def embedded(*, controllers: bool) -> AsyncIterator[Target]:
    """Run an embedded server in this event loop.

    Args:
        controllers: Run the controllers that ``real`` can run; otherwise none.
    """
    names = CONTROLLERS if controllers else ()
    with tempfile.TemporaryDirectory() as folder:
        async with APIServer(tls=True, token="administrator", control_plane=names, rbac=True) as server:
            administrator = User("admin", ("system:masters",), "admin")  # as the real server knows it
            server.users["administrator"] = administrator
            kubeconfig = Path(folder) / "kubeconfig"
            server.kubeconfig(kubeconfig)
            assert server.ca_pem is not None
            context = ssl.create_default_context(cadata=server.ca_pem.decode())
            async with API(server.url, server.token, context) as api:
                yield Target(EMBEDDED, server.url, kubeconfig, api)


@asynccontextmanager
async def real(*, controllers: bool) -> AsyncIterator[Target]:
    """Run a kube-apiserver of its own, with kube-controller-manager on demand."""
    async with ControlPlane(extra_args=ENDPOINT) as plane:
        if controllers:
            await in_thread(lambda abort: plane.start_controller_manager(abort=abort))
        async with target_of(plane) as target:
            yield target


@asynccontextmanager
async def target_of(plane: ControlPlane) -> AsyncIterator[Target]:
    """Connect to a running control plane."""
    async with API(plane.url, plane.token, plane.ssl_context()) as api:
        yield Target(REAL, plane.url, plane.kubeconfig, api)
