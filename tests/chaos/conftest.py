"""Fixtures of the chaos tests: their control plane, their length, and the table at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.controlplane import ControlPlane

from .cases import cases
from .measuring import Outcome, table
from .world import Site

SHORT = (1.0,)
LONG = (1.0, 10.0, 60.0)

_outcomes = pytest.StashKey[list[Outcome]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("aioinformer")
    group.addoption(
        "--chaos", type=int, default=0, help="run long chaos, so many times, with client-go beside"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_outcomes] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        repetitions = _repetitions(metafunc.config)
        chosen = cases(LONG if repetitions else SHORT, long=bool(repetitions))
        metafunc.parametrize("case", chosen, ids=str)
        metafunc.parametrize("repetition", range(max(1, repetitions)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _repetitions(config):  # a busy machine is late now and then; measurements must show that
        for item in items:
            if "site" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if outcomes := config.stash[_outcomes]:
        terminalreporter.section(
            "recovery after the server was ready, and requests during + after the trouble"
        )
        for line in table(outcomes):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def site(kubernetes_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A control plane for these tests alone, because they break it."""
    with ControlPlane() as plane:
        yield Site(plane, tmp_path_factory.mktemp("chaos") / "ca.crt")


@pytest.fixture
def with_client_go(pytestconfig: pytest.Config) -> bool:
    return _repetitions(pytestconfig) > 0


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> list[Outcome]:
    """The outcomes for the table."""
    return pytestconfig.stash[_outcomes]


def _repetitions(config: pytest.Config) -> int:
    return int(config.getoption("--chaos") or 0)
