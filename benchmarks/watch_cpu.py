"""CPU per watch event, side by side in one run: ``python -m benchmarks.watch_cpu``.

Every round runs each peer once, in a process of its own, against one server; what counts is the ratio within a
round, so that a machine whose speed drifts changes nothing.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

from .peers import PEERS


def run_peer(name: str, url: str, events: int, loop: str) -> tuple[float, float]:
    """CPU and wall seconds of one peer."""
    command = [sys.executable, "-m", "benchmarks.peers", name, url, str(events), loop]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    cpu, wall = output.split()
    return float(cpu), float(wall)


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU per watch event of 6.6 KB pods, at full speed")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--pods", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio")
    options = parser.parse_args()

    command = [sys.executable, "-m", "benchmarks.stream_server", str(options.events), str(options.pods)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        rounds: list[dict[str, tuple[float, float]]] = []
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            rounds.append({name: run_peer(name, url, options.events, options.loop) for name in PEERS})
    finally:
        server.terminate()
        server.wait()

    baseline = "bare-orjson"
    print(f"{options.events} events, {options.pods} pods, {options.rounds} rounds, {options.loop}; medians")
    print(f"{'peer':<20}{'µs CPU/event':>14}{'events/s':>12}{'CPU, × ' + baseline:>22}{'min–max':>14}")
    for name in PEERS:
        cpu = statistics.median(each[name][0] for each in rounds) / options.events * 1e6
        rate = options.events / statistics.median(each[name][1] for each in rounds)
        ratios = [each[name][0] / each[baseline][0] for each in rounds]
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
        print(f"{name:<20}{cpu:>14.1f}{rate:>12,.0f}{statistics.median(ratios):>22.2f}{spread:>14}")


if __name__ == "__main__":
    main()
