"""Each failure of the table in docs/failures.md is visible where the table says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.conftest import REAL

from .injected import FAILURES, Failure
from .installed import REPLICAS, Finding, Installed, Sign
from .releases import first

pytestmark = [*REAL, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"
PATIENCE = 90.0


class Row(NamedTuple):
    """What the table says about a failure."""

    signs: set[str]
    alerts: set[str]
    checks: set[str]


def read_table() -> dict[str, Row]:
    """Return the rows of the page by the failure's name."""
    rows = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if (
            line.startswith("| ")
            and len(cells) == 5
            and cells[0].lower() in {f.name.lower() for f in FAILURES}
        ):
            name, signs, alerts, checks, _ = cells
            rows[name.lower()] = Row(
                {*re.findall(r"`([^`]+)`", signs)},
                {*re.findall(r"`(\w+)`", alerts)},
                {*re.findall(r"`(\w+)`", checks)},
            )
    return rows


def test_the_table_has_every_failure_with_a_sign_an_alert_and_a_check() -> None:
    rows = read_table()
    assert rows.keys() == {failure.name.lower() for failure in FAILURES}
    assert [name for name, row in rows.items() if not all(row)] == []


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
async def test_a_failure_is_visible(
    failure: Failure, release: Installed, promtool: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not failure.is_short and not request.config.getoption("--failures"):
        pytest.skip("make failures injects it")
    expected = read_table()[failure.name.lower()]
    await release.install(first.operator, "tests.failures.releases.first:operator")
    if failure.before is not None:
        await failure.before(release)
    for _ in range(REPLICAS):
        await release.start_pod()
    await release.find_leader()
    await release.until_created("home")
    await release.until_ready("home")
    before = set[Sign]() if failure.before else await release.snapshot()
    usual = set[Finding]() if failure.before else await release.examine()
    async with release.scrapes.running(release.pods):
        await failure.inject(release)
        signs = set[str]()
        try:
            async with asyncio.timeout(PATIENCE):
                while not expected.signs <= signs:
                    signs |= {sign.name for sign in await release.snapshot() - before}
                    await asyncio.sleep(1)
        except TimeoutError:
            logs = "\n".join(pod.log[-3000:] for pod in release.pods)
            pytest.fail(f"{failure.name}: only {signs}\n{logs}")
        findings = (release.found_meanwhile | await release.examine()) - usual
        await asyncio.sleep(12)  # the scrapes that go on in promtool
    firing = await asyncio.to_thread(release.scrapes.find_firing, promtool, tmp_path)
    print(f"| {failure.name} | {sorted(signs)} | {sorted(firing)} | {sorted(findings)} |")  # noqa: T201
    assert firing == expected.alerts
    assert expected.checks <= {finding.check for finding in findings}
    check, words = failure.finding
    assert [finding for finding in findings if finding.check == check and words in finding.what], findings
