"""benchmarks/harness: it measures clients, judges by the goals, and resumes an interrupted run."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.building import BUILDERS, Built
from benchmarks.clients.tally import percentiles
from benchmarks.harness import run as runs
from benchmarks.harness.cell import Measured, run_cell
from benchmarks.harness.goals import Goal, Where, judge, load_goals
from benchmarks.harness.matrix import Client, Matrix, Phase, Scenario, load
from benchmarks.harness.processes import ReplayServer
from benchmarks.harness.report import goals_table, render
from benchmarks.harness.results import Machine, Results, summarize
from benchmarks.pods import name_suffix, pod, uid, write_templates

pytestmark = pytest.mark.timeout(900)  # for a cold build of Go programs takes minutes

MACHINE = Machine("quick", "2026-11-21 12:00 UTC", "a processor", 2, 8.0, "6.1", "3.11")


@pytest.mark.parametrize("initial", ["list", "watchlist"])
@pytest.mark.parametrize("tls", [False, True])
def test_a_client_syncs_watches_and_relists(server: ReplayServer, initial: str, tls: bool) -> None:
    scenario = Scenario(
        "smoke",
        "",
        ["quick"],
        ["ours"],
        objects=600,
        initial=initial,  # type: ignore[arg-type]
        tls=tls,
        handlers=2,
        probe=True,
        phases=[
            Phase("fast", events=500),
            Phase("paced", events=100, rate=500.0, stamped=True),
            Phase("relist", relist=True),
        ],
    )
    measured = run_cell(server, Client("ours", "aioinformer"), scenario, 0, {})
    assert measured.status in ("ok", "saturated"), measured.detail  # a busy machine cannot keep the rate
    assert measured.version.startswith("aioinformer")
    assert {"sync.cpu_us", "sync.bytes", "sync.lag_p999", "fast.events_s", "relist.cpu_us"} <= set(
        measured.values
    )
    assert measured.values["paced.count"] == 200
    assert 0 < measured.values["paced.p50"] <= measured.values["paced.p99"] <= measured.values["paced.max"]
    assert server.counts()["watches"] >= 2


@pytest.mark.parametrize("name", ["floor", "orjson"])
def test_the_bare_clients_take_part(server: ReplayServer, name: str) -> None:
    scenario = Scenario("smoke", "", ["quick"], [name], objects=300, phases=[Phase("watch", events=300)])
    measured = run_cell(server, Client(name, name), scenario, 0, {})
    assert (measured.status, measured.detail) == ("ok", "")
    assert measured.values["watch.cpu_us"] > 0


def test_client_that_cannot_take_part_is_reported_with_the_reason(server: ReplayServer) -> None:
    scenario = Scenario("smoke", "", ["quick"], ["orjson"], objects=10, initial="watchlist")
    measured = run_cell(server, Client("orjson", "orjson"), scenario, 0, {})
    assert measured.status == "unsupported"
    assert "watchlist" in measured.detail


def test_run_reports_missing_results_and_resumes(
    server: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = Matrix(
        [Client("floor", "floor"), Client("absent", "client-go", program=True)],
        [Scenario("smoke", "A title", ["quick"], ["floor", "absent"], objects=150)],
    )
    binary = BUILDERS["replay-server"].ensure() / "replay-server"
    built = Built({"replay-server": binary}, {"client-go": "no compiler"})
    monkeypatch.setattr(runs, "build", lambda names, report: built)
    monkeypatch.setattr(runs, "templates", lambda tier: _templates(tmp_path))
    path = tmp_path / "run.jsonl"
    results = Results.begin(path, MACHINE)
    runs.run(matrix, "quick", 1, results, Console(quiet=True))
    path.write_text(path.read_text() + '{"scenario": "cut sh')
    results = Results.load(path)
    runs.run(matrix, "quick", 2, results, Console(quiet=True))
    assert [(cell.client, cell.round, cell.status) for cell in Results.load(path).cells] == [
        ("floor", 0, "ok"),
        ("absent", 0, "missing"),
        ("absent", 1, "missing"),
        ("floor", 1, "ok"),
    ]
    text = render(summarize(results), matrix, [], {})
    assert "### A title" in text
    assert "absent: missing, no compiler" in text


def _templates(folder: Path) -> Path:
    write_templates(folder / "pods.jsonl", 150)
    return folder / "pods.jsonl"


def test_the_server_names_pods_as_the_generator_does(server: ReplayServer) -> None:
    import json
    import urllib.request

    server.configure(400)
    with urllib.request.urlopen(f"{server.http}/api/v1/pods") as response:
        items = json.load(response)["items"]
    for number in (0, 149, 150, 399):
        metadata = items[number]["metadata"]
        assert metadata["uid"] == uid(number)
        assert metadata["name"].endswith(name_suffix(number))
    expected = pod(7)
    assert items[7] == {name: value for name, value in expected.items() if name not in ("kind", "apiVersion")}


def test_matrix_and_goals_name_existing_clients_and_cells() -> None:
    matrix = load()
    for goal in load_goals():
        for where in (goal.ours, goal.theirs, *(goal.over or ())):
            if where is not None:
                scenario = next(
                    candidate for candidate in matrix.scenarios if candidate.name == where.scenario
                )
                assert where.client in scenario.clients
                assert "bench" in scenario.tiers
                phases = {"sync", *(phase.name for phase in scenario.phases)}
                assert where.figure.split(".")[0] in phases


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"), [([1.0, 2.0, 9.0], [4.0, 5.0, 6.0], "met"), ([4.0], [4.0], "missed")]
)
def test_goals_compare_medians(tmp_path: Path, ours: list[float], theirs: list[float], verdict: str) -> None:
    results = Results.begin(tmp_path / "run.jsonl", MACHINE)
    for client, values in (("a", ours), ("b", theirs)):
        for number, value in enumerate(values):
            results.add(Measured("s", client, number, "ok", {"sync.cpu_us": value}))
    goal = Goal("cpu", Where("s", "a", "sync.cpu_us"), theirs=Where("s", "b", "sync.cpu_us"), at_most=0.5)
    outcome = judge(goal, summarize(results), results)
    assert outcome.verdict == verdict
    assert outcome.low == min(a / b for a, b in zip(ours, theirs, strict=True))
    assert verdict in goals_table([outcome])
    other = Goal("cpu", Where("s", "absent", "sync.cpu_us"), compare="alone", at_most=0.5)
    assert judge(other, summarize(results), results).verdict == "not measured"


def test_percentiles_are_by_nearest_rank() -> None:
    figures = percentiles(list(range(1, 1001)))
    assert (figures["p50"], figures["p99"], figures["p999"], figures["max"]) == (500, 990, 999, 1000)
