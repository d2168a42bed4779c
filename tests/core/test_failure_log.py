"""failure_log.py: the first failures have log lines, further ones are counted."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer import KubeObject, ResourceEventHandlerFuncs, SharedInformerFactory
from aioinformer._core.failure_log import FIRST, INTERVAL, FailureLog
from aioinformer.operator import Request, Watch
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from ..operator.worlds import create, quiet, run_controller


def lines(world: Simulation, containing: str) -> list[str]:
    return [str(entry) for entry in world.history if containing in str(entry)]


@simulate_scenario
async def test_handler_that_fails_on_all_objects_is_logged_and_counted(
    world: Simulation,
) -> None:
    for number in range(100):
        create(world, f"m{number}")

    def fail(obj: KubeObject, is_in_initial_list: bool) -> None:
        raise ValueError(obj.name)

    informer = SharedInformerFactory(world.client).for_resource("v1", "configmaps")
    informer.add_event_handler(ResourceEventHandlerFuncs(on_add=fail))
    async with informer:
        await asyncio.sleep(INTERVAL + 5)
        assert len(lines(world, "failed on add of")) == FIRST + 1
        (count,) = lines(world, "more failures")
        assert f"{100 - FIRST} more failures in 10 s; the last one, of a ValueError: " in count
        create(world, "another")
        await asyncio.sleep(1)
        assert not lines(world, "failed on add of default/another")
        await asyncio.sleep(3 * INTERVAL)
        assert len(lines(world, "more failures")) == 2
        create(world, "later")
        await asyncio.sleep(1)
        assert lines(world, "failed on add of default/later"), (
            "after a quiet interval failures are logged again"
        )


@simulate_scenario
async def test_reconciler_that_fails_on_all_objects_is_logged_and_counted(
    world: Simulation,
) -> None:
    for number in range(100):
        create(world, f"m{number}")

    async def fail(request: Request[KubeObject]) -> None:
        raise ValueError(request.name)

    async with run_controller(world, fail):
        await asyncio.sleep(INTERVAL - 1)
        assert len(lines(world, "retrying in")) == FIRST
        await asyncio.sleep(2)
        assert len(lines(world, " more failures in 10 s; the last one, of a ValueError: tests: ")) == 1


@simulate_scenario
async def test_map_function_that_fails_on_all_objects_is_logged_and_counted(
    world: Simulation,
) -> None:
    for number in range(100):
        create(world, f"s{number}", "secrets")

    def fail(obj: KubeObject) -> None:
        raise ValueError(obj.name)

    secrets = SharedInformerFactory(world.client).for_resource("v1", "secrets")

    async def succeed(request: Request[KubeObject]) -> None: ...

    async with secrets, run_controller(world, succeed, watches=[Watch(secrets, fail)]) as controller:
        await quiet(controller, INTERVAL + 1)
        assert controller.state.triggers[1].failed == 100
    assert len(lines(world, "failed: ")) == FIRST + 1


async def test_each_error_type_has_its_own_first_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = FailureLog("mine", logging.getLogger("tests"))
    for number in range(FIRST + 2):
        for error in (ValueError("no"), KeyError("k")):
            failures.log(error, "%s failed on %s", "mine", number, traceback=error)
    logged = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    shown = [(f"mine failed on {number}", True) for number in range(FIRST) for _ in range(2)]
    assert logged == shown
    assert {record.funcName for record in caplog.records} == {"test_each_error_type_has_its_own_first_lines"}


async def test_remembers_a_limited_number_of_error_types(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog("mine", logging.getLogger("tests"))
    for number in range(100):
        failures.log(type(f"Error{number}", (Exception,), {})(), "%s failed on %s", "mine", number)
    assert len(caplog.messages) == 16


async def test_every_failure_has_a_line_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    failures = FailureLog("mine", logging.getLogger("tests"))
    for number in range(100):
        failures.log(ValueError(), "%s failed on %s", "mine", number)
    assert caplog.messages == [f"mine failed on {number}" for number in range(100)]
