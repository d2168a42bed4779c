"""Webhook servers side by side: one validating function of pods, which decodes the pod and checks a field.

The load generator is a process of its own, on another core. It posts a review of a pod of 7 KB by HTTPS, again and
again, over connections that it keeps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import trustme

from tests.kubernetes.process import free_ports

from .building import Built
from .harness.cell import CLIENTS_CORE, SERVERS_CORE, Measured
from .harness.processes import end, start
from .harness.results import Figure, Results, Summary
from .pods import pod

PROGRAMS = ("controller-runtime-webhook", "webhook-load")
OURS = {
    f"webhook-{form}{suffix}": ["--form", form, "--loop", loop]
    for form in ("kubeobject", "struct", "model")
    for suffix, loop in (("", "asyncio"), ("-uvloop", "uvloop"))
}
"""Our servers: the form in which the function reads the pod, and the event loop."""
for share in ("1", "0.1"):
    OURS[f"webhook-kubeobject-observed-{share}"] = [*OURS["webhook-kubeobject"], f"--sampled={share}"]
PEER = "webhook-controller-runtime"
CONCURRENCY = (1, 50)
REQUESTS = {"quick": 2_000, "bench": 20_000, "full": 20_000}
COLUMNS = (("p50", "p50 µs"), ("p99", "p99 µs"), ("reviews_s", "reviews/s"), ("cpu_us", "CPU µs/review"))

_TICK = os.sysconf("SC_CLK_TCK")


def review() -> bytes:
    """Return the body of each request: the creation of a pod."""
    obj = {"apiVersion": "v1", "kind": "Pod", **pod(7)}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
    }
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return msgspec.json.encode(body)


def scenario(concurrency: int) -> str:
    return f"webhook-{concurrency}"


def measure(results: Results, built: Built, tier: str, rounds: int) -> None:
    """Measure each server in turn, round after round; cells that the results have are left out."""
    for number in range(rounds):
        for client in (*OURS, PEER):
            missing = [level for level in CONCURRENCY if not results.has(scenario(level), client, number)]
            reasons = [built.missing[program] for program in PROGRAMS if program in built.missing]
            if missing and reasons:
                for level in missing:
                    results.add(Measured(scenario(level), client, number, "missing", detail=reasons[0]))
            elif missing:
                for measured in measure_server(client, missing, number, built, REQUESTS[tier]):
                    results.add(measured)


def measure_server(
    client: str, concurrency: list[int], number: int, built: Built, requests: int
) -> Iterator[Measured]:
    """Start a server, and measure it with each number of connections after a warm-up."""
    load, body = built.programs["webhook-load"], review()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        made = authority.issue_cert("127.0.0.1")
        made.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
        made.private_key_pem.write_to_path(str(folder / "tls.key"))
        authority.cert_pem.write_to_path(str(folder / "ca.crt"))
        with _server(client, folder, built) as (url, pid):
            for level in concurrency:
                command = [load, f"-url={url}", f"-ca={folder / 'ca.crt'}", f"-concurrency={level}"]
                _post([*command, f"-requests={max(level, requests // 10)}"], body)
                before = _cpu(pid)
                loaded = _post([*command, f"-requests={requests}"], body)
                count = loaded["count"]
                values = {
                    "p50": loaded["p50"],
                    "p99": loaded["p99"],
                    "reviews_s": count / loaded["wall_s"],
                    "cpu_us": (_cpu(pid) - before) / count * 1e6,
                }
                yield Measured(scenario(level), client, number, "ok", values)


def table(summary: Summary) -> str:
    """Return a table for each number of connections; ``""`` if nothing was measured."""
    parts = []
    for concurrency in CONCURRENCY:
        cells = [cell for cell in summary.cells if cell.scenario == scenario(concurrency)]
        if not cells:
            continue
        heading = " | ".join(title for _, title in COLUMNS)
        rows = [
            f"### Webhooks: reviews of a pod of 7 KB, {concurrency} at the same time\n",
            f"| server | {heading} |",
            f"| --- |{' ---: |' * len(COLUMNS)}",
        ]
        for cell in cells:
            figures = " | ".join(_figure(cell.figures.get(name)) for name, _ in COLUMNS)
            rows.append(f"| {cell.client.removeprefix('webhook-')} | {figures} |")
        parts.append("\n".join(rows))
    return "\n" + "\n\n".join(parts) + "\n" if parts else ""


def _figure(figure: Figure | None) -> str:
    return "" if figure is None else f"{figure.median:,.0f}"


@contextmanager
def _server(client: str, folder: Path, built: Built) -> Iterator[tuple[str, int]]:
    """Run a server; its URL and process id."""
    if client == PEER:
        program = built.programs["controller-runtime-webhook"]
        command = [str(program), f"-certs={folder}", f"-port={free_ports(1)[0]}"]
    else:
        command = [sys.executable, "-m", "benchmarks.webhook_server", *OURS[client], "--certs", str(folder)]
    process = start(command, [CLIENTS_CORE])
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{client} ended with status {process.wait()}: {command}")
        yield json.loads(line)["url"], process.pid
    finally:
        end(process)


def _post(command: list[Any], body: bytes) -> dict[str, float]:
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, here & {SERVERS_CORE} or here)
    try:
        done = subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True)
    finally:
        os.sched_setaffinity(0, here)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, of user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK
