"""The page with the results, docs/conformance.md, and the list of known differences for the short run."""

from __future__ import annotations

import difflib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.kubernetes.binaries import VERSION

from . import kubectl, requests
from .reasons import SOMETIMES, reason_of
from .results import DIFFERS, SAME, WORDS, Case, Results
from .suites import MODULE, SUITES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"
KNOWN = Path(__file__).parent / "known.json"
CELL = 110
"""The longest text in a table."""
CAUSES = 100
"""How many differences of random requests the page shows."""

BEGIN, END = "<!-- make conformance -->\n", "<!-- end -->\n"


def write(results: Results) -> None:
    """Write the page and the list of known differences."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    generated = "\n".join([*_head(results), *_totals(results.cases), *_differences(results.cases)])
    PAGE.write_text(f"{head}{BEGIN}\n{generated}\n{END}{rest.partition(END)[2]}")
    known = {
        part: sorted({identity_of(case) for case in cases if case.outcome == DIFFERS})
        for part, cases in _by_part(results.cases)
    }
    known[kubectl.PART] = sorted({*known.get(kubectl.PART, ()), *SOMETIMES})
    KNOWN.write_text(json.dumps(known, indent=1) + "\n")


def identity_of(case: Case) -> str:
    """Return what identifies a difference: of random requests the sequence, which ends with it."""
    return case.name.split()[0] if case.part == requests.PART else case.name


def _by_part(cases: Iterable[Case]) -> list[tuple[str, list[Case]]]:
    parts: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        parts[case.part].append(case)
    order = [*(suite.name for suite in SUITES), kubectl.PART, requests.PART]
    return [(part, parts[part]) for part in order if part in parts]


def _head(results: Results) -> Iterator[str]:
    commands = sum(case.part == kubectl.PART for case in results.cases)
    seeds = {case.name.partition(".")[0] for case in results.cases if case.part == requests.PART}
    minutes = max(1, round(sum(results.seconds.values()) / 60))
    yield (
        f"{results.when}, {minutes} minutes: kube-apiserver and kubectl {VERSION}, {MODULE.replace('@', ' ')}, "
        f"{commands} kubectl commands, random requests out of {len(seeds)} seeds.\n"
    )


def _totals(cases: Sequence[Case]) -> Iterator[str]:
    yield "| part | area | same | other words | differs | of | same |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for part, cases_of_part in _by_part(cases):
        areas: defaultdict[str, list[Case]] = defaultdict(list)
        for case in cases_of_part:
            areas[case.area].append(case)
        if len(areas) > 1:
            for area, within in areas.items():
                yield _total(part, area, within)
        yield _total(f"**{part}**", "all", cases_of_part)
    yield ""


def _total(part: str, area: str, cases: Sequence[Case]) -> str:
    outcomes = Counter(case.outcome for case in cases)
    share = 100 * outcomes[SAME] / len(cases)
    counts = " | ".join(str(outcomes[outcome]) for outcome in (SAME, WORDS, DIFFERS))
    return f"| {part} | {area} | {counts} | {len(cases)} | {share:.1f} % |"


def _differences(cases: Sequence[Case]) -> Iterator[str]:
    yield "## Remaining differences\n"
    for part, cases_of_part in _by_part(cases):
        differing = [case for case in cases_of_part if not case.same]
        if not differing:
            continue
        yield f"### {part}\n"
        yield from _requests(differing) if part == requests.PART else _list_cases(differing)
        yield ""


def _list_cases(cases: Sequence[Case]) -> Iterator[str]:
    yield "| case | difference | embedded | real | why |"
    yield "| --- | --- | --- | --- | --- |"
    for case in cases:
        ours, real = _first_lines(case.ours, case.real)
        cells = case.name, case.cause, ours, real, reason_of(case)
        yield f"| {' | '.join(_cell(text, code=number in (0, 2, 3)) for number, text in enumerate(cells))} |"


def _requests(cases: Sequence[Case]) -> Iterator[str]:
    """Differences of random requests by kind and cause, the most frequent first, each with an example."""
    causes: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        causes[case.name.split()[1].rstrip(":"), case.cause].append(case)
    yield "| kind | difference | requests | for example | embedded | real | why |"
    yield "| --- | --- | ---: | --- | --- | --- | --- |"
    ordered = sorted(causes.items(), key=lambda cause_and_cases: -len(cause_and_cases[1]))
    for (kind, cause), cases_of_cause in ordered[:CAUSES]:
        example = cases_of_cause[0]
        cells = example.name, example.ours, example.real
        shown = " | ".join(_cell(text, code=True) for text in cells)
        yield f"| {kind} | {_cell(cause)} | {len(cases_of_cause)} | {shown} | {_cell(reason_of(example))} |"
    if len(ordered) > CAUSES:
        rest = sum(len(cases_of_cause) for _, cases_of_cause in ordered[CAUSES:])
        yield f"\n{rest} requests have {len(ordered) - CAUSES} further differences."


def _first_lines(ours: str, real: str) -> tuple[str, str]:
    """Return the first lines that two texts do not share."""
    lines = [line for line in difflib.ndiff(ours.splitlines(), real.splitlines()) if line[:2] in ("- ", "+ ")]
    mine = [line[2:].strip() for line in lines if line.startswith("- ")]
    other = [line[2:].strip() for line in lines if line.startswith("+ ")]
    return " ".join(mine[:3]), " ".join(other[:3])


def _cell(text: str, *, code: bool = False) -> str:
    short = " ".join(text.split())
    short = short if len(short) <= CELL else short[: CELL - 1] + "…"
    short = short.replace("|", "\\|")
    return f"`` {short} ``" if code and short else short
