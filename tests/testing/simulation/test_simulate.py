from __future__ import annotations

import asyncio
import calendar
import gc
import logging
import random
import time
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    EventRecorder,
    KubeObject,
    LeaderElector,
    ListWatch,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
)
from aioinformer.reflector import reflector
from aioinformer.testing import TROUBLES, APIServer, Simulation, SimulationError, simulate
from aioinformer.testing.simulation import DeadlockError, History, LeakError, VirtualTimeoutError, shrink
from tests.informer.subject import versions_in_cache


def informer_of(world: Simulation, **options: Any) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(
        ListWatch.for_resource(world.client, "v1", "configmaps"), KubeObject, **options
    )


def put(world: Simulation, name: str, value: object) -> None:
    obj = {"metadata": {"name": name, "namespace": "default"}, "data": {"value": str(value)}}
    if world.server.cluster.find(world.server.resource("v1", "configmaps"), "default", name) is None:
        world.server.create("v1", "configmaps", obj)
    else:
        world.server.update("v1", "configmaps", obj)


async def stormy(world: Simulation) -> None:
    """Run an informer through a storm."""
    put(world, "a", 0)
    informer = informer_of(world, min_watch_timeout=10)
    informer.add_event_handler(
        ResourceEventHandlerFuncs[KubeObject](
            on_update=lambda old, new: world.note("handler", f"{new.key} at {new.resource_version}")
        )
    )
    async with informer:
        await informer.wait_synced()
        storm = asyncio.create_task(world.storm(60, every=6))
        for number in range(20):
            await asyncio.sleep(3)
            if world.happens("writer", number):
                put(world, world.random.choice("abc"), number)
        await storm
        await world.eventually(
            lambda: versions_in_cache(informer) == world.server.snapshot("v1", "configmaps")
        )


def test_the_same_seed_gives_the_same_history() -> None:
    for seed in range(20):
        assert simulate(stormy, seed=seed).text() == simulate(stormy, seed=seed).text()


def test_another_seed_gives_another_history() -> None:
    assert len({simulate(stormy, seed=seed).text() for seed in range(20)}) == 20


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_informer_survives_each_trouble(trouble: str) -> None:
    async def scenario(world: Simulation) -> None:
        put(world, "a", 0)
        informer = informer_of(world, min_watch_timeout=10, page_size=world.random.choice((0, 1)))
        async with informer:
            storm = asyncio.create_task(world.storm(60, every=6, troubles=[trouble]))
            for number in range(20):
                await asyncio.sleep(3)
                put(world, world.random.choice("abc"), number)
            await storm
            await world.eventually(
                lambda: versions_in_cache(informer) == world.server.snapshot("v1", "configmaps")
            )

    struck = 0
    for seed in range(10):
        struck += sum(str(entry.what).endswith(trouble) for entry in simulate(scenario, seed=seed))
    assert struck > 50


def test_after_a_storm_the_network_is_as_before() -> None:
    async def scenario(world: Simulation) -> None:
        world.network.latency = (0.2, 0.3)
        await world.storm(600, every=5, troubles=["network slow", "server away", "server frozen"])
        assert (world.network.latency, world.network.slow) == ((0.2, 0.3), 0.1)
        assert b"items" in await world.client.get("/api/v1/configmaps")

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_scenario_error_has_the_history_as_a_note() -> None:
    async def scenario(world: Simulation) -> None:
        put(world, "a", 1)
        await asyncio.sleep(5)
        world.note("me", "about to fail")
        assert False, "as it must"  # noqa: B011, PT015

    with pytest.raises(AssertionError, match="as it must") as raised:
        simulate(scenario, seed=41)
    (note,) = raised.value.__notes__
    assert "seed=41" in note
    assert "created default/a" in note
    assert "5.000000  me           about to fail" in note


def test_a_failure_is_shrunk_to_what_it_needs() -> None:
    async def scenario(world: Simulation) -> None:
        there = set()
        for number in range(100):
            await asyncio.sleep(1)
            if world.happens("writer", number):
                there.add(number)
        assert not {17, 71} <= there

    with pytest.raises(AssertionError) as raised:
        simulate(scenario, seed=1)
    (note,) = raised.value.__notes__
    assert "100 actions, of which 2 suffice" in note
    assert "[17] 17" in note
    assert "[71] 71" in note
    assert "[18] 18" not in note


def test_traffic_does_not_hide_other_entries() -> None:
    async def scenario(world: Simulation) -> None:
        world.happens("user", "begins")
        async with LeaderElector(world.client, "lock", "default"):
            await asyncio.sleep(600)
        assert False  # noqa: B011, PT015

    def note(**options: Any) -> str:
        with pytest.raises(AssertionError) as raised:
            simulate(scenario, shrink=False, **options)
        return str(raised.value.__notes__[0])

    head, happened, left_out, *rest = note().splitlines()
    assert "1 actions" in head
    assert "[0] begins" in happened
    number = int(left_out.removeprefix("… ").removesuffix(" left out").replace(",", ""))
    assert len(rest) < 250 < number
    whole = note(entries=None).splitlines()
    assert len(whole) > number + 100
    assert {happened, *rest} - {*whole} == {line for line in rest if line.startswith("… ")}


def test_incomplete_shrinking_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "RUNS", 4)

    async def scenario(world: Simulation) -> None:
        there = {number for number in range(100) if world.happens("writer", number)}
        assert not {17, 41} <= there

    def note(skip: Collection[int]) -> str:
        with pytest.raises(AssertionError) as raised:
            simulate(scenario, skip=skip)
        return str(raised.value.__notes__[0])

    noted = note(range(50, 100))
    assert "; shrinking stopped after " in noted
    assert ", and continues from this skip\n" in noted
    monkeypatch.setattr(shrink, "RUNS", 500)
    assert "of which 2 suffice\n" in note(range(50, 100))


def test_a_scenario_that_reads_its_log_is_shrunk_like_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: Simulation) -> None:
        caplog.clear()
        for number in range(10):
            if world.happens("writer", number) and number == 5:
                logging.getLogger("operator").error("has seen %s", number)
        assert not caplog.records

    with pytest.raises(AssertionError) as raised:
        simulate(scenario)
    assert "10 actions, of which 1 suffice" in raised.value.__notes__[0]


def test_long_traceback_is_shortened_to_its_end() -> None:
    def deeper() -> None:
        deeper()

    async def scenario(world: Simulation) -> None:
        try:
            deeper()
        except RecursionError:
            logging.getLogger("aioinformer.tests").exception("too deep")
        assert False  # noqa: B011, PT015

    with pytest.raises(AssertionError) as raised:
        simulate(scenario)
    assert max(map(len, raised.value.__notes__[0].splitlines())) < 1500


def test_entries_must_be_a_count() -> None:
    async def scenario(world: Simulation) -> None:
        world.note("me", "was here")

    for entries in (-1, 2.5, "all"):
        with pytest.raises(ConfigError, match="entries must be a whole number"):
            simulate(scenario, entries=entries)  # type: ignore[arg-type]
    assert simulate(scenario).text(0) == "… 1 left out"


def test_skipped_actions_do_not_happen() -> None:
    happened: list[int] = []

    async def scenario(world: Simulation) -> None:
        happened.extend(number for number in range(5) if world.happens("me", number))

    simulate(scenario, skip={1, 3})
    assert happened == [0, 2, 4]


def test_a_deadlock_is_found_at_once() -> None:
    async def scenario(world: Simulation) -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="scenario"):
        simulate(scenario)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_task_that_ignores_cancellation_is_an_error() -> None:
    async def scenario(world: Simulation) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="scenario"):
        simulate(scenario)
    gc.collect()  # its coroutine cannot be closed properly


def test_virtual_time_is_bounded() -> None:
    async def scenario(world: Simulation) -> None:
        async with informer_of(world):
            await asyncio.Event().wait()

    with pytest.raises(VirtualTimeoutError, match="not done after 7200 virtual seconds"):
        simulate(scenario, until=7200)


def test_a_task_left_running_is_a_leak() -> None:
    tasks = []

    async def scenario(world: Simulation) -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(10), name="forgotten"))

    with pytest.raises(LeakError, match="forgotten"):
        simulate(scenario)


def test_a_stream_left_open_is_a_leak() -> None:
    async def scenario(world: Simulation) -> None:
        await world.client.stream("/api/v1/configmaps", [("watch", "true")])

    with pytest.raises(LeakError, match="answers open"):
        simulate(scenario)


def test_loop_error_is_a_leak() -> None:
    async def scenario(world: Simulation) -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)

    with pytest.raises(LeakError, match="reported an error") as raised:
        simulate(scenario)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_unretrieved_exception_of_a_referenced_task_is_a_leak() -> None:
    kept = set[asyncio.Task[None]]()

    async def lost() -> None:
        raise ValueError("invisible")

    async def scenario(world: Simulation) -> None:
        seen, unseen = (asyncio.create_task(lost(), name=name) for name in ("seen", "unseen"))
        kept.update((seen, unseen))
        await asyncio.wait(kept)
        assert seen.exception()

    with pytest.raises(LeakError, match=r"never retrieved: .*lost") as raised:
        simulate(scenario)
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_warning_is_a_leak() -> None:
    async def scenario(world: Simulation) -> None:
        warnings.warn("mind the gap", stacklevel=1)

    with pytest.raises(LeakError, match="mind the gap"):
        simulate(scenario)


def test_a_coroutine_never_awaited_is_a_leak() -> None:
    async def scenario(world: Simulation) -> None:
        asyncio.sleep(1)  # type: ignore[unused-coroutine]

    with pytest.raises(LeakError, match="never awaited"):
        simulate(scenario)


def test_an_invariant_is_checked_after_every_step() -> None:
    async def scenario(world: Simulation) -> None:
        value = 0

        def check() -> None:
            assert value < 5

        world.always(lambda: None)
        world.always(check)
        while True:
            value += 1
            await asyncio.sleep(1)

    with pytest.raises(AssertionError) as raised:
        simulate(scenario)
    assert "server" not in str(raised.value)


def test_eventually_names_the_condition() -> None:
    async def scenario(world: Simulation) -> None:
        await world.eventually(lambda: False, within=50, what="peace")

    with pytest.raises(AssertionError, match="not within 50 s: peace"):
        simulate(scenario)


def test_checks_must_be_sync() -> None:
    async def peace() -> bool:
        return False

    async def watching(world: Simulation) -> None:
        world.always(peace)

    async def watching_in_disguise(world: Simulation) -> None:
        world.always(lambda: asyncio.sleep(1, "peace"))
        await asyncio.sleep(1)

    for scenario in (watching, watching_in_disguise):
        with pytest.raises(ConfigError, match=r"peace|must return its result"):
            simulate(scenario)


@pytest.mark.parametrize("troubles", ["watches end", ["watch ends"], []])
def test_unknown_troubles_are_refused(troubles: Any) -> None:
    async def scenario(world: Simulation) -> None:
        with pytest.raises(
            ConfigError, match=r"troubles must be (a list|some of watches end, connections cut, )"
        ):
            await world.storm(60, troubles=troubles)

    simulate(scenario)


def test_scenario_must_be_async() -> None:
    def plain(world: Simulation) -> None:
        pass

    async def generator(world: Simulation) -> Any:
        yield

    for scenario in (plain, generator):
        with pytest.raises(ConfigError, match=r"^scenario must be an async function: "):
            simulate(scenario)  # type: ignore[arg-type]


def test_random_numbers_of_the_package_are_seeded() -> None:
    names: Mapping[str, Any] = vars(reflector)
    drawn: list[float] = []

    async def scenario(world: Simulation) -> None:
        drawn.append(names["SystemRandom"]().random())

    simulate(scenario, seed=3)
    simulate(scenario, seed=3)
    assert drawn[0] == drawn[1]
    assert names["SystemRandom"] is random.SystemRandom


def test_the_servers_clock_is_virtual() -> None:
    async def scenario(world: Simulation) -> None:
        put(world, "a", 1)
        await asyncio.sleep(3600)
        put(world, "b", 1)
        stamps = [
            time.strptime(config_map["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")
            for config_map in world.server.list("v1", "configmaps")
        ]
        assert time.mktime(stamps[1]) - time.mktime(stamps[0]) == 3600
        assert calendar.timegm(stamps[1]) == int(world.wall())

    simulate(scenario)


def test_log_records_are_in_the_history(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: Simulation) -> None:
        async with informer_of(world) as informer:
            await informer.wait_synced()
            world.network.cut()
            await asyncio.sleep(10)

    with caplog.at_level(logging.CRITICAL, "aioinformer"):
        pass
    assert "WARNING configmaps at" in simulate(scenario).text()


def test_logged_error_shows_its_traceback() -> None:
    def fails(obj: KubeObject, is_in_initial_list: bool) -> None:
        raise ValueError("as it must")

    async def scenario(world: Simulation) -> None:
        put(world, "a", 1)
        informer = informer_of(world)
        informer.add_event_handler(ResourceEventHandlerFuncs(on_add=fails))
        async with informer:
            await informer.wait_synced()
            await asyncio.sleep(1)

    line = fails.__code__.co_firstlineno + 1
    (message,) = (str(entry.what) for entry in simulate(scenario) if entry.who == "log")
    assert message.endswith(f" > {fails.__qualname__} (test_simulate.py:{line})")


def test_it_cannot_run_inside_an_event_loop() -> None:
    async def scenario(world: Simulation) -> None: ...

    async def main() -> None:
        simulate(scenario)

    with pytest.raises(RuntimeError, match="event loop"):
        asyncio.run(main())


def test_without_shuffling_the_order_is_asyncios() -> None:
    async def scenario(world: Simulation) -> None:
        ran: list[int] = []

        async def step(number: int) -> None:
            ran.append(number)

        await asyncio.gather(*(step(number) for number in range(10)))
        world.note("order", ran)

    def orders(shuffle: bool) -> set[str]:
        histories = (simulate(scenario, seed=seed, shuffle=shuffle) for seed in range(5))
        return {str(history.entries[-1].what) for history in histories}

    assert orders(shuffle=False) == {str(list(range(10)))}
    assert len(orders(shuffle=True)) == 5


def test_repeated_simulations_leak_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("aioinformer"), "propagate", False)  # pytest keeps what is logged
    sizes, kept = list[int](), list[History]()
    for seed in range(12):
        kept[:] = [simulate(stormy, seed=seed)]  # which keeps nothing else of its world
        sizes.append(len(gc.get_objects()))
    assert sizes[-1] - sizes[3] < 1000


def test_errors_of_a_simulation_have_one_root() -> None:
    assert issubclass(DeadlockError, SimulationError)
    assert issubclass(LeakError, SimulationError)


def test_clocks_and_uuids_come_from_the_seed() -> None:
    async def scenario(world: Simulation) -> None:
        about = world.server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with (
            EventRecorder(world.client, "controller") as recorder,
            LeaderElector(world.client, "lock", "default"),
        ):
            recorder.event(about, "Normal", "Created", "as it must")
            await asyncio.sleep(10)
        assert all(abs(request.time - 1_750_000_000) < 20 for request in world.server.requests)

    assert simulate(scenario, seed=1).text() == simulate(scenario, seed=1).text()
    assert simulate(scenario, seed=1).text() != simulate(scenario, seed=2).text()


@pytest.mark.parametrize("raised", [pytest.fail.Exception("no"), asyncio.CancelledError()])
def test_base_exceptions_have_the_history_too(raised: BaseException) -> None:
    async def scenario(world: Simulation) -> None:
        world.happens("me", "nothing")
        raise raised

    with pytest.raises(type(raised)) as caught:
        simulate(scenario, seed=7)
    assert "seed=7, skip=[0]" in caught.value.__notes__[0]


def test_skip_contains_only_reached_actions() -> None:
    async def scenario(world: Simulation) -> None:
        for number in range(30 if world.happens("me", "many") else 2):
            world.happens("me", number)
        assert False  # noqa: B011, PT015

    with pytest.raises(AssertionError) as raised:
        simulate(scenario)
    assert "skip=[0, 1, 2]) replays it: 3 actions, of which 0 suffice" in raised.value.__notes__[0]


def test_concurrent_storms_differ() -> None:
    async def scenario(world: Simulation) -> None:
        await asyncio.gather(world.storm(60), world.storm(60))

    struck = [entry.time for entry in simulate(scenario) if entry.who == "storm"][:-2]
    assert len(struck) == len(set(struck)) > 5


def test_second_server_is_refused() -> None:
    async def scenario(world: Simulation) -> None:
        async with APIServer():
            pass

    with pytest.raises(SimulationError, match=r"a simulation has a single server: use world\.server"):
        simulate(scenario)
