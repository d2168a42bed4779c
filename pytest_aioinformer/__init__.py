"""The pytest plugin: fixtures for tests of operators, on an embedded or a real API server.

pytest loads this module in every project of an environment, so it imports nothing. The fixtures are there if the
project chooses an API server, in its pytest settings (``api_server = "embedded"``) or with ``--api-server``. Otherwise
they would replace fixtures of the same name of other plugins, such as pytest-django's ``client``.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

_RBAC = "aioinformer.testing.rbac"
"""The module of assert_rbac_covers, which only the tests that use it import."""

SERVERS = ("embedded", "kubernetes", "kubeconfig")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("aioinformer", "tests of Kubernetes operators (aioinformer)")
    group.addoption(
        "--api-server",
        choices=SERVERS,
        help="the API server: embedded, kubernetes (kube-apiserver and etcd of $KUBEBUILDER_ASSETS or $PATH), or "
        "kubeconfig (the cluster of the current context)",
    )
    group.addoption(
        "--keep-namespace",
        action="store_true",
        help="keep the namespaces of failed tests (with --api-server kubeconfig; the other servers end with the tests)",
    )
    parser.addini("api_server", f"the default of --api-server: {', '.join(SERVERS)}", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Load the fixtures if the project uses them."""
    chosen = config.getoption("api_server") or config.getini("api_server")
    if not chosen:
        return
    if chosen not in SERVERS:
        raise pytest.UsageError(f"api_server = {chosen!r}: use one of {', '.join(SERVERS)}")
    if chosen == "kubernetes":
        from .control_plane import binaries

        binaries()  # one error in place of one for each test
    config.pluginmanager.import_plugin("pytest_aioinformer.fixtures")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what rights the tests of this xdist worker needed to the process that reports."""
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None and (rbac := sys.modules.get(_RBAC)) is not None:
        output[_RBAC] = [sorted(rbac.usage.granted), sorted(rbac.usage.needed)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take what rights the tests of an xdist worker needed."""
    if sent := getattr(node, "workeroutput", {}).get(_RBAC):
        from aioinformer.testing.rbac import usage

        usage.granted.update(sent[0])
        usage.needed.update(sent[1])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the rights that assert_rbac_covers got and that no test needed."""
    if (rbac := sys.modules.get(_RBAC)) is not None and rbac.usage.unused:
        terminalreporter.section("rights that no test needed (assert_rbac_covers)")
        for verb in rbac.usage.unused:
            terminalreporter.line(verb)


failed = pytest.StashKey[bool]()
"""Whether a test has failed so far."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record a failure, for ``--keep-namespace``."""
    report = yield
    if report.failed:
        item.stash[failed] = True
    return report
