"""End to end: the same tests on the embedded API server and on the real one."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aioinformer import Client
from aioinformer.reflector import Backoff
from aioinformer.testing import APIServer

from .api import API
from .clusters import Cluster, EmbeddedCluster, KubernetesCluster
from .witness import Log

REAL = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]
BOTH = ["embedded", pytest.param("kubernetes", marks=REAL)]


@pytest.fixture(autouse=True)
def _encoding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "protobuf", request.config.getoption("protobuf"))


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    """The embedded server, asking for a token, without TLS."""
    async with APIServer(token="administrator", seed=1) as server, API(server.url, server.token, None) as api:
        cluster = EmbeddedCluster(server, api, tmp_path)
        cluster.namespace = await cluster.new_namespace()
        yield cluster


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    """The embedded server with TLS: without, kubectl keeps its token to itself."""
    async with APIServer(token="administrator", tls=True, seed=1) as server:
        assert server.ca_pem is not None
        context = ssl.create_default_context(cadata=server.ca_pem.decode())
        async with API(server.url, server.token, context) as api:
            cluster = EmbeddedCluster(server, api, tmp_path)
            cluster.namespace = await cluster.new_namespace()
            yield cluster


@pytest.fixture
async def real(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KubernetesCluster]:
    """The session's real server."""
    control_plane = request.getfixturevalue("control_plane")
    async with API(control_plane.url, control_plane.token, control_plane.ssl_context()) as api:
        cluster = KubernetesCluster(control_plane, api, tmp_path)
        cluster.namespace = await cluster.new_namespace()
        yield cluster


@pytest.fixture(params=BOTH)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Either server, one after the other, with a namespace of the test's own."""
    chosen: Cluster = request.getfixturevalue("embedded" if request.param == "embedded" else "real")
    return chosen


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """The administrator's client."""
    async with cluster.client() as opened:
        yield opened


@pytest.fixture
def log() -> Iterator[Log]:
    """What the package logs in this test."""
    handler, logger = Log(), logging.getLogger("aioinformer")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the waits between tries be short, where how long they are is not what is tested."""
    monkeypatch.setattr(Backoff, "INITIAL", 0.05)
    monkeypatch.setattr(Backoff, "CAP", 0.5)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("aioinformer")
    group.addoption("--outage", type=float, default=1.0, help="seconds for which the API server stays away")
    group.addoption("--storm-seeds", type=int, default=3, help="how many seeds the storm is run with")
    group.addoption("--storm-seconds", type=float, default=3.0, help="for how long each storm lasts")


@pytest.fixture
def outage(pytestconfig: pytest.Config) -> float:
    return float(pytestconfig.getoption("--outage") or 0)


@pytest.fixture
def storm_seconds(pytestconfig: pytest.Config) -> float:
    return float(pytestconfig.getoption("--storm-seconds") or 0)
