"""A real server with RBAC and an audit log, for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aioinformer import Client
from examples import operator_declared, storage_operator
from tests.kubernetes.configuration import CONTROLLERS

from . import websites
from .audit import Audited


@pytest.fixture(scope="session")
def audited(kubernetes_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """All definitions come first: admission and the garbage collector look for new kinds rarely."""
    with Audited(tmp_path_factory.mktemp("audit")) as running:
        for operator in (websites.operator, storage_operator.operator, operator_declared.operator):
            for definition in operator.definitions():
                running.define(definition)
        running.start_controller_manager((*CONTROLLERS, "clusterrole-aggregation-controller"))
        yield running


@pytest.fixture
async def admin(audited: Audited) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(path=audited.kubeconfig) as client:
        yield client
