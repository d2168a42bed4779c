"""Measure a web service while it reads a cluster: ``python -m benchmarks.web [--rounds N] [--publish]``.

The same FastAPI service without a library, with aioinformer, with kubernetes_asyncio's watch and with kopf, in turn:
the latency of its requests while 50,000 pods are read, and while 1,000 of them change each second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from ..building import BUILDS, FOLDER, build
from ..harness.cell import CLIENTS_CORE, SERVERS_CORE, Measured
from ..harness.plots import Plot, draw
from ..harness.processes import ReplayServer, end, start
from ..harness.results import Cell, Results, Summary, summarize
from ..harness.run import SERVER, machine, templates
from .service import READERS

PAGE = FOLDER.parent / "docs" / "web.md"
BEGIN, END = "<!-- the last run -->\n", "<!-- end of the last run -->\n"
SCENARIO = "web"
PODS, RATE = 50_000, 1000
QUIET, EVENTS = 8.0, 10.0
"""Seconds of the phases without and with events."""
MOST_SYNC = 60.0
"""Seconds after which a sync that has not ended is no longer measured."""
CONNECTIONS = 10
GOAL = 1.3
PHASES = {"quiet": "without reading", "sync": "50,000 pods are read", "events": "1,000 events a second"}
PLOTS = (
    Plot("sync", "p99 of requests while 50,000 pods are read", SCENARIO, "sync.p99", "ms"),
    Plot("events", "p99 of requests with 1,000 events a second", SCENARIO, "events.p99", "ms"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a web service while it reads a cluster")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", default="", help="one of the libraries; the service without any is measured, too"
    )
    parser.add_argument("--report", action="store_true", help="only write the report again")
    parser.add_argument("--publish", action="store_true", help="also write docs/web.md and its plots")
    options = parser.parse_args()
    console = Console()
    path = BUILDS / "runs" / "web.jsonl"
    results = (
        Results.load(path)
        if options.report
        else Results.begin(path, machine("bench", f"Load average before: {os.getloadavg()[0]:.1f}."))
    )
    if not options.report:
        libraries = [library for library in READERS if options.only in ("", library) or library == "none"]
        measure(results, libraries, options.rounds, console)
    summary = summarize(results)
    console.print(Markdown(table(summary)))
    if options.publish:
        drawn = draw(summary, PAGE.parent / PAGE.stem, PLOTS)
        plots = "\n".join(f"![{title}]({PAGE.stem}/{name})\n" for title, name in drawn.items())
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(summary)}\n{plots}\n{END}{rest.partition(END)[2]}")


def measure(results: Results, libraries: list[str], rounds: int, console: Console) -> None:
    """Measure each library in turn, round after round."""
    built = build([SERVER])
    if SERVER in built.missing:
        raise SystemExit(f"the replay server cannot be built: {built.missing[SERVER]}")
    ca = BUILDS / "runs" / "web-ca.pem"
    # The load has to measure on time, although the server is busy on the same core.
    server = ReplayServer(built.programs[SERVER], templates("bench"), ca, [SERVERS_CORE], nice=19)
    with server:
        for number in range(rounds):
            first = number % len(libraries)
            for library in libraries[first:] + libraries[:first]:
                measured = measure_service(server, library, number)
                results.add(measured)
                figures = "  ".join(f"{name} {value:,.2f}" for name, value in measured.values.items())
                console.print(f"{library:<20} {measured.status} {measured.detail} {figures}", markup=False)


def measure_service(server: ReplayServer, library: str, number: int) -> Measured:
    """Measure one service in all phases."""
    server.configure(PODS)
    versions = {"none": f"fastapi {version('fastapi')}, uvicorn {version('uvicorn')}"}
    measured = Measured(SCENARIO, library, number, "ok")
    measured.version = versions.get(library) or f"{library} {version(library)}"
    with service_of(library, server.http) as url, load_on(url) as load:
        time.sleep(2)
        measure_phase(measured, "quiet", load, lambda: time.sleep(QUIET))
        if library == "none":
            measured.values |= {
                name.replace("quiet", phase): value
                for name, value in list(measured.values.items())
                for phase in ("sync", "events")
            }
            return measured
        measure_phase(measured, "sync", load, lambda: sync(url, measured))
        if measured.status == "ok":
            time.sleep(2)
            before = ask(url, "state")["events"]
            measure_phase(measured, "events", load, lambda: server.flow(int(RATE * EVENTS), RATE, 1))
            time.sleep(1)
            if (missing := RATE * EVENTS - (ask(url, "state")["events"] - before)) > 0:
                measured.detail = f"{missing:,.0f} of the events were not handled after a second"
    return measured


def measure_phase(measured: Measured, phase: str, load: subprocess.Popen[bytes], run: Any) -> None:
    """Record the latencies of the requests while something runs."""
    assert load.stdin is not None
    assert load.stdout is not None
    load.stdin.write(b"begin\n")
    run()
    load.stdin.write(b"end\n")
    answer: dict[str, float] = json.loads(load.stdout.readline())
    measured.values |= {f"{phase}.{name}": value for name, value in answer.items() if name.startswith("p")}
    measured.values[f"{phase}.requests_s"] = answer["count"] / answer["seconds"]


def sync(url: str, measured: Measured) -> None:
    """Start reading, and wait until all pods were handled."""
    began = time.monotonic()
    ask(url, "start", method="POST")
    while (objects := ask(url, "state")["objects"]) < PODS:
        if time.monotonic() - began > MOST_SYNC:
            measured.status, measured.detail = "saturated", f"{objects:,} pods were read after a minute"
            break
        time.sleep(0.05)
    measured.values["sync.s"] = time.monotonic() - began


@contextmanager
def service_of(library: str, server: str) -> Iterator[str]:
    """Run the service; its URL."""
    process = start([sys.executable, "-m", "benchmarks.web.service", library, server], [CLIENTS_CORE])
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        end(process)


@contextmanager
def load_on(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Send requests to a service meanwhile."""
    port = url.rpartition(":")[2]
    process = start([sys.executable, "-m", "benchmarks.web.load", port, str(CONNECTIONS)], [SERVERS_CORE])
    try:
        yield process
    finally:
        end(process)


def ask(url: str, path: str, *, method: str = "GET") -> dict[str, int]:
    """Send a request of the harness."""
    with urllib.request.urlopen(urllib.request.Request(f"{url}/{path}", method=method), timeout=60) as answer:
        body: dict[str, int] = json.load(answer)
    return body


def table(summary: Summary) -> str:
    """Return the report as Markdown."""
    ran = summary.machine
    cells = {cell.client: cell for cell in summary.cells}
    rows = [
        f"{ran.began}: {ran.cores} cores of {ran.processor}, Python {ran.python}. {ran.note} Medians of the rounds; in "
        f"brackets the ratio to the service without a library. The goal for aioinformer is at most {GOAL} ×.",
        "",
        f"| p99 of requests | {' | '.join(PHASES.values())} | seconds of reading | requests/s meanwhile |",
        f"| --- |{' ---: |' * (len(PHASES) + 2)}",
    ]
    base = cells.get("none")
    for cell in summary.cells:
        figures = " | ".join(_figure(cell, f"{phase}.p99", base) for phase in PHASES)
        took, rate = (cell.figures.get(name) for name in ("sync.s", "sync.requests_s"))
        seconds = "" if took is None else f"{took.median:.1f}"
        rows.append(
            f"| {'no library' if cell.client == 'none' else cell.version} | {figures} | {seconds} "
            f"| {'' if rate is None else f'{rate.median:,.0f}'} |"
        )
    notes = [f"- {cell.version}: {cell.detail}" for cell in summary.cells if cell.detail]
    return "\n".join([*rows, *(["", *notes] if notes else [])]) + "\n"


def _figure(cell: Cell, name: str, base: Cell | None) -> str:
    figure = cell.figures.get(name)
    if figure is None:
        return ""
    text = f"{figure.median:.2f} ms"
    if base is None or base is cell:
        return text
    return f"{text} ({figure.median / base.figures[name].median:.2f} ×)"


if __name__ == "__main__":
    main()
