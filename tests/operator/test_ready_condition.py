"""The condition Ready that an operator keeps."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

from aioinformer import ConfigError, KubeObject, Resource, TerminalError, set_status_condition
from aioinformer.operator import Context, CustomResource, Kind, Operator, Request, Result
from aioinformer.operator.definitions import install
from aioinformer.testing import Simulation
from aioinformer.typed import CamelStruct, Condition, MapOf
from tests.narrow import Metadata
from tests.virtual_time import simulate_scenario

Object = dict[str, Any]


class SiteSpec(CamelStruct):
    host: str


class SiteStatus(CamelStruct):
    url: str = ""
    conditions: Annotated[list[Condition], MapOf("type")] = []  # noqa: RUF012 - a Struct copies it


class Site(CustomResource, group="example.com", version="v1"):
    spec: SiteSpec
    status: SiteStatus | None = None


class PlainStatus(CamelStruct):
    url: str = ""


class Plain(CustomResource, group="example.com", version="v1"):
    """A kind whose status has no conditions."""

    spec: SiteSpec
    status: PlainStatus | None = None


Act = Callable[[Request[Any], Context], Any]


class Reconciler:
    """Counts its calls, and does what the test says."""

    def __init__(self, act: Act | None = None) -> None:
        self.act = act
        self.calls = 0

    async def __call__(self, request: Request[Any], context: Context) -> Result | None:
        self.calls += 1
        result = None if self.act is None else self.act(request, context)
        return await result if asyncio.iscoroutine(result) else result


def fail(request: Request[Any], context: Context) -> None:
    raise ValueError("no quota")


def declare(reconcile: Reconciler, resource: Any = Site, **options: Any) -> Operator:
    operator = Operator("tests")
    operator.controller(resource, conditions=True, **options)(reconcile)
    return operator


async def create(world: Simulation, operator: Operator, name: str = "a", **fields: Any) -> None:
    definitions = Operator("definitions")
    definitions.controller(Site)(Reconciler())
    await install(world.client, definitions)
    obj = {"metadata": {"name": name}, "spec": {"host": "x"}, **fields}
    world.server.create("example.com/v1", "sites", {"apiVersion": "example.com/v1", "kind": "Site", **obj})


def change(world: Simulation, patch: Object) -> Object:
    return world.server.patch("example.com/v1", "sites", "a", patch)


def read(world: Simulation) -> Object:
    return world.server.get("example.com/v1", "sites", "a")


def conditions(world: Simulation) -> dict[str, tuple[str, str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in (read(world).get("status") or {}).get("conditions") or ()
    }


def count_writes(world: Simulation) -> int:
    return sum(
        request.verb == "patch" and request.subresource == "status" for request in world.server.requests
    )


FAILED = ("False", "ReconcileFailed", "ValueError: no quota")
SUCCEEDED = ("True", "ReconcileSucceeded", "")

RESOURCES = [Site, "sites.example.com", Kind("sites.example.com", dict)]


@pytest.mark.parametrize("resource", RESOURCES, ids=["Struct", "KubeObject", "dict"])
def test_condition_follows_the_reconciles_with_one_write_for_each_change(resource: Any) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        reconciler = Reconciler()
        operator = declare(reconciler, resource)
        await create(world, operator)
        async with operator.running(world.client):
            await asyncio.sleep(10)
            assert conditions(world) == {"Ready": SUCCEEDED}
            assert (count_writes(world), reconciler.calls) == (1, 1)
            reconciler.act = fail
            change(world, {"spec": {"host": "y"}})
            await asyncio.sleep(100)
            assert conditions(world) == {"Ready": FAILED}
            (condition,) = read(world)["status"]["conditions"]
            assert condition["observedGeneration"] == read(world)["metadata"]["generation"] == 2
            assert reconciler.calls > 10
            assert count_writes(world) == 2
            reconciler.act, calls = None, reconciler.calls
            await asyncio.sleep(1000)
            assert conditions(world) == {"Ready": SUCCEEDED}
            assert (count_writes(world), reconciler.calls) == (3, calls + 1)

    scenario()


@simulate_scenario
async def test_terminal_error_and_timeout_are_conditions(world: Simulation) -> None:
    async def hang(request: Request[Any], context: Context) -> None:
        await asyncio.sleep(10**6)

    def give_up(request: Request[Any], context: Context) -> None:
        raise TerminalError("no such plan")

    reconciler = Reconciler(give_up)
    operator = declare(reconciler, timeout=5)
    await create(world, operator)
    async with operator.running(world.client):
        await asyncio.sleep(10)
        assert conditions(world) == {"Ready": ("False", "ReconcileFailed", "no such plan")}
        assert reconciler.calls == 1
        reconciler.act = hang
        change(world, {"spec": {"host": "y"}})
        await asyncio.sleep(10)
        status, reason, message = conditions(world)["Ready"]
        assert (status, reason) == ("False", "ReconcileTimedOut")
        assert "took longer than 5 s" in message


@simulate_scenario
async def test_progressing_says_what_the_object_waits_for(world: Simulation) -> None:
    reconciler = Reconciler(lambda request, context: Result(requeue_after=5, progressing="1 of 2"))
    operator = declare(reconciler)
    await create(world, operator)
    async with operator.running(world.client):
        await asyncio.sleep(3)
        waiting = ("WaitingToBeReady", "1 of 2")
        assert conditions(world) == {"Ready": ("False", *waiting), "Progressing": ("True", *waiting)}
        reconciler.act = None
        await asyncio.sleep(6)
        assert conditions(world) == {"Ready": SUCCEEDED, "Progressing": ("False", *SUCCEEDED[1:])}
        assert (count_writes(world), reconciler.calls) == (2, 2)


@simulate_scenario
async def test_texts_that_json_cannot_hold_are_in_the_condition(world: Simulation) -> None:
    def fail_by_file(request: Request[Site], context: Context) -> None:
        raise ValueError(os.fsdecode(b"/data/\xff"))

    reconciler = Reconciler(fail_by_file)
    await create(world, operator := declare(reconciler))
    async with operator.running(world.client):
        await asyncio.sleep(3)
        assert conditions(world)["Ready"] == ("False", "ReconcileFailed", "ValueError: /data/?")
        reconciler.act = lambda request, context: Result(requeue_after=5, progressing="\ud800")
        await asyncio.sleep(60)
        assert conditions(world)["Ready"] == ("False", "WaitingToBeReady", "?")


@simulate_scenario
async def test_status_that_the_reconciler_writes_stays(world: Simulation) -> None:
    async def write_status(request: Request[Site], context: Context) -> None:
        site = request.object
        assert site is not None
        if site.status is None or not site.status.url:
            await context.resource(Site).patch_status(site, {"status": {"url": "https://a"}})
        else:
            raise ValueError("no quota")

    reconciler = Reconciler(write_status)
    operator = declare(reconciler)
    await create(world, operator)
    async with operator.running(world.client):
        await asyncio.sleep(10)
    assert read(world)["status"]["url"] == "https://a"
    assert conditions(world) == {"Ready": FAILED}


@simulate_scenario
async def test_condition_that_the_reconciler_sets_itself_stays_after_a_success(world: Simulation) -> None:
    replicas = 1

    async def set_ready(request: Request[Site], context: Context) -> None:
        if replicas < 0:
            raise ValueError("no quota")
        message = f"{replicas} of 2"
        status = "True" if replicas == 2 else "False"
        assert request.object is not None
        site, has_changed = set_status_condition(request.object, "Ready", status, "Replicas", message)
        if has_changed:
            await context.resource(Site).update_status(site)

    reconciler = Reconciler(set_ready)
    operator = declare(reconciler)
    await create(world, operator)
    async with operator.running(world.client):
        for replicas, expected in (
            (1, ("False", "Replicas", "1 of 2")),
            (-1, FAILED),
            (2, ("True", "Replicas", "2 of 2")),
        ):
            change(world, {"spec": {"host": str(replicas)}})
            await asyncio.sleep(100)
            assert conditions(world) == {"Ready": expected}
            calls = reconciler.calls
            await asyncio.sleep(100)
            assert reconciler.calls <= calls + (replicas < 0), "its own events are no reason to reconcile"


def test_reconciler_that_removes_the_condition_is_no_endless_loop(caplog: pytest.LogCaptureFixture) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        async def replace_status(request: Request[Site], context: Context) -> None:
            site = request.object
            assert site is not None
            wanted = SiteStatus(url=f"https://{site.spec.host}")
            if site.status != wanted:
                site.status = wanted
                await context.resource(Site).update_status(site)

        reconciler = Reconciler(replace_status)
        operator = declare(reconciler)
        await create(world, operator)
        async with operator.running(world.client):
            await asyncio.sleep(1000)
            assert read(world)["status"]["url"] == "https://x"
            assert reconciler.calls < 5
            change(world, {"spec": {"host": "y"}})
            await asyncio.sleep(1000)
            assert reconciler.calls < 10

    with caplog.at_level(logging.ERROR):
        scenario()
    assert "removed the condition Ready, which conditions=True keeps" in caplog.text


@simulate_scenario
async def test_conditions_of_others_stay(world: Simulation) -> None:
    others = [
        {
            "type": f"Other{number}",
            "status": "True",
            "reason": "R",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for number in range(2)
    ]
    reconciler = Reconciler(fail)
    operator = declare(reconciler)
    await create(world, operator)
    sites = Resource(world.client, Site)
    await sites.patch_status("default/a", {"status": {"conditions": others}})
    stored = read(world)["status"]["conditions"]
    async with operator.running(world.client):
        await asyncio.sleep(10)
    assert [*conditions(world)] == ["Other0", "Other1", "Ready"]
    assert read(world)["status"]["conditions"][:2] == stored


@simulate_scenario
async def test_change_by_others_during_the_write_is_kept(world: Simulation) -> None:
    async def change_later(request: Request[Any], context: Context) -> None:
        change(world, {"spec": {"host": "y"}})

    reconciler = Reconciler(change_later)
    operator = declare(reconciler)
    await create(world, operator)
    async with operator.running(world.client):
        await asyncio.sleep(10)
        assert read(world)["spec"] == {"host": "y"}
        assert conditions(world) == {"Ready": SUCCEEDED}
        (condition,) = read(world)["status"]["conditions"]
        assert condition["observedGeneration"] == 2


@simulate_scenario
async def test_object_that_does_not_fit_has_a_condition_until_it_fits(world: Simulation) -> None:
    reconciler = Reconciler()
    operator = declare(reconciler)
    await create(world, operator)
    crd = ("apiextensions.k8s.io/v1", "customresourcedefinitions", "sites.example.com")
    async with operator.running(world.client):
        await asyncio.sleep(1)
        path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
        world.server.patch(*crd, [{"op": "remove", "path": f"{path}/required"}])
        writes = count_writes(world)
        change(world, {"spec": {"host": None}})
        await asyncio.sleep(60)
        status, reason, message = conditions(world)["Ready"]
        assert (status, reason) == ("False", "ObjectDoesNotFit")
        assert count_writes(world) == writes + 1, "a condition that names a version would be written for ever"
        change(world, {"metadata": {"labels": {"other": "change"}}})
        await asyncio.sleep(60)
        assert count_writes(world) == writes + 1
        assert "missing required field `host`" in message
        change(world, {"spec": {"host": "x"}})  # as it was
        await asyncio.sleep(1)
        assert conditions(world) == {"Ready": SUCCEEDED}


@simulate_scenario
async def test_deletion_is_not_disturbed(world: Simulation) -> None:
    reconciler = Reconciler()
    operator = declare(reconciler, finalizer="example.com/f", cleanup=lambda request: None)
    await create(world, operator)
    async with operator.running(world.client) as manager:
        await asyncio.sleep(1)
        writes = count_writes(world)
        world.server.delete("example.com/v1", "sites", "a", "default")
        await asyncio.sleep(1)
        assert world.server.list("example.com/v1", "sites") == []
        assert count_writes(world) == writes
        assert manager.controllers[0].state.failed == 0


def test_refused_write_is_logged_and_fails_no_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        reconciler = Reconciler()
        operator = declare(reconciler)
        await create(world, operator)
        refused = world.server.faults.fail(403, verb="patch", times=None)
        async with operator.running(world.client) as manager:
            await asyncio.sleep(100)
            assert conditions(world) == {}
            assert (manager.controllers[0].state.failed, reconciler.calls) == (0, 1)
            refused.remove()
            world.server.faults.fail(503, verb="patch", times=1)
            change(world, {"spec": {"host": "y"}})
            await asyncio.sleep(100)
            assert conditions(world) == {"Ready": SUCCEEDED}

    with caplog.at_level(logging.WARNING):
        scenario()
    assert "the condition Ready of default/a was not written" in caplog.text


@simulate_scenario
async def test_silent_server_does_not_stop_the_worker(world: Simulation) -> None:
    reconciler = Reconciler()
    operator = declare(reconciler)
    await create(world, operator)
    silent = world.server.faults.delay(10**5, verb="patch")
    async with operator.running(world.client) as manager:
        await asyncio.sleep(15)
        assert not manager.controllers[0].queue.items_processing
        silent.remove()
        await asyncio.sleep(60)
        assert conditions(world) == {"Ready": SUCCEEDED}


@simulate_scenario
async def test_stopping_during_the_write_ends_at_once(world: Simulation) -> None:
    reconciler = Reconciler()
    operator = declare(reconciler)
    await create(world, operator)
    world.server.faults.delay(10**5, verb="patch")
    began = 0.0
    async with operator.running(world.client):
        await asyncio.sleep(5)
        began = world.now
    assert world.now - began < 5


def test_class_without_conditions_is_refused_when_it_is_declared() -> None:
    class Narrow(msgspec.Struct):
        metadata: Metadata
        status: dict[str, Any] = {}

    class Bare(msgspec.Struct):
        metadata: Metadata

    operator = Operator("tests", conditions=True)
    for resource in (Kind("caves.example.com", Bare), Plain):
        with pytest.raises(ConfigError, match=r"conditions=True needs status\.conditions, which .* lacks"):
            operator.controller(resource, conditions=True)(Reconciler())
    with pytest.raises(ConfigError, match=r"status\.conditions, which Plain lacks"):
        operator.controller(Plain)(Reconciler())
    operator.controller(Plain, conditions=False)(Reconciler())
    operator.controller(Kind("caves.example.com", Narrow), conditions=True)(Reconciler())


def test_conditions_of_kinds_of_others_are_left_alone_unless_asked_for() -> None:
    operator = Operator("tests", conditions=True)
    operator.controller("pods")(Reconciler())
    operator.controller("certificates.cert-manager.io")(Reconciler())
    assert not any("status" in str(right) for right in operator.rights())
    with pytest.raises(ConfigError, match="Kubernetes keeps the conditions of 'pods' itself"):
        operator.controller("pods", name="other", conditions=True)(Reconciler())


def test_two_controllers_of_the_same_objects_cannot_both_keep_it() -> None:
    operator = Operator("tests", conditions=True)
    operator.controller(Site)(Reconciler())
    with pytest.raises(ConfigError, match="keeps the condition Ready of the same objects"):
        operator.controller(Site, name="other")(Reconciler())
    operator.controller(Site, name="third", conditions=False)(Reconciler())


def test_rights_follow() -> None:
    def list_rights(**options: Any) -> set[str]:
        operator = Operator("tests")

        @operator.controller("caves.example.com", **options)
        async def reconcile(request: Request[KubeObject]) -> None: ...

        return {str(right) for right in operator.rights()}

    assert list_rights(conditions=True) - list_rights() == {"patch caves/status.example.com"}


@simulate_scenario
async def test_progressing_of_others_stays(world: Simulation) -> None:
    theirs = {"type": "Progressing", "status": "True", "reason": "Rolling", "message": ""}
    reconciler = Reconciler(lambda request, context: Result(progressing="1 of 2"))
    operator = declare(reconciler)
    await create(world, operator)
    sites = Resource(world.client, Site)
    await sites.patch_status("default/a", {"status": {"conditions": [theirs]}})
    async with operator.running(world.client):
        await asyncio.sleep(10)
    assert conditions(world) == {
        "Ready": ("False", "WaitingToBeReady", "1 of 2"),
        "Progressing": ("True", "Rolling", ""),
    }
