"""The replay server, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.building import BUILDERS
from benchmarks.harness.processes import ReplayServer
from benchmarks.pods import write_templates
from tests.go_build import require_build


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayServer]:
    folder = tmp_path_factory.mktemp("replay")
    write_templates(folder / "pods.jsonl", 150)
    binary = require_build(lambda: BUILDERS["replay-server"].ensure() / "replay-server", None)
    with ReplayServer(binary, folder / "pods.jsonl", folder / "ca.pem", [0]) as running:
        yield running
