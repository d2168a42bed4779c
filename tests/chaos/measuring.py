"""Run one case, measure the recovery of each subject, and format the table."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .cases import Case
from .subjects import Ours, Subject
from .world import MAKE, Site, World, chaos_world, run_readers, run_writer

PATIENCE = 120.0
"""Seconds in which every subject has to recover; client-go's too."""

AGREEING = 20.0
"""Seconds in which every subject has to know the final state after the last write."""


@dataclass(frozen=True)
class Outcome:
    """The result of a case for one subject.

    Attributes:
        case: The case's name.
        subject: The subject's name.
        recovery: For each collection, seconds from the end of the fault until a later change is known.
        requests_during: Requests during the fault.
        requests_after: Requests from then on until the recovery.
        missed: Deletions that it found by listing.
    """

    case: str
    subject: str
    recovery: dict[str, float]
    requests_during: int
    requests_after: int
    missed: int


async def run(case: Case, site: Site, folder: Path, *, with_client_go: bool) -> list[Outcome]:
    """Run a case; return the outcome for each subject.

    Raises:
        AssertionError: A subject has not recovered, or differs from the server.
    """
    async with chaos_world(site, folder) as made:
        if case.prepare is not None:
            await case.prepare(made)
        async with run_readers(made, proxied=case.proxied, with_client_go=with_client_go):
            loop = asyncio.get_running_loop()
            async with run_writer(made):
                await asyncio.sleep(0.5)
                began = loop.time()
                await case.trouble(made)
                ready = loop.time()
                await made.mark("mark")
                outcomes = await asyncio.gather(
                    *(_wait_recovered(case, made, subject, began, ready) for subject in made.subjects)
                )
            await _agree(made)
        return outcomes


async def _wait_recovered(case: Case, made: World, subject: Subject, began: float, ready: float) -> Outcome:
    mark = f"{made.namespace}/mark"

    async def one(resource: str) -> float:
        try:
            return await subject.until(lambda: mark in subject.shadows[resource], PATIENCE) - ready
        except TimeoutError:
            states = subject.states() if isinstance(subject, Ours) else ""
            raise AssertionError(f"{subject.name} is not back with its {resource}: {states}") from None

    names = [resource.plural for resource in MAKE]
    recovery = dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
    times = [request.time for request in subject.requests]
    return Outcome(
        case.name,
        subject.name,
        recovery,
        sum(began <= time < ready for time in times),
        sum(time >= ready for time in times),
        sum(subject.missed.values()),
    )


async def _agree(made: World) -> None:
    """Check that handlers, caches and the server agree, and that no handler got calls that contradict each other."""
    wanted = await made.server_side()
    for subject in made.subjects:
        try:
            await subject.until(lambda subject=subject: subject.shadows == wanted, AGREEING)  # type: ignore[misc]
        except TimeoutError:
            assert subject.shadows == wanted, subject.name
        assert await subject.caches() == wanted, subject.name
        assert not subject.illegal, (subject.name, subject.illegal)


def table(outcomes: Iterable[Outcome]) -> list[str]:
    """Return rows of Markdown: for each case and subject the median and slowest recovery, and requests."""
    by_case: defaultdict[str, defaultdict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        by_case[outcome.case][outcome.subject].append(outcome)
    subjects = list(dict.fromkeys(name for case in by_case.values() for name in case))
    heads = [f"{name} {what}" for name in subjects for what in ("median", "slowest", "requests")]
    rows = [["case", *heads]]
    for case, by_subject in by_case.items():
        row = [case]
        for name in subjects:
            row += _cells(by_subject[name])
        rows.append(row)
    totals = ["all"]
    for name in subjects:
        totals += _cells([outcome for by_subject in by_case.values() for outcome in by_subject[name]])
    rows.append(totals)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    if not outcomes:
        return ["", "", ""]
    times = [seconds for outcome in outcomes for seconds in outcome.recovery.values()]
    during = sum(outcome.requests_during for outcome in outcomes) / len(outcomes)
    after = sum(outcome.requests_after for outcome in outcomes) / len(outcomes)
    return [f"{median(times):.1f} s", f"{max(times):.1f} s", f"{during:.0f} + {after:.0f}"]
