"""The fixtures.

Those with the prefix ``aioinformer_`` use each other. The short names are for tests; a project or plugin may have
fixtures of these names that are something else. Those that need the test's event loop exist twice: pytest-asyncio runs
one, anyio's plugin the other (see ``loops.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import pytest

from aioinformer import AioInformerError, Client, ForbiddenError, KubeObject, NotFoundError, Resource
from aioinformer.operator import Manager, Operator
from aioinformer.operator.definitions import install
from aioinformer.sharding import Sharding
from aioinformer.testing import APIServer

from . import failed
from .control_plane import ControlPlane, binaries
from .loops import asyncio_fixture, value_in_loop
from .servers import ServerUnderTest
from .webhooks import serve


class RunOperator(Protocol):
    """The type of the fixture ``run_operator``."""

    def __call__(
        self, operator: Operator, *, settings: object = None, sharding: Sharding | None = None
    ) -> AbstractAsyncContextManager[Manager]:
        """Run an operator inside a block, with its settings; or one of the replicas that share the objects."""
        ...


# -- the server --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _aioinformer_control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(binaries(), tmp_path_factory.mktemp("kubernetes")) as running:
        yield running


@pytest.fixture
def api_server_options() -> dict[str, Any]:
    """The arguments of the embedded APIServer, for projects to override."""
    return {}


async def _run_embedded(tmp_path: Path, api_server_options: dict[str, Any]) -> AsyncIterator[ServerUnderTest]:
    async with APIServer(**api_server_options) as server:
        kubeconfig = tmp_path / "kubeconfig"
        server.kubeconfig(kubeconfig)
        yield ServerUnderTest("embedded", kubeconfig, server)


_aioinformer_asyncio_embedded = asyncio_fixture(_run_embedded)
_aioinformer_anyio_embedded = pytest.fixture(_run_embedded)


@pytest.fixture
def aioinformer_server(request: pytest.FixtureRequest) -> ServerUnderTest:
    """The API server: an embedded one of the test's own, or one that all tests share."""
    config = request.config
    kind = config.getoption("api_server") or config.getini("api_server")
    if kind == "embedded":
        server: ServerUnderTest = value_in_loop(request, "embedded", "api_server")
        return server
    if kind == "kubernetes":
        return ServerUnderTest(kind, request.getfixturevalue("_aioinformer_control_plane").kubeconfig)
    return ServerUnderTest(kind)


# -- the client --------------------------------------------------------------------------------------------


_checked = pytest.StashKey[str]()
"""Why the cluster cannot be used, or ""."""


async def _open_client(
    request: pytest.FixtureRequest, aioinformer_server: ServerUnderTest
) -> AsyncIterator[Client]:
    stash = request.session.stash
    if aioinformer_server.kind == "kubeconfig" and _checked not in stash:
        stash[_checked] = await _why_unusable(aioinformer_server)
    if why := stash.get(_checked, ""):
        pytest.fail(f"--api-server kubeconfig: {why}", pytrace=False)
    async with aioinformer_server.connect() as client:
        yield client


async def _why_unusable(server: ServerUnderTest) -> str:
    try:
        async with server.connect() as client:
            await client.get("/version", timeout=10)
    except ForbiddenError:
        return ""  # it may permit what the tests do
    except AioInformerError as error:
        return f"{error}; start the cluster, or choose another context or --api-server embedded"
    return ""


_aioinformer_asyncio_client = asyncio_fixture(_open_client)
_aioinformer_anyio_client = pytest.fixture(_open_client)


@pytest.fixture
def aioinformer_client(request: pytest.FixtureRequest, aioinformer_server: ServerUnderTest) -> Client:
    """An open client, with all rights on the embedded server and on a kube-apiserver."""
    opened: Client = value_in_loop(request, "client", "client")
    return opened


# -- the namespace -----------------------------------------------------------------------------------------


async def _make_namespace(request: pytest.FixtureRequest, aioinformer_client: Client) -> AsyncIterator[str]:
    namespaces = Resource(aioinformer_client, "namespaces", KubeObject)
    name = (await namespaces.create({"metadata": {"generateName": "test-"}})).name
    yield name
    node = request.node
    if request.config.getoption("keep_namespace") and node.stash.get(failed, False):
        node.add_report_section("teardown", "aioinformer", f"kept the namespace {name}")
        return
    try:
        await namespaces.delete(name)
    except NotFoundError:
        return  # the test has deleted it


_aioinformer_asyncio_namespace = asyncio_fixture(_make_namespace)
_aioinformer_anyio_namespace = pytest.fixture(_make_namespace)


@pytest.fixture
def aioinformer_namespace(request: pytest.FixtureRequest, aioinformer_client: Client) -> str:
    """The name of a new namespace, which is deleted after the test."""
    name: str = value_in_loop(request, "namespace", "namespace")
    return name


# -- the operator ------------------------------------------------------------------------------------------


@pytest.fixture
def run_operator(
    aioinformer_server: ServerUnderTest, aioinformer_client: Client, aioinformer_namespace: str
) -> RunOperator:
    """Runs an operator in the test's namespace: ``async with run_operator(operator) as manager``.

    It installs the operator's CustomResourceDefinitions first. They remain on a server that tests share. The embedded
    server calls the operator's webhooks. Leaving the block raises the operator's error, if it has failed, such as a
    CacheMutatedError if it has changed a cached object. ``settings=`` and ``sharding=`` are as for
    ``Operator.running``.
    """
    client = aioinformer_client

    @asynccontextmanager
    async def run(
        operator: Operator, *, settings: object = None, sharding: Sharding | None = None
    ) -> AsyncIterator[Manager]:
        serves = aioinformer_server.kind == "embedded" and operator.has_webhooks
        if not serves:
            await install(client, operator)
        await operator.discover(client)
        manager = operator.manager(
            client,
            namespace=aioinformer_namespace,
            settings=settings,
            sharding=sharding,
            detect_mutations=True,
        )
        async with serve(client, operator, manager) if serves else nullcontext(), manager:
            yield manager

    return run


# -- short names -------------------------------------------------------------------------------------------


def _short(name: str, full_name: str) -> Any:
    """Return a fixture that is another one by a short name, unless another plugin has a fixture of that name."""

    def value(request: pytest.FixtureRequest) -> Any:
        try:
            return request.getfixturevalue(name)  # another plugin's, which this fixture overrides
        except pytest.FixtureLookupError as error:
            if error.argname != name:
                raise
        return request.getfixturevalue(full_name)

    value.__doc__ = f"``{full_name}``, or another plugin's fixture of this name."
    return pytest.fixture(value, name=name)


_aioinformer_short_server = _short("api_server", "aioinformer_server")
_aioinformer_short_client = _short("client", "aioinformer_client")
_aioinformer_short_namespace = _short("namespace", "aioinformer_namespace")
