"""Benchmark operators side by side: ``python -m benchmarks.operators quick|bench|full``.

Operators with aioinformer, controller-runtime, kube-rs and kopf do the same job, on the replay server and on the real
kube-apiserver, with the harness of the other benchmarks. Then the webhook servers (``webhooks.py``) and the work queues
(``workqueue.py``) run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console
from rich.markdown import Markdown

from . import webhooks, workqueue
from .building import BUILDS, FOLDER, build
from .harness.cell import SERVERS_CORE, Measured, run_cell
from .harness.goals import judge, load_goals
from .harness.matrix import Matrix, load
from .harness.plots import Plot, draw
from .harness.report import goals_table, render
from .harness.results import Results, summarize
from .harness.run import ROUNDS, MissingServerError, is_resumed, plan, results_at, run
from .real_server import RealServer

DOCS = FOLDER.parent / "docs"
PAGE = DOCS / "benchmarks-operators.md"
BEGIN, END = "<!-- the last run -->\n", "<!-- end of the last run -->\n"
REAL = "real"
"""The prefix of the names of scenarios for the real server."""
ITEMS = {"quick": 20_000, "bench": 100_000, "full": 100_000}

PLOTS = (
    Plot("cpu", "CPU per reconcile, 1,000 changes a second", "operator", "1000.cpu_us", "µs"),
    Plot("cpu-full", "CPU per reconcile, changes at full speed", "operator", "full.cpu_us", "µs"),
    Plot("cpu-slow", "CPU per reconcile, 100 changes a second", "operator-slow", "100.cpu_us", "µs"),
    Plot("latency", "Change to reconcile, p99 at 1,000 changes a second", "operator", "1000.p99", "µs"),
    Plot("start", "Time until 10,000 objects are reconciled", "operator", "sync.wall_s", "s"),
    Plot("memory", "Memory of the operator with 10,000 objects", "operator", "sync.resident_mb", "MiB"),
    Plot("first", "From the process's start to the first reconcile", "start-1", "start.s", "s"),
    Plot(
        "thousand",
        "From the process's start until 1,000 objects are reconciled",
        "start-1000",
        "start.s",
        "s",
    ),
    Plot("memory-1000", "Memory of the operator with 1,000 objects", "start-1000", "sync.resident_mb", "MiB"),
    Plot("failing", "CPU per failing reconcile", "failing", "first.cpu_us", "µs"),
    Plot("failing-events", "CPU per failing reconcile, with Events", "failing-events", "first.cpu_us", "µs"),
    Plot("webhook-cpu", "Webhook: CPU per review, 50 at the same time", "webhook-50", "cpu_us", "µs"),
    Plot("webhook-p50", "Webhook: latency p50, one at a time", "webhook-1", "p50", "µs"),
    Plot("webhook-p99", "Webhook: latency p99, 50 at the same time", "webhook-50", "p99", "µs"),
)


class QueueFigure(msgspec.Struct):
    """Cycles of add, get and done per second, and CPU microseconds per cycle: medians."""

    queue: str
    use: str
    metrics: bool
    cycles_s: float
    cpu_us: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Run operators in turn that do the same job")
    parser.add_argument("tier", choices=list(ROUNDS))
    parser.add_argument("--rounds", type=int, help="number of rounds, instead of the tier's")
    parser.add_argument("--only", default="", help="regular expression of SCENARIO/CLIENT")
    parser.add_argument("--no-real", action="store_true", help="skip the real kube-apiserver")
    parser.add_argument("--no-webhooks", action="store_true", help="skip the webhook servers")
    parser.add_argument("--no-queues", action="store_true", help="skip the work queues")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    parser.add_argument("--publish", action="store_true", help=f"also write docs/{PAGE.name} and its plots")
    options = parser.parse_args()
    console = Console()
    path = BUILDS / "runs" / f"operators-{options.tier}.jsonl"
    matrix = load(FOLDER / "operators.toml")
    if not is_resumed(path, options):
        queues_of(path).unlink(missing_ok=True)
    with results_at(path, options, console) as results:
        if not options.report:
            measure(matrix, options, results, console)
    queues = read_queues(path)
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(text(results, matrix, queues, folder, ""))
    (folder / "results.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(summarize(results))) + b"\n"
    )
    console.print(Markdown(goals(results)))
    console.print(f"report: {folder / 'report.md'}", markup=False)
    if options.publish:
        publish(text(results, matrix, queues, DOCS / PAGE.stem, f"{PAGE.stem}/"))


def measure(matrix: Matrix, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Measure the cells that the results lack."""
    rounds = options.rounds or ROUNDS[options.tier]
    replayed, real = split(matrix)
    try:
        run(replayed, options.tier, rounds, results, console, options.only)
    except MissingServerError as error:
        raise SystemExit(f"the replay server cannot be built: {error}") from None
    if not options.no_real:
        run_real(real, options, rounds, results, console)
    if not options.no_webhooks:
        webhooks.measure(results, build(webhooks.PROGRAMS), options.tier, rounds)
    if not options.no_queues:
        figures = measure_queues(ITEMS[options.tier], rounds)
        queues_of(results.path).write_bytes(msgspec.json.encode(figures))


def split(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Split the matrix into scenarios for the replay server and for the real one."""
    real = [scenario for scenario in matrix.scenarios if scenario.name.startswith(REAL)]
    replayed = [scenario for scenario in matrix.scenarios if scenario not in real]
    return Matrix(matrix.clients, replayed), Matrix(matrix.clients, real)


def run_real(
    matrix: Matrix, options: argparse.Namespace, rounds: int, results: Results, console: Console
) -> None:
    """Measure the cells of the real server that the results lack."""
    cells = [
        cell
        for cell in plan(matrix, options.tier, rounds, options.only)
        if not results.has(cell.scenario.name, cell.client.name, cell.round)
    ]
    if not cells:
        return
    programs = {client.run for client in matrix.clients if client.program}
    built = build(sorted(programs))
    with RealServer([SERVERS_CORE]) as server:
        for scenario, client, number in cells:
            if client.program and (reason := built.missing.get(client.run)):
                measured = Measured(scenario.name, client.name, number, "missing", detail=reason)
            else:
                measured = run_cell(server, client, scenario, number, built.programs)
            if measured.status == "saturated":
                measured.detail = "the server, not the client, accepted fewer changes per second than wanted"
            results.add(measured)
            console.print(
                f"{scenario.name}  {client.name}  {measured.status} {measured.detail}", markup=False
            )


def measure_queues(items: int, rounds: int) -> list[QueueFigure]:
    """Measure the work queues in turn, round after round."""
    go = build(["go-queues"]).programs.get("go-queues")
    keys = [f"team-{number % 20}/web-{number:06d}" for number in range(items)]
    figures: workqueue.Figures = {}
    for _ in range(rounds):
        workqueue.run_round(keys, figures, None if go is None else str(go))
    order = list(workqueue.USES)
    return [
        QueueFigure(*which, *(median(rates) for rates in zip(*values, strict=True)))
        for which, values in sorted(figures.items(), key=lambda item: order.index(item[0][1]))
    ]


def queues_of(path: Path) -> Path:
    """Return the file with a run's work queue figures."""
    return path.with_suffix(".queues.json")


def read_queues(path: Path) -> list[QueueFigure]:
    file = queues_of(path)
    return msgspec.json.decode(file.read_bytes(), type=list[QueueFigure]) if file.exists() else []


def goals(results: Results) -> str:
    """Return a table of the goals and the measured values."""
    summary = summarize(results)
    return goals_table(
        [judge(goal, summary, results) for goal in load_goals(FOLDER / "operators_goals.toml")]
    )


def text(results: Results, matrix: Matrix, queues: list[QueueFigure], folder: Path, prefix: str) -> str:
    """Return the report, and draw its plots into a folder."""
    summary = summarize(results)
    outcomes = [judge(goal, summary, results) for goal in load_goals(FOLDER / "operators_goals.toml")]
    plots = {title: prefix + name for title, name in draw(summary, folder, PLOTS).items()}
    return render(summary, matrix, outcomes, plots) + webhooks.table(summary) + queue_table(queues)


def queue_table(figures: list[QueueFigure]) -> str:
    if not figures:
        return ""
    rows = [
        "### Work queues: cycles of add, get and done\n",
        "| use | queue | metrics | cycles/s | CPU µs/cycle | goal |",
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for figure in figures:
        goal = (
            workqueue.GOALS.get((figure.use, figure.metrics), 0)
            if figure.queue.startswith("aioinformer")
            else 0
        )
        verdict = f"≥ {goal:,}: {'met' if 1e6 / figure.cpu_us >= goal else 'missed'}" if goal else ""
        rows.append(
            f"| {figure.use} | {figure.queue} | {'on' if figure.metrics else 'off'} | {figure.cycles_s:,.0f} "
            f"| {figure.cpu_us:.2f} | {verdict} |"
        )
    return "\n" + "\n".join(rows) + "\n"


def publish(report: str) -> None:
    """Write the report between the marks of the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{report}\n{END}{after}")


if __name__ == "__main__":
    main()
