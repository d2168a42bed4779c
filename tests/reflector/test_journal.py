"""reflector/stats.py: what a reflector has met with."""

from __future__ import annotations

from aioinformer import ApiError
from aioinformer.reflector.stats import ReflectorStats


async def test_reasons_that_only_this_server_has_are_one_kind_of_error() -> None:
    """A server that makes up a reason for each answer would fill the memory, and the log."""
    journal = ReflectorStats("pods")
    made_up = [journal.failed(ApiError(418, f"Reason{number}")) for number in range(3)]
    assert made_up == [True, False, False]
    assert journal.failed(ApiError(403, "Forbidden"))
    assert journal.failed(ApiError(403, "Unauthorized"))
    assert not journal.failed(ApiError(403, "Forbidden"))
