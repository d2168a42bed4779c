"""The load process of ``aioinformer bench``."""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer.cli.load import change_at


async def test_waiting_change_gets_no_time_stamp() -> None:
    under_way, most = 0, 0

    async def change(name: str, patch: dict[str, Any]) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1

    assert await change_at(100_000, 0.1, ["a", "b"], change) > 20
    assert most == 20
