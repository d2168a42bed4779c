"""The embedded server's data files are those of the Kubernetes version in go.mod."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer.testing import tables
from aioinformer.testing.cluster import seeds
from aioinformer.testing.http import health
from tests.kubernetes.server_data import read

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_factories=["asyncio"])]


async def test_data_files_equal_the_real_server(kubernetes_binaries: Path) -> None:
    data = await read()
    why = "run `make schema`: it is of another version of Kubernetes"
    assert seeds.SEEDS.read_bytes() == data.seeds, why
    assert tables.COLUMNS.read_bytes() == data.columns, why
    assert health.HEALTH.read_bytes() == data.health, why
