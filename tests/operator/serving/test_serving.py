"""The HTTP server of an operator: probes, metrics and the debug page's data."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest

from aioinformer import Client, ConfigError, KubeObject, LeaderElector, TerminalError
from aioinformer.operator import Context, Controller, Manager, Operator, Request
from aioinformer.operator.serving import Debug, Serving
from aioinformer.sharding import Sharding
from aioinformer.testing import APIServer, eventually
from aioinformer.tracing import StageTimes
from tests.kubernetes.process import free_ports
from tests.narrow import Narrow
from tests.sharding.written_leases import write_table


class World:
    """A served operator and its server."""

    def __init__(
        self, server: APIServer, manager: Manager, port: int, session: aiohttp.ClientSession
    ) -> None:
        self.server = server
        self.manager = manager
        self.port = port
        self.session = session
        self._root = f"http://127.0.0.1:{port}"
        self._session = session

    async def get(self, path: str, host: str | None = None) -> tuple[int, str]:
        headers = {} if host is None else {"Host": host}
        async with self._session.get(f"{self._root}{path}", headers=headers) as answer:
            return answer.status, await answer.text()

    async def debug(self, query: str = "") -> Any:
        async with self._session.get(f"{self._root}/debug.json{query}") as answer:
            return await answer.json()


@asynccontextmanager
async def serve(operator: Operator, **options: Any) -> AsyncIterator[World]:
    """Serve an operator's Manager, which is not started."""
    (port,) = free_ports(1)
    async with (
        APIServer() as server,
        Client.from_url(server.url) as client,
        aiohttp.ClientSession() as session,
    ):
        serving = {name: options.pop(name) for name in ("webhooks", "debug_hosts") if name in options}
        elector = LeaderElector(client, "tests", "default", "me") if options.pop("elects", False) else None
        manager = operator.manager(client, leader_election=elector, **options)
        stages = options.get("on_trace")
        debug = Debug(manager, operator.name, elector=elector, stages=stages)
        async with Serving(debug, metrics_port=port, probe_port=port, host="127.0.0.1", **serving):
            yield World(server, manager, port, session)


def failing_operator(message: str = "no <b>quota</b>") -> Operator:
    operator = Operator("failing", events=False)

    @operator.controller("configmaps", concurrency=50)
    async def reconcile(request: Request[KubeObject]) -> None:
        if request.name.startswith("bad"):
            raise TerminalError(f"{request.name}: {message}")

    return operator


async def test_probes_follow_the_manager() -> None:
    operator = Operator("slow", events=False)
    began, may_end = asyncio.Event(), asyncio.Event()

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        began.set()
        await may_end.wait()

    async with serve(operator) as world:
        world.server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        assert await world.get("/healthz") == (503, "the manager has not started\n")
        running = asyncio.create_task(world.manager.run())
        await began.wait()
        assert await world.get("/healthz") == (200, "ok\n")
        assert await world.get("/readyz") == (200, "ok\n")
        running.cancel()
        await eventually(lambda: not world.manager.ready())
        assert await world.get("/readyz") == (503, "the manager is stopping\n")
        assert (await world.get("/healthz"))[0] == 200
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_pod_with_webhooks_is_ready_before_its_caches() -> None:
    operator = Operator("waiting", events=False)

    @operator.controller("configmaps")
    def reconcile(request: Request[KubeObject]) -> None: ...

    async with serve(operator, webhooks=True) as world:
        status, text = await world.get("/readyz")
        assert status == 200
        assert text.startswith("ok\n(not ready: the manager has not started)\n")
        world.server.faults.fail(503, resource="configmaps", times=None)
        async with world.manager:
            await eventually(lambda: world.manager.state.informers[0].last_error)
            status, text = await world.get("/readyz")
            assert status == 200
            assert "(not ready: configmaps" in text
            assert not world.manager.ready()
        assert (await world.get("/readyz"))[0] == 503


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200), ("10.1.2.3", 200), ("[::1]:8080", 200), ("localhost:1", 200), ("a.localhost", 200),
        ("sites.example.com", 200), ("SITES.example.com:8080", 200), ("evil.example", 403), ("", 403),
        ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403), ("evil.example:80@127.0.0.1", 403),
        ("[::1", 403), ("[1]", 403), ("[1:2]:9", 403), ("[evil.example]", 403), ("\udcff", 403), ("LOCALHOST", 200),
    ],
)  # fmt: skip
async def test_the_debug_page_answers_at_known_hosts_only(host: str, status: int) -> None:
    async with serve(failing_operator(), debug_hosts=["Sites.example.com"]) as world:
        for path in ("/debug", "/debug.json"):
            assert (await world.get(path, host))[0] == status, path
        assert (await world.get("/metrics", host))[0] == 200, "Prometheus may use any name"


async def test_a_long_error_is_shortened() -> None:
    async with serve(failing_operator("x" * 2_000_000)) as world, world.manager:
        world.server.create("v1", "configmaps", {"metadata": {"name": "bad"}})
        (controller,) = world.manager.controllers
        await eventually(lambda: controller.state.failing == 1)
        status, text = await world.get("/debug.json")
        assert status == 200
        assert len(text) < 20_000
        assert "... (2,000,005 characters)" in text


async def test_an_error_that_json_cannot_hold_is_on_the_page() -> None:
    operator = failing_operator("cannot read /data/\udcff")
    async with serve(operator) as world, world.manager:
        world.server.create("v1", "configmaps", {"metadata": {"name": "bad"}})
        (controller,) = world.manager.controllers
        await eventually(lambda: controller.state.failing == 1)
        page = await world.debug()
        assert page["controllers"][0]["last_error"] == "bad: cannot read /data/?"
        assert page["failing"]["keys"][0]["error"] == "bad: cannot read /data/?"


async def test_other_methods_and_compressed_requests_are_refused() -> None:
    async with serve(failing_operator()) as world:
        root = f"http://127.0.0.1:{world.port}"
        async with world.session.post(f"{root}/metrics", data=b"x") as answer:
            assert answer.status == 405
        async with world.session.get(f"{root}/metrics", headers={"Content-Encoding": "gzip"}) as answer:
            assert answer.status == 415
        async with world.session.head(f"{root}/healthz") as answer:
            assert answer.status == 503


async def test_metrics_and_the_page() -> None:
    async with serve(failing_operator()) as world, world.manager:
        await eventually(world.manager.ready)
        status, text = await world.get("/metrics")
        assert status == 200
        assert 'workqueue_depth{controller="configmaps",name="configmaps"} 0' in text
        status, page = await world.get("/debug")
        assert status == 200
        assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it loads nothing from elsewhere"
        assert (await world.get("/"))[0] == 404


async def test_failing_keys_are_filtered_and_limited() -> None:
    async with serve(failing_operator()) as world, world.manager:
        for number in range(1000):
            world.server.create("v1", "configmaps", {"metadata": {"name": f"bad-{number}"}})
        world.server.create("v1", "configmaps", {"metadata": {"name": "good"}})
        (controller,) = world.manager.controllers
        await eventually(lambda: controller.state.failing == 1000 and controller.state.reconciles == 1001)
        failing = (await world.debug())["failing"]
        assert (failing["total"], failing["matching"], len(failing["keys"])) == (1000, 1000, 200)
        failing = (await world.debug("?contains=BAD-77&limit=5"))["failing"]
        assert (failing["total"], failing["matching"], len(failing["keys"])) == (1000, 11, 5)
        (key,) = (await world.debug("?contains=bad-777:"))["failing"]["keys"]
        assert key["seconds"] >= 0
        assert re.fullmatch(r".*test_serving\.py:\d+", key.pop("where"))
        assert {**key, "seconds": 0} == {
            "controller": "configmaps",
            "key": "default/bad-777",
            "error": "bad-777: no <b>quota</b>",
            "seconds": 0,
            "tries": 0,
        }
        world.server.delete("v1", "configmaps", "bad-777")
        await eventually(lambda: controller.state.failing == 999)
        for limit in ("all", "-1", "9" * 5000):
            assert (await world.get(f"/debug.json?limit={limit}"))[0] == 400


@pytest.mark.parametrize("webhooks", [False, True])
async def test_undecodable_objects_are_shown_without_their_values_and_leave_the_operator_ready(
    webhooks: bool,
) -> None:
    async with serve(failing_operator(), webhooks=webhooks) as world:
        maps = world.manager.resource("v1", "configmaps", Narrow)
        world.manager.add(Controller("narrow", lambda request: None, maps))
        world.server.create("v1", "configmaps", {"metadata": {"name": "a"}, "spec": {"node": "hunter2"}})
        world.server.create("v1", "configmaps", {"metadata": {"name": "b"}, "data": {"password": "hunter2"}})
        async with world.manager:
            await eventually(lambda: len(list(world.manager.controllers[1].failing())) == 2)
            status, text = await world.get("/readyz")
            assert status == 200
            assert text.startswith("ok\nwarning: configmaps")
            assert (
                "2 undecodable objects, of which only the metadata can be used: default/a, default/b" in text
            )
            data = await world.debug()
            assert data["ready"] == []
            assert data["warnings"] == [text.splitlines()[1].removeprefix("warning: ")]
            (shown,) = (informer for informer in data["informers"] if informer["undecodable"])
            assert set(shown["undecodable_errors"]) == {"default/a", "default/b"}
            assert all(
                "missing required field `spec`" in said for said in shown["undecodable_errors"].values()
            )
            assert {key["key"] for key in data["failing"]["keys"]} == {"default/a", "default/b"}
            assert data["controllers"][1]["given_up"] == 0
            for page in (str(data), text, await world.get("/metrics")):
                assert "hunter2" not in str(page)


async def test_what_the_data_says_of_informers_leader_and_stages() -> None:
    stages = StageTimes()
    async with serve(failing_operator(), elects=True, on_trace=stages) as world, world.manager:
        await eventually(lambda: world.manager.state.leading)
        world.server.create("v1", "configmaps", {"metadata": {"name": "good"}})
        await eventually(lambda: len(stages))
        state = await world.debug()
        assert state["leader"]["leading"] is True
        assert (state["leader"]["leader"], state["leader"]["lease"]) == ("me", "default/tests")
        (informer,) = state["informers"]
        assert (informer["name"], informer["objects"], informer["phase"]) == ("configmaps", 1, "watching")
        assert [handler["name"] for handler in informer["handlers"]] == ["configmaps"]
        (controller,) = state["controllers"]
        assert (controller["name"], controller["concurrency"], controller["queue"]["depth"]) == (
            "configmaps",
            50,
            0,
        )
        assert set(state["stages"]["seconds"]) >= {"decoded", "delivered", "total"}


async def test_ports_may_be_separate_or_closed() -> None:
    one, other = free_ports(2)
    operator = failing_operator()
    async with (
        APIServer() as server,
        Client.from_url(server.url) as client,
        aiohttp.ClientSession() as session,
    ):
        debug = Debug(operator.manager(client), "tests")
        async with Serving(debug, metrics_port=one, probe_port=other, host="127.0.0.1"):
            for port, path, status in ((one, "metrics", 200), (one, "readyz", 404), (other, "readyz", 503)):
                async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                    assert answer.status == status
        async with Serving(debug, metrics_port=0, probe_port=other, host="127.0.0.1"):
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(f"http://127.0.0.1:{one}/metrics")
            with pytest.raises(ConfigError, match=rf"port {other} is in use: .* pass another --probe-port"):
                async with Serving(debug, metrics_port=one, probe_port=other, host="127.0.0.1"):
                    pass
        with pytest.raises(ConfigError, match="at most 65535"):
            Serving(debug, metrics_port=70000)


async def test_forged_owners_of_slots_do_not_make_the_data_long() -> None:
    operator = Operator("shared", events=False)

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject]) -> None: ...

    owners = {"x" * 200_000: [0, 1, 2, 7]}
    async with APIServer() as server, Client.from_url(server.url) as client:
        write_table(server, "shared", 8, owners)
        sharding = Sharding(client, "shared", "default", slots=8, lease_duration=120.0)
        async with operator.running(client, sharding=sharding) as manager:
            await eventually(lambda: sharding.state.owned == (3, 4, 5, 6), within=30)
            shown = Debug(manager, "shared").snapshot()
    (owner,) = shown["sharding"]["owners"].keys() - {shown["sharding"]["identity"]}
    assert owner.endswith("... (200,000 characters)")
    assert shown["sharding"]["owners"][owner] == [0, 1, 2, 7]
    assert len(msgspec.json.encode(shown)) < 20_000
