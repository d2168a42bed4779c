"""Checks before an operator starts, where requests fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import TransportError
from aioinformer.operator.preflight import Needed, check, missing_rights
from aioinformer.operator.rights import Right
from aioinformer.testing import APIServer
from aioinformer.typed import crd
from tests.doctor.setups import OPTIONS, Website, grant, install_definition, needed_rules, operator


class OneAnswer:
    """A client whose first request fails; the others get no answer."""

    def __init__(self) -> None:
        self.requests = self.running = 0

    async def send(self, *args: object, timeout: float) -> bytes:
        self.requests += 1
        self.running += 1
        try:
            if self.requests == 1:
                await asyncio.sleep(0.01)
                raise TransportError("the connection was lost")
            await asyncio.sleep(timeout)
            return b"{}"
        finally:
            self.running -= 1


async def test_no_request_runs_on_after_another_has_failed() -> None:
    client: Any = OneAnswer()
    with pytest.raises(TransportError, match="the connection was lost"):
        await missing_rights(client, [Needed(Right("", "pods", True, ("get", "list", "watch")))])
    assert (client.requests, client.running) == (3, 0)


async def test_an_account_that_may_read_no_definitions_is_warned_of_a_difference(
    caplog: pytest.LogCaptureFixture,
) -> None:
    versions = crd(Website)["spec"]["versions"]
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"] = {
        "type": "string"
    }
    async with APIServer(rbac=True, token="admin") as server:
        install_definition(server, versions=versions)
        async with grant(server, *needed_rules()) as client:
            await check(operator, OPTIONS, operator.manager(client))
    (record,) = caplog.records
    assert "websites.example.com at the server differs from the class Website" in record.message
    assert "spec.colour: removed" in record.message
