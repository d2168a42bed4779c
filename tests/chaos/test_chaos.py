"""Faults of the real kube-apiserver, with five informers and a writer.

`make test` runs each case once and briefly. `make chaos` runs each case long and several times, with client-go's
informers beside ours, and prints a table.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from .cases import Case
from .measuring import Outcome, run
from .world import Site

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.xdist_group("chaos"),
    pytest.mark.timeout(400),
]


@pytest.mark.asyncio(loop_factories=["asyncio"])  # which shows whether files are still open
async def test_informers_recover_from_each_fault(
    case: Case,
    repetition: int,
    site: Site,
    tmp_path: Path,
    outcomes: list[Outcome],
    with_client_go: bool,
) -> None:
    ours, *others = await run(case, site, tmp_path, with_client_go=with_client_go)
    outcomes += [ours, *others]
    assert ours.missed or not case.deletions
    assert max(ours.recovery.values()) < case.within, ours
    assert ours.requests_during + ours.requests_after <= case.requests, ours


def test_median_recovery_is_within_the_goal(outcomes: list[Outcome], with_client_go: bool) -> None:
    """Recovery takes 5 s in the median, whatever the fault, with no more requests than client-go's.

    Where all watches stay open, as while etcd is away, the recovery is the server's, and only requests count.
    """
    if not with_client_go or not outcomes:
        pytest.skip("there is nothing to compare with: make chaos")
    requests: defaultdict[str, int] = defaultdict(int)
    recovery: defaultdict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        requests[outcome.subject] += outcome.requests_during + outcome.requests_after
        is_server_late = not (
            outcome.requests_during or outcome.requests_after
        )  # the watches have stayed open
        if outcome.subject == "aioinformer" and not is_server_late:
            recovery[outcome.case] += outcome.recovery.values()
    assert {case: median(seconds) for case, seconds in recovery.items() if median(seconds) >= 5.0} == {}
    assert requests["aioinformer"] <= requests["client-go"]
