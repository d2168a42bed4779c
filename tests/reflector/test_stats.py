"""ReflectorStats: what counts as a new error."""

from __future__ import annotations

from aioinformer import ApiError
from aioinformer.reflector.stats import ReflectorStats


async def test_unknown_reasons_count_as_the_same_error() -> None:
    """A server that invents a reason for each answer would fill the memory and the log."""
    stats = ReflectorStats("pods")
    made_up = [stats.record_failure(ApiError(418, f"Reason{number}")) for number in range(3)]
    assert made_up == [True, False, False]
    assert stats.record_failure(ApiError(403, "Forbidden"))
    assert stats.record_failure(ApiError(403, "Unauthorized"))
    assert not stats.record_failure(ApiError(403, "Forbidden"))
