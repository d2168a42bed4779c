"""The next step after a watch has ended or could not be opened."""

from __future__ import annotations

import pytest

from aioinformer.errors import ApiError, DamagedError, IdleTimeoutError, TransportError
from aioinformer.reflector import Backoff
from aioinformer.reflector.next_step import (
    InternalErrorRetries,
    Next,
    Relists,
    ShortWatchBudget,
    after_end,
    after_failed_start,
)

from .scripted import expired_error, too_many_requests

INTERNAL = ApiError(500, "InternalError", "etcd is away")


class TestAfterFailedStart:
    @pytest.mark.parametrize(
        "error", [too_many_requests(), TransportError("refused"), IdleTimeoutError("silent")]
    )
    def test_overload_and_refusal_say_nothing_about_the_version(self, error: Exception) -> None:
        """C70: watch again, no relist."""
        assert after_failed_start(error) is Next.BACK_OFF_AND_REWATCH

    @pytest.mark.parametrize(
        "error", [expired_error(), ApiError(403, "Forbidden"), INTERNAL, ValueError("anything")]
    )
    def test_other_errors_at_the_start_relist(self, error: Exception) -> None:
        """C73: a 410 at the start is an error of list_and_watch."""
        assert after_failed_start(error) is Next.RELIST


class TestAfterEnd:
    def after(
        self,
        error: Exception | None,
        lived: float = 300.0,
        events: int = 10,
        healthy: bool = True,
        retry_internal_error: bool = False,
        budget: ShortWatchBudget | None = None,
    ) -> Next:
        return after_end(
            error,
            lived,
            events,
            healthy=healthy,
            retry_internal_error=retry_internal_error,
            budget=budget or ShortWatchBudget(),
        )

    def test_ordinary_end_watches_again_at_once(self) -> None:
        assert self.after(None) is Next.REWATCH

    def test_cut_of_a_healthy_watch_watches_again_at_once(self) -> None:
        assert self.after(TransportError("reset by peer")) is Next.REWATCH

    def test_very_short_empty_watch_relists(self) -> None:
        """C74: less than a second, no event: VeryShortWatchError upstream."""
        assert self.after(None, lived=0.99, events=0, healthy=False) is Next.RELIST
        assert self.after(TransportError("cut"), lived=0.5, events=0, healthy=False) is Next.RELIST

    def test_a_short_watch_with_events_is_opened_again_at_once(self) -> None:
        assert self.after(None, lived=0.1, events=1, healthy=False) is Next.REWATCH
        assert self.after(TransportError("cut"), lived=0.1, events=1, healthy=False) is Next.REWATCH

    def test_silent_watch_of_a_second_is_opened_again_at_once(self) -> None:
        """Upstream's rule, too."""
        assert self.after(None, lived=1.0, events=0, healthy=False) is Next.REWATCH
        assert self.after(TransportError("cut"), lived=1.0, events=0, healthy=False) is Next.REWATCH

    def test_damaged_watch_backs_off(self) -> None:
        damaged = DamagedError("a bit was turned")
        assert self.after(damaged, lived=4.9, events=9, healthy=False) is Next.BACK_OFF_AND_REWATCH

    def test_short_watches_do_not_spin(self) -> None:
        """W3: upstream re-watches 300,000 times a second against a server that closes after one event."""
        budget = ShortWatchBudget()
        steps = [self.after(None, lived=0.01, events=1, healthy=False, budget=budget) for _ in range(20)]
        assert steps == [Next.REWATCH] * 5 + [Next.BACK_OFF_AND_REWATCH] * 15
        assert self.after(None, lived=60, events=1, budget=budget) is Next.REWATCH
        assert self.after(None, lived=0.01, events=1, healthy=False, budget=budget) is Next.REWATCH

    def test_expiry_relists(self) -> None:
        """C72."""
        assert self.after(expired_error()) is Next.RELIST
        assert self.after(ApiError(410, "Gone")) is Next.RELIST

    def test_429_in_the_stream_backs_off(self) -> None:
        assert self.after(too_many_requests()) is Next.BACK_OFF_AND_REWATCH

    def test_internal_errors_are_retried_only_with_the_option(self) -> None:
        """C71."""
        assert self.after(INTERNAL) is Next.RELIST
        assert self.after(INTERNAL, retry_internal_error=True) is Next.BACK_OFF_AND_REWATCH

    def test_failed_store_relists(self) -> None:
        assert self.after(ValueError("the store")) is Next.RELIST


class TestShortWatchBudget:
    def test_each_reopening_costs_a_second(self) -> None:
        budget = ShortWatchBudget()
        assert all(budget.take(1.0) for _ in range(100))
        assert [budget.take(0.5) for _ in range(14)] == [True] * 8 + [False, True] * 3


class TestInternalErrorRetries:
    def test_off_by_default(self) -> None:
        """C71: 0 means no retries."""
        assert not InternalErrorRetries(0).allow(1.0)

    def test_thirty_seconds_at_one_second_steps_are_31(self) -> None:
        """C71."""
        retries = InternalErrorRetries(30)
        assert [retries.allow(100.0 + second) for second in range(33)] == [True] * 31 + [False] * 2

    def test_quiet_minute_restarts_the_time(self) -> None:
        retries = InternalErrorRetries(30)
        assert retries.allow(0.0)
        assert not retries.allow(31.0)
        assert retries.allow(91.0)

    def test_errors_without_a_quiet_minute_do_not_restart_the_time(self) -> None:
        retries = InternalErrorRetries(30)
        assert [retries.allow(50.0 * n) for n in range(4)] == [True, False, False, False]


class TestRelists:
    def at_once(self, relists: Relists, error: Exception | None, now: float, is_first: bool = False) -> bool:
        relists.watch_ended(error, now, is_first=is_first)
        return relists.take_at_once()

    def test_expired_later_watch_is_followed_by_a_list_at_once(self) -> None:
        relists = Relists(300.0)
        assert not relists.take_at_once()
        assert not self.at_once(relists, expired_error(), 5.0, is_first=True)
        assert not self.at_once(relists, TransportError("cut"), 5.0)
        assert not self.at_once(relists, None, 5.0)
        assert self.at_once(relists, expired_error(), 5.0)
        assert not relists.take_at_once(), "of two lists only the first"
        assert not self.at_once(relists, expired_error(), 5.0 + Backoff.CAP - 1)
        assert self.at_once(relists, expired_error(), 5.0 + Backoff.CAP)

    def test_list_makes_up_for_unreadable_events_after_an_interval(self) -> None:
        relists = Relists(300.0)
        has_listed = [relists.has_listed]
        relists.record_list(0.0)
        assert [*has_listed, relists.has_listed] == [False, True]
        assert not relists.may_make_up(299.0)
        assert relists.may_make_up(300.0)
