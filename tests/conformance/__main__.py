"""Run all parts and write docs/conformance.md: ``python -m tests.conformance``."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence

from tests.go_build import report_to_stderr
from tests.kubernetes.binaries import ensure_binaries

from . import kubectl, page, requests, results
from .results import Case
from .servers import embedded, real
from .suites import SUITES, run_suite


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parts = (*(suite.name for suite in SUITES), kubectl.PART, requests.PART)
    parser.add_argument(
        "--only", default="", help=f"run the parts with this in their names: {', '.join(parts)}"
    )
    parser.add_argument(
        "--areas", nargs="*", choices=kubectl.AREAS, default=kubectl.AREAS, help="areas of kubectl commands"
    )
    parser.add_argument(
        "--seeds", type=int, default=requests.SEEDS, help="number of seeds of random requests"
    )
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if not options.page:
        asyncio.run(run(options))
    page.write(results.load())


async def run(options: argparse.Namespace) -> None:
    """Run the parts, and keep what each of them finds as soon as it has ended."""
    work = [(suite.name, run_suite(suite, report_to_stderr)) for suite in SUITES]
    work += [(kubectl.PART, run_kubectl(options.areas)), (requests.PART, run_requests(options.seeds))]
    kept = results.load()
    for part, running in work:
        if options.only not in part:
            running.close()
            continue
        began = time.monotonic()
        cases = await running
        kept.replace(part, cases, time.monotonic() - began)
        results.save(kept)


async def run_kubectl(areas: Sequence[str]) -> list[Case]:
    binary = ensure_binaries() / "kubectl"
    async with embedded(controllers=True) as ours, real(controllers=True) as theirs:
        return await kubectl.run_areas(binary, (ours, theirs), report_to_stderr, areas)


async def run_requests(seeds: int) -> list[Case]:
    async with embedded(controllers=False) as ours, real(controllers=False) as theirs:
        return await requests.run_seeds(ours, theirs, range(seeds), report_to_stderr)


if __name__ == "__main__":
    main()
