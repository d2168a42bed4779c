"""The fixtures.

Those that need the test's event loop exist twice: pytest-asyncio runs one, anyio's plugin the other. Both plugins can
be installed; a test that uses ``anyio_backend`` is anyio's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any, Protocol

import pytest

from aioinformer import AioInformerError, Client, ForbiddenError, KubeObject, NotFoundError, Resource
from aioinformer.operator import Manager, Operator
from aioinformer.operator.definitions import install
from aioinformer.testing import APIServer

from . import failed
from .control_plane import ControlPlane, binaries
from .servers import ServerUnderTest
from .webhooks import serving


class RunOperator(Protocol):
    """The type of the fixture ``run_operator``."""

    def __call__(
        self, operator: Operator, *, settings: object = None
    ) -> AbstractAsyncContextManager[Manager]:
        """Run an operator inside a block, with its settings."""
        ...


def _asyncio(make: Callable[..., AsyncIterator[Any]]) -> Any:
    """Return a fixture that pytest-asyncio runs, in each of its modes."""
    try:
        import pytest_asyncio
    except ImportError:
        return None

    @wraps(make)  # pytest-asyncio marks the function, which anyio's fixture shares
    async def copy(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for value in make(*args, **kwargs):
            yield value

    return pytest_asyncio.fixture(copy)


def _loop_fixture(request: pytest.FixtureRequest, name: str) -> Any:
    """Return the value of the fixture for the plugin that runs the test."""
    if "anyio_backend" in request.fixturenames:
        return request.getfixturevalue(f"_anyio_{name}")
    if not request.config.pluginmanager.has_plugin("asyncio"):
        pytest.fail(
            f"the fixture {name!r} needs an event loop: install pytest-asyncio, or mark the test anyio",
            pytrace=False,
        )
    return request.getfixturevalue(f"_asyncio_{name}")


# -- the server --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
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


_asyncio_embedded = _asyncio(_run_embedded)
_anyio_embedded = pytest.fixture(_run_embedded)


@pytest.fixture
def api_server(request: pytest.FixtureRequest) -> ServerUnderTest:
    """The API server: an embedded one of the test's own, or one that all tests share."""
    config = request.config
    kind = config.getoption("api_server") or config.getini("api_server")
    if kind == "embedded":
        found: ServerUnderTest = _loop_fixture(request, "embedded")
        return found
    if kind == "kubernetes":
        return ServerUnderTest(kind, request.getfixturevalue("_control_plane").kubeconfig)
    return ServerUnderTest(kind)


# -- the client --------------------------------------------------------------------------------------------


_checked = pytest.StashKey[str]()
"""Why the cluster cannot be used, or ""."""


async def _open_client(request: pytest.FixtureRequest, api_server: ServerUnderTest) -> AsyncIterator[Client]:
    stash = request.session.stash
    if api_server.kind == "kubeconfig" and _checked not in stash:
        stash[_checked] = await _why_unusable(api_server)
    if why := stash.get(_checked, ""):
        pytest.fail(f"--api-server kubeconfig: {why}", pytrace=False)
    async with api_server.connect() as client:
        yield client


async def _why_unusable(api_server: ServerUnderTest) -> str:
    try:
        async with api_server.connect() as client:
            await client.get("/version", timeout=10)
    except ForbiddenError:
        return ""  # it may permit what the tests do
    except AioInformerError as error:
        return f"{error}; start the cluster, or choose another context or --api-server embedded"
    return ""


_asyncio_client = _asyncio(_open_client)
_anyio_client = pytest.fixture(_open_client)


@pytest.fixture
def client(request: pytest.FixtureRequest, api_server: ServerUnderTest) -> Client:
    """An open client, with all rights on the embedded server and on a kube-apiserver."""
    opened: Client = _loop_fixture(request, "client")
    return opened


# -- the namespace -----------------------------------------------------------------------------------------


async def _make_namespace(request: pytest.FixtureRequest, client: Client) -> AsyncIterator[str]:
    namespaces = Resource(client, "namespaces", KubeObject)
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


_asyncio_namespace = _asyncio(_make_namespace)
_anyio_namespace = pytest.fixture(_make_namespace)


@pytest.fixture
def namespace(request: pytest.FixtureRequest, client: Client) -> str:
    """The name of a new namespace, which is deleted after the test."""
    name: str = _loop_fixture(request, "namespace")
    return name


# -- the operator ------------------------------------------------------------------------------------------


@pytest.fixture
def run_operator(api_server: ServerUnderTest, client: Client, namespace: str) -> RunOperator:
    """Runs an operator in the test's namespace: ``async with run_operator(operator) as manager``.

    It installs the operator's CustomResourceDefinitions first. They remain on a server that tests share. The embedded
    server calls the operator's webhooks. Leaving the block raises the operator's error, if it has failed, such as a
    CacheMutatedError if it has changed a cached object. ``settings=`` is as for ``Operator.running``.
    """

    @asynccontextmanager
    async def run(operator: Operator, *, settings: object = None) -> AsyncIterator[Manager]:
        serves = api_server.kind == "embedded" and operator.has_webhooks
        if not serves:
            await install(client, operator)
        await operator.discover(client)
        manager = operator.manager(client, namespace=namespace, settings=settings, detect_mutations=True)
        async with serving(client, operator, manager) if serves else nullcontext(), manager:
            yield manager

    return run
