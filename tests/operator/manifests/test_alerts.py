"""The alerts about an operator: promtool evaluates them on the metrics of operators that fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Hashable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from aioinformer import KubeObject
from aioinformer.leaderelection import LeaderElector
from aioinformer.operator import AdmissionReview, Kind, Manager, Operator, Request
from aioinformer.operator.manifests import Installation, manifests
from aioinformer.operator.manifests.alerts import alerts
from aioinformer.sharding import Sharding
from aioinformer.testing import Simulation, simulate
from aioinformer.workqueue import QueueMetrics
from tests.narrow import Metadata
from tests.operator.worlds import create
from tests.prometheus.promtool import require_success, write_yaml

MINUTES = 25
SCRAPED = 'namespace="sites",pod="sites-5d8f7c9b8-x2x7k"'
"""The labels that Prometheus adds."""

_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")

T = TypeVar("T", bound=Hashable)

Trouble = Callable[[Simulation], Coroutine[Any, Any, None]]


class Data(msgspec.Struct):
    node: str


class Map(msgspec.Struct):
    metadata: Metadata
    data: Data


class VirtualQueueMetrics(QueueMetrics[T]):
    """Metrics in the time of the simulation."""

    def __init__(self) -> None:
        super().__init__(lambda: asyncio.get_running_loop().time())


def declare() -> Operator:
    """An operator whose reconcilers fail, hang, or do nothing, by the names of the objects."""
    operator = Operator("sites")

    @operator.controller(Kind("configmaps", Map), name="maps")
    async def reconcile_map(request: Request[Map]) -> None: ...

    @operator.controller("secrets", name="secrets", timeout=None)
    async def reconcile_secret(request: Request[KubeObject]) -> None:
        if request.name == "fails":
            raise ValueError("no")

    @operator.controller("serviceaccounts", name="accounts", timeout=None)
    async def reconcile_account(request: Request[KubeObject]) -> None:
        if request.name == "hangs":
            await asyncio.sleep(10**6)

    return operator


def installation(**options: Any) -> Installation:
    return Installation(
        **{"target": "sites:operator", "name": "sites", "image": "sites:1", "alerts": True, **options}
    )


async def scrape(manager: Manager, history: list[str], minutes: int = MINUTES) -> None:
    for _ in range(minutes):
        history.append(manager.metrics())
        await asyncio.sleep(60)


def series_of(history: list[str]) -> list[dict[str, str]]:
    """Return what Prometheus has scraped once a minute, as promtool takes it."""
    values: dict[str, list[str]] = {}
    for minute, text in enumerate(history):
        for line in text.splitlines():
            if match := _LINE.fullmatch(line):
                labels = ",".join(filter(None, (match[2], SCRAPED)))
                known = values.setdefault(f"{match[1]}{{{labels}}}", [])
                known += ["_"] * (minute - len(known)) + [match[3]]
    return [{"series": name, "values": " ".join(given)} for name, given in values.items()]


def require_firing(
    promtool: Path, tmp_path: Path, rules: list[dict[str, Any]], history: list[str], *expected: str
) -> None:
    """Check which alerts fire in the last minute."""
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected]
    test = {
        "interval": "1m",
        "input_series": series_of(history),
        "promql_expr_test": [{"expr": firing, "eval_time": f"{MINUTES - 1}m", "exp_samples": samples}],
    }
    rules_path = write_yaml(tmp_path / "rules.yaml", {"groups": [{"name": "sites", "rules": rules}]})
    require_success(promtool, "check", "rules", rules_path)
    tests = {"rule_files": [rules_path], "evaluation_interval": "1m", "tests": [test]}
    require_success(promtool, "test", "rules", write_yaml(tmp_path / "tests.yaml", tests))


@pytest.fixture(autouse=True)
def virtual_queue_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.operator.controller.QueueMetrics", VirtualQueueMetrics)


def run_operator(operator: Operator, trouble: Trouble) -> list[str]:
    """Run an operator that meets trouble, and return its metrics by the minute."""
    history: list[str] = []

    async def scenario(world: Simulation) -> None:
        async with operator.running(world.client) as manager:
            await asyncio.sleep(1)
            await trouble(world)
            await scrape(manager, history)

    simulate(scenario, shrink=False)
    return history


async def no_trouble(world: Simulation) -> None:
    create(world, "fits", data={"node": "n1"})
    create(world, "works", "secrets")


async def failing_reconcile(world: Simulation) -> None:
    create(world, "fails", "secrets")


async def hanging_reconcile(world: Simulation) -> None:
    create(world, "hangs", "serviceaccounts")
    await asyncio.sleep(1)
    create(world, "waits", "serviceaccounts")


async def unfit_object(world: Simulation) -> None:
    create(world, "unfit", data={"other": "x"})


async def revoked_rights(world: Simulation) -> None:
    for verb in ("list", "watch"):
        world.server.faults.fail(403, verb=verb, resource="secrets", times=None)
    world.server.faults.drop_watches("secrets")


TROUBLES = [
    (no_trouble, ()),
    (failing_reconcile, ("ReconcilesFailing",)),
    (hanging_reconcile, ("QueueStuck",)),
    (unfit_object, ("ObjectsDoNotFit", "ReconcilesFailing")),
    (revoked_rights, ("CacheStale",)),
]


@pytest.mark.parametrize(("trouble", "expected"), TROUBLES, ids=lambda value: getattr(value, "__name__", ""))
def test_trouble_fires_its_alert_and_no_other(
    trouble: Trouble, expected: tuple[str, ...], promtool: Path, tmp_path: Path
) -> None:
    operator = declare()
    history = run_operator(operator, trouble)
    require_firing(promtool, tmp_path, [*alerts(operator, installation())], history, *expected)


def test_operator_that_is_gone_fires_an_alert(promtool: Path, tmp_path: Path) -> None:
    operator = declare()
    history = run_operator(operator, no_trouble)[:5]
    require_firing(promtool, tmp_path, [*alerts(operator, installation())], history, "OperatorDown")


def test_operator_without_a_leader_fires_an_alert(promtool: Path, tmp_path: Path) -> None:
    operator = declare()
    history: list[str] = []

    async def scenario(world: Simulation) -> None:
        elector = LeaderElector(world.client, "sites", "default")
        async with operator.manager(world.client, leader_election=elector) as manager:
            await scrape(manager, history, 5)
            world.server.faults.fail(500, resource="leases", times=None)
            await scrape(manager, history, MINUTES - 5)

    simulate(scenario, shrink=False)
    rules = [*alerts(operator, installation(replicas=2))]
    require_firing(promtool, tmp_path, rules, history, "OperatorDown")
    require_firing(promtool, tmp_path, rules, history[:5] * 5)


def test_slots_without_an_owner_fire_an_alert(promtool: Path, tmp_path: Path) -> None:
    operator = declare()
    history: list[str] = []

    async def scenario(world: Simulation) -> None:
        sharding = Sharding(world.client, "sites", "default", slots=4)
        async with operator.manager(world.client, sharding=sharding) as manager:
            await scrape(manager, history, 5)
            world.server.faults.fail(500, resource="leases", times=None)  # the only replica loses its slots
            await scrape(manager, history, MINUTES - 5)

    simulate(scenario, shrink=False)
    rules = [*alerts(operator, installation(shards=4))]
    require_firing(promtool, tmp_path, rules, history, "SlotsWithoutOwner")
    require_firing(promtool, tmp_path, rules, history[:5] * 5)


def test_failing_webhooks_fire_an_alert(promtool: Path, tmp_path: Path) -> None:
    operator = Operator("sites")

    @operator.validate("pods")
    async def validate(review: AdmissionReview[KubeObject]) -> None: ...

    rules = [*alerts(operator, installation())]
    (expression,) = [rule["expr"] for rule in rules if rule["alert"] == "WebhooksFail"]
    assert 'result=~"failed|timed_out"' in expression
    up = "controller_runtime_max_concurrent_reconciles 1"
    history = [
        f'{up}\naioinformer_webhook_reviews_total{{result="failed"}} {minute}' for minute in range(MINUTES)
    ]
    require_firing(promtool, tmp_path, rules, history, "WebhooksFail")
    history = [
        f'{up}\naioinformer_webhook_reviews_total{{result="denied"}} {minute}' for minute in range(MINUTES)
    ]
    require_firing(promtool, tmp_path, rules, history)


def test_manifests_have_the_alerts_if_they_are_asked_for() -> None:
    operator = declare()
    (rule,) = [obj for obj in manifests(operator, installation()) if obj["kind"] == "PrometheusRule"]
    names = [alert["alert"] for alert in rule["spec"]["groups"][0]["rules"]]
    assert names == [
        *("ReconcilesFailing", "QueueStuck", "ObjectsDoNotFit", "CacheStale", "OperatorDown", "PodDown"),
        *("APIServerUnreachable", "LogsLost"),
    ]
    without = manifests(operator, installation(alerts=False))
    assert "PrometheusRule" not in {obj["kind"] for obj in without}
