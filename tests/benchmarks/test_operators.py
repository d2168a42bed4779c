"""benchmarks/operators.py: the operators do the same job, and the matrix fits its goals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import pytest

from benchmarks import operators, webhooks
from benchmarks.building import BUILDERS, FOLDER, build
from benchmarks.harness.cell import Measured, run_cell
from benchmarks.harness.goals import load_goals
from benchmarks.harness.matrix import Client, Matrix, Phase, Scenario, load
from benchmarks.harness.processes import ReplayServer, Server
from benchmarks.harness.results import Machine, Results
from benchmarks.operators import QueueFigure, queue_table, split
from benchmarks.real_server import STRIDE, RealServer
from tests.go_build import require_build

pytestmark = pytest.mark.timeout(900)  # for a cold build of Go programs takes minutes

MACHINE = Machine("quick", "2026-11-21 12:00 UTC", "a processor", 2, 8.0, "6.1", "3.11")
PHASES = [Phase("fast", events=250), Phase("paced", events=100, rate=500.0, stamped=True)]


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return load(FOLDER / "operators.toml")


def run(
    server: Server, client: Client, *, tls: bool = False, binaries: dict[str, Path] | None = None
) -> Measured:
    scenario = Scenario(
        "smoke", "", ["quick"], [client.name], objects=300, slow_objects=300, tls=tls, phases=PHASES
    )
    return run_cell(server, client, scenario, 0, binaries or {})


def assert_complete(measured: Measured) -> None:
    assert measured.status in ("ok", "saturated"), measured.detail  # a busy machine cannot keep the rate
    assert measured.values["paced.count"] == 100
    assert 0 < measured.values["paced.p50"] <= measured.values["paced.p99"]
    assert measured.values["sync.cpu_us"] > 0
    assert measured.values["fast.cpu_us"] > 0


def test_the_start_includes_the_start_of_the_process(server: Server, matrix: Matrix) -> None:
    scenario = Scenario("start", "", ["quick"], ["aioinformer"], objects=1)
    measured = run_cell(server, matrix.client("aioinformer"), scenario, 0, {})
    assert measured.status == "ok", measured.detail
    assert measured.values["start.s"] > measured.values["sync.wall_s"] > 0
    assert measured.values["sync.resident_mb"] > 1


@pytest.mark.parametrize(
    "client", ["webhook-kubeobject", "webhook-struct-uvloop", "webhook-model", webhooks.PEER]
)
def test_webhook_servers_allow_every_review(client: str) -> None:
    for program in webhooks.PROGRAMS:
        require_build(BUILDERS[program].ensure, None)
    measured = list(webhooks.measure_server(client, [1, 5], 0, build(webhooks.PROGRAMS), 100))
    assert [figures.scenario for figures in measured] == ["webhook-1", "webhook-5"]
    for figures in measured:
        assert 0 < figures.values["p50"] <= figures.values["p99"]
        assert figures.values["reviews_s"] > 0


@pytest.mark.parametrize("tls", [False, True])
def test_our_operator_reconciles_every_object_and_change(server: ReplayServer, tls: bool) -> None:
    measured = run(server, Client("ours", "operator-aioinformer"), tls=tls)
    assert_complete(measured)
    assert measured.version.startswith("aioinformer")


@pytest.mark.parametrize("form", ["handlers", "events"])
def test_kopf_does_the_same_job(server: ReplayServer, form: str) -> None:
    pytest.importorskip("kopf")
    measured = run(server, Client("kopf", "operator-kopf", form=form))
    assert_complete(measured)
    assert measured.version.startswith("kopf")


@pytest.mark.timeout(600)  # for a cold build
@pytest.mark.parametrize("name", ["client-go", "controller-runtime"])
@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_go_operators_do_the_same_job(server: ReplayServer, name: str, encoding: str) -> None:
    binary = require_build(lambda: BUILDERS[name].ensure() / name, None)
    client = Client("peer", name, program=True, encoding=encoding)  # type: ignore[arg-type]
    measured = run(server, client, tls=True, binaries={name: binary})
    assert_complete(measured)
    assert measured.version.startswith(name)


def assert_fails_on_every_object(measured: Measured, *, has_events: bool) -> None:
    assert measured.status == "ok", measured.detail
    for phase in ("first", "later"):
        assert measured.values[f"{phase}.cpu_us"] > 0
        assert measured.values[f"{phase}.wall_s"] > 0
    assert measured.values["first.log_bytes"] > 0
    created = sum(measured.values[f"{phase}.events_created"] for phase in ("first", "later"))
    assert 0 < created <= 30 if has_events else created == 0


@pytest.mark.parametrize("failures", ["logged", "events"])
def test_our_operator_fails_on_every_object(
    server: ReplayServer, failures: Literal["logged", "events"]
) -> None:
    client = Client("ours", "operator-aioinformer")
    measured = run_cell(server, client, failing_scenario(failures), 0, {})
    assert_fails_on_every_object(measured, has_events=failures == "events")


@pytest.mark.timeout(600)  # for a cold build
@pytest.mark.parametrize("failures", ["logged", "events"])
def test_controller_runtime_fails_on_every_object(
    server: ReplayServer, failures: Literal["logged", "events"]
) -> None:
    binary = require_build(lambda: BUILDERS["controller-runtime"].ensure() / "controller-runtime", None)
    client = Client("peer", "controller-runtime", program=True, encoding="protobuf")
    measured = run_cell(server, client, failing_scenario(failures), 0, {"controller-runtime": binary})
    assert_fails_on_every_object(measured, has_events=failures == "events")


def failing_scenario(failures: Literal["logged", "events"]) -> Scenario:
    phases = [Phase("first", events=30, failures=180), Phase("later", events=0, failures=60)]
    return Scenario("failing", "", ["quick"], [], objects=30, failures=failures, phases=phases)


def test_every_goal_names_a_measured_cell(matrix: Matrix) -> None:
    scenarios = {scenario.name: scenario for scenario in matrix.scenarios}
    goals = load_goals(FOLDER / "operators_goals.toml")
    assert goals
    for goal in goals:
        for where in filter(None, (goal.ours, goal.theirs)):
            scenario = scenarios[where.scenario]
            assert where.client in scenario.clients
            assert where.figure.partition(".")[0] in {"sync", *(phase.name for phase in scenario.phases)}


def test_each_phase_changes_an_object_once(matrix: Matrix) -> None:
    for scenario in matrix.scenarios:
        for name in scenario.clients:
            as_run = scenario.of(matrix.client(name))
            assert math.gcd(STRIDE, as_run.objects) == 1
            assert all(phase.events <= as_run.objects for phase in as_run.phases)


def test_real_server_has_its_own_scenarios(matrix: Matrix) -> None:
    replayed, real = split(matrix)
    assert {scenario.name for scenario in real.scenarios} == {"real"}
    assert all(scenario.tls for scenario in real.scenarios)
    assert len(replayed.scenarios) + len(real.scenarios) == len(matrix.scenarios)


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
@pytest.mark.timeout(300)
def test_the_real_server_serves_the_same_job(kubernetes_binaries: Path) -> None:
    with RealServer([0]) as server:
        assert_complete(run(server, Client("ours", "operator-aioinformer"), tls=True))
        with pytest.raises(ValueError, match="300 pods already"):
            server.configure(10)


def test_queues_are_judged_by_their_goals() -> None:
    ours = QueueFigure("aioinformer, asyncio", "bulk", False, 900_000, 1.5)
    slow = QueueFigure("aioinformer, asyncio", "priority", True, 100_000, 10.0)
    theirs = QueueFigure("client-go", "bulk", False, 1_000, 1_000.0)
    table = queue_table([ours, slow, theirs]).splitlines()
    assert "≥ 500,000: met" in table[-3]
    assert "≥ 200,000: missed" in table[-2]
    assert table[-1].endswith("|  |")
    assert queue_table([]) == ""


def test_publishing_replaces_only_the_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{operators.BEGIN}the former run\n{operators.END}after\n")
    monkeypatch.setattr(operators, "PAGE", page)
    operators.publish("a new run")
    assert page.read_text() == f"before\n{operators.BEGIN}\na new run\n{operators.END}after\n"


def test_report_names_missing_results(tmp_path: Path, matrix: Matrix) -> None:
    results = Results(tmp_path / "run.jsonl", MACHINE)
    results.add(Measured("operator", "aioinformer", 0, "ok", {"1000.cpu_us": 100.0, "sync.wall_s": 1.0}))
    results.add(
        Measured(
            "operator", "controller-runtime-protobuf", 0, "ok", {"1000.cpu_us": 200.0, "sync.wall_s": 2.0}
        )
    )
    results.add(Measured("operator", "kube-rs", 0, "missing", detail="no cargo on PATH"))
    for name in ("failing", "failing-events"):
        figures = {"first.cpu_us": 20.0, "first.log_bytes": 0.05, "first.events_created": 7.0}
        results.add(Measured(name, "aioinformer", 0, "ok", figures))
    report = operators.text(results, matrix, [], tmp_path / "pictures", "pictures/")
    assert "- kube-rs: missing, no cargo on PATH" in report
    assert "| 0.500 \N{MULTIPLICATION SIGN} |" in report
    assert "| aioinformer | 10,000 | 20.0 | 0.05 |\n" in report
    assert "| aioinformer | 10,000 | 20.0 | 0.05 | 7 |\n" in report
    assert (tmp_path / "pictures" / "cpu.svg").exists()
