"""Thousands of simulated informers, each in its own storm."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from .campaign import explore
from .informers import history_of
from .settings import QUEUES, setting

PORTIONS = [range(begin, begin + 250) for begin in range(0, 2000, 250)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Ignore the logged errors of failing handlers, which are part of the histories."""
    logger = logging.getLogger("aioinformer")
    logger.propagate = False
    yield
    logger.propagate = True


@pytest.mark.parametrize("seeds", PORTIONS, ids=lambda seeds: str(seeds.start))
def test_informer_histories_are_correct(seeds: range) -> None:
    tally = explore(seeds)
    assert not tally.failures, "replay one by: make simulate SEED=…"


def test_settings_cover_all_options() -> None:
    settings = [setting(seed) for seed in range(500)]
    assert {drawn.queue for drawn in settings} == set(QUEUES)
    assert {drawn.options["use_watch_list"] for drawn in settings} == {None, True, False}
    assert {len(drawn.namespaces) for drawn in settings} == {0, 1, 2}
    assert {bool(drawn.resync) for drawn in settings} == {True, False}
    assert {len(drawn.handlers) for drawn in settings} == {1, 2, 3}
    assert {drawn.cancelled is None for drawn in settings} == {True, False}


def test_history_is_reproducible() -> None:
    for seed in range(50):
        assert history_of(seed).history.text() == history_of(seed).history.text()


def test_history_is_reproducible_in_another_process() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "tests.testing.simulation.campaign", "--seed", "11"],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.rstrip("\n") == history_of(11).history.text()
