"""Backoff: how long to wait before the next attempt."""

from random import Random

import pytest

from aioinformer.reflector import Backoff


class FixedRandom(Random):
    """Always the same fraction."""

    def __init__(self, fraction: float) -> None:
        super().__init__()
        self.fraction = fraction

    def random(self) -> float:
        return self.fraction


@pytest.fixture(autouse=True)
def known_delays() -> None:
    """The package's delays."""


def test_delays_double_from_0_8_to_30() -> None:
    """Upstream's constants: initial 0.8 s, factor 2, cap 30 s."""
    backoff = Backoff(FixedRandom(0.0))
    assert [round(backoff.next(), 3) for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_jitter_adds_at_most_the_delay_itself() -> None:
    backoff = Backoff(FixedRandom(0.5))
    assert [backoff.next() for _ in range(3)] == pytest.approx([1.2, 2.4, 4.8])


@pytest.mark.parametrize("seed", range(20))
def test_the_cap_holds_with_the_jitter(seed: int) -> None:
    """Difference from upstream: 30 s caps the delay with its jitter, there it is up to 60 s."""
    backoff = Backoff(Random(seed))
    delays = [backoff.next() for _ in range(50)]
    assert max(delays) == Backoff.CAP
    assert all(Backoff.INITIAL <= delay <= Backoff.CAP for delay in delays)


def test_long_outage_does_not_reset_the_backoff() -> None:
    """W1: upstream falls back to 0.8 s every two minutes of an outage."""
    backoff = Backoff(FixedRandom(0.0))
    delays = [backoff.next() for _ in range(100)]
    assert delays[6:] == [30.0] * 94


def test_reset_makes_the_next_delay_the_shortest() -> None:
    backoff = Backoff(FixedRandom(0.0))
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() == 0.8


def test_retry_after_overrides_the_cap() -> None:
    backoff = Backoff(FixedRandom(0.0))
    assert backoff.next(at_least=5) == 5
    assert backoff.next(at_least=90) == 90
    assert backoff.next() == 3.2
