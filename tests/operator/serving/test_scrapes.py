"""scrapes.py and loop_lag.py: what /metrics answers."""

from __future__ import annotations

import asyncio
import time

import pytest
from prometheus_client import Counter, Gauge
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from aioinformer.operator.serving import loop_lag
from aioinformer.operator.serving.loop_lag import LoopLag
from aioinformer.testing import eventually

from .test_serving import World, failing_operator, serve


async def scrape(world: World, accept: str = "") -> tuple[str, str]:
    async with world.session.get(
        f"http://127.0.0.1:{world.port}/metrics", headers={"Accept": accept}
    ) as answer:
        assert answer.status == 200
        return await answer.text(), answer.headers["Content-Type"]


async def test_a_scrape_has_the_process_and_metrics_of_your_own() -> None:
    operator = failing_operator()
    Counter("published_sites", "Published sites.", ["zone"], registry=operator.registry).labels("eu").inc(3)
    async with serve(operator) as world, world.manager:
        await eventually(world.manager.ready)
        Gauge("late", "Registered after the start.", registry=operator.registry).set(1)
        text, content_type = await scrape(world)
        assert content_type == "text/plain; version=0.0.4; charset=utf-8"
        values = {line.name: line.value for family in parse(text) for line in family.samples}
        assert values["published_sites_total"] == 3
        assert values["late"] == 1
        assert values["process_resident_memory_bytes"] > 1e6
        assert {
            "process_cpu_seconds_total",
            "process_open_fds",
            "python_gc_collections_total",
        } <= values.keys()
        assert values["aioinformer_synced"] == 1
        assert values["rest_client_requests_total"] >= 1
        assert "published_sites_total" in world.manager.metrics()


async def test_every_metric_of_ours_has_a_help_text() -> None:
    async with serve(failing_operator()) as world, world.manager:
        text, _ = await scrape(world)
        assert [family.name for family in parse(text) if not family.documentation] == []


async def test_prometheus_gets_openmetrics_when_it_asks() -> None:
    async with serve(failing_operator()) as world, world.manager:
        text, content_type = await scrape(world, "application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1")
        assert content_type.startswith("application/openmetrics-text; version=1.0.0")
        names = {family.name for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]
        assert {"controller_runtime_reconcile", "workqueue_depth", "process_start_time_seconds"} <= names


class _Broken:
    def describe(self) -> list[object]:
        return []

    def collect(self) -> list[object]:
        raise ValueError("the sensor is gone")


async def test_a_broken_collector_is_logged_and_hides_no_other_metric(
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator = failing_operator()
    operator.registry.register(_Broken())  # type: ignore[arg-type]
    async with serve(operator) as world, world.manager:
        Gauge("late", "Registered after it.", registry=operator.registry).set(1)
        Gauge("controller_runtime_reconcile_total", "Mine.", registry=operator.registry).set(77.25)
        Gauge("sizes", "Mine.", ["path"], registry=operator.registry).labels("/d/\udcff").set(1)
        for text in ((await scrape(world))[0], world.manager.metrics(), (await scrape(world))[0]):
            assert 'controller_runtime_reconcile_total{controller="configmaps",result="success"} 0.0' in text
            assert "late 1.0" in text
            assert "total 77.25" not in text
        left_out = [record.getMessage() for record in caplog.records if "left out" in record.message]
        assert len(left_out) == 3, "each is said once"
        assert "ValueError: the sensor is gone" in left_out[0]
        assert "Gauge(controller_runtime_reconcile_total): a registry has metrics of" in left_out[1]
        assert "'sizes' of" in left_out[2]


async def test_lag_of_the_event_loop_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_lag, "EVERY", 0.05)
    lag = LoopLag()

    def late() -> float:
        buckets = {sample.labels.get("le"): sample.value for sample in lag.samples()}
        return buckets["+Inf"] - buckets["0.05"]

    with lag:
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251 -- blocks the event loop
        await eventually(lambda: late() >= 1)
