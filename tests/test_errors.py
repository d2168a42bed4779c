"""errors.py: one tree of errors, and their messages."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from aioinformer import errors
from aioinformer.errors import (
    LONGEST_RETRY_AFTER,
    AioInformerError,
    ApiError,
    CacheMutatedError,
    ConfigError,
    IndexFuncError,
    KeyFuncError,
    LeadershipLostError,
    NotFoundError,
    ObjectNotFoundError,
    RejectedObjectError,
    RequeueError,
    SyncTimeout,
    TransformError,
    UnknownIndexError,
    message_of,
)

CAUSE = ValueError("why")

SAMPLES: list[AioInformerError] = [
    ApiError(410, "Expired", "too old", {"kind": "pods"}),
    ObjectNotFoundError(404, "NotFound", "no such pod", {"name": "a"}),
    LeadershipLostError("ns/lease", "me", "another replica holds it"),
    KeyFuncError({"no": "name"}, None),
    TransformError("ns/a", "5", CAUSE),
    IndexFuncError("by-node", "ns/a", CAUSE),
    RequeueError(CAUSE),
    UnknownIndexError("by-node", ["b", "a"]),
    NotFoundError("ns/a", "pods"),
    CacheMutatedError("cache", "ns/a", {"a": 1}, {"a": 2}),
    SyncTimeout("still waiting"),
]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_docstring_tree_has_every_error() -> None:
    assert errors.__doc__ is not None
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, AioInformerError)
        assert name in errors.__doc__


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "again", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))], ids=["copy", "pickle"]
)
def test_error_survives_copy_and_pickle(error: AioInformerError, again: Any) -> None:
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)


def test_messages_name_object_and_cause() -> None:
    assert str(SAMPLES[0]) == "410 Expired: too old"
    assert str(TransformError("ns/a", "", CAUSE)) == (
        "transforming ns/a at no version failed: ValueError('why')"
    )
    assert str(IndexFuncError("by-node", "ns/a", CAUSE, "5")) == (
        "index 'by-node' failed on ns/a at 5: ValueError('why')"
    )
    assert str(UnknownIndexError("x", ["b", "a"])) == "no index named 'x'; there are: a, b"
    assert str(UnknownIndexError("x")) == "no index named 'x'; there are: none"
    assert str(NotFoundError("ns/a", "pods")) == "pods 'ns/a' not found"


def test_message_is_short_and_never_raises() -> None:
    assert len(str(KeyFuncError("x" * 10_000_000, CAUSE))) < 200
    assert str(KeyFuncError(Unprintable(), CAUSE)) == "no key for Unprintable <Unprintable>: why"
    assert "<Unprintable>" in str(CacheMutatedError("cache", "a", Unprintable(), Unprintable()))


def test_sync_timeout_is_a_timeout_error() -> None:
    with pytest.raises(TimeoutError):
        raise SyncTimeout("still waiting")


class TestApiError:
    def test_message_starts_with_the_context(self) -> None:
        error = ApiError(403)
        error.context = "list pods"
        assert str(error) == "list pods: 403 Unknown: no message"

    @pytest.mark.parametrize(
        "status", [{}, {"code": "403", "reason": None, "message": None, "details": "x"}, {"details": [1]}]
    )
    def test_from_status_ignores_mistyped_parts(self, status: dict[str, Any]) -> None:
        error = ApiError.from_status(status)
        assert (error.status, error.reason, error.message, error.details) == (0, "", "", {})
        assert not error.is_expired
        assert not error.is_internal_error
        assert str(error) == "Unknown: no message"
        assert error.retry_after is None

    def test_copies_the_details(self) -> None:
        details = {"kind": "pods"}
        ApiError(404, details=details).details["kind"] = "x"
        assert details == {"kind": "pods"}

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (ApiError(410, "Expired"), True),
            (ApiError(410, "Gone"), True),
            (ApiError(200, "Expired"), True),
            (ApiError(410), True),
            (ApiError(410, "NotFound"), False),
            (ApiError(410, "OfAProxy"), True),
            (ApiError(500), False),
        ],
    )
    def test_is_expired_by_reason_or_by_410_without_known_reason(
        self, error: ApiError, expected: bool
    ) -> None:
        """Section 1.3: Expired and Gone both mean a relist."""
        assert error.is_expired is expected

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (ApiError(504, "Timeout", "", {"causes": [{"reason": "ResourceVersionTooLarge"}]}), True),
            (ApiError(504, "Timeout", "", {"causes": [{"message": "Too large resource version"}]}), True),
            (ApiError(504, "Timeout", "Too large resource version: 5, current: 4", {"causes": []}), True),
            (ApiError(504, "Timeout", "Too large resource version: 5, current: 4"), False),
            (ApiError(504, "Other", "", {"causes": [{"message": "Too large resource version"}]}), True),
            (
                ApiError(500, "InternalError", "", {"causes": [{"message": "Too large resource version"}]}),
                False,
            ),
            (ApiError(504, "Timeout", "", {"causes": [None, "x", {}]}), False),
            (ApiError(504, "Timeout", "", {"causes": "x"}), False),
        ],
    )
    def test_recognises_too_large_resource_version_of_all_versions(
        self, error: ApiError, expected: bool
    ) -> None:
        """Section 1.3: the cause since 1.18.5, the message before it."""
        assert error.is_too_large_resource_version is expected

    def test_recognises_overload_and_internal_errors(self) -> None:
        assert ApiError(429).is_too_many_requests
        assert ApiError(500, "TooManyRequests").is_too_many_requests
        assert ApiError(500).is_internal_error
        assert ApiError(500, "InternalError").is_internal_error
        assert ApiError(500, "OfAProxy").is_internal_error
        assert not ApiError(500, "Timeout").is_internal_error

    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [
            *((3, 3.0), (0.5, 0.5), (0, None), (-1, None), ("3", None), (None, None)),
            *((86_400, LONGEST_RETRY_AFTER), (float("inf"), LONGEST_RETRY_AFTER), (float("nan"), None)),
            (10**400, LONGEST_RETRY_AFTER),
        ],
    )
    def test_retry_after_is_a_positive_limited_number(self, seconds: Any, expected: float | None) -> None:
        assert ApiError(429, details={"retryAfterSeconds": seconds}).retry_after == expected

    @pytest.mark.parametrize("code", [0, -1, 10**30, "410", None])
    def test_from_status_ignores_a_bad_code(self, code: Any) -> None:
        assert ApiError.from_status({"code": code}).status == 0

    def test_message_shortens_long_server_messages(self) -> None:
        error = ApiError(500, "R" * 10_000, "m" * 10_000)
        assert len(str(error)) < 2100
        assert len(error.message) == 10_000


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def test_message_of_names_the_type_of_foreign_errors() -> None:
    assert message_of(ConfigError("why")) == "why"
    assert message_of(ConfigError()) == "ConfigError()"
    assert message_of(ValueError("why")) == "ValueError: why"
    assert message_of(KeyError("data")) == "KeyError: 'data'"
    assert message_of(ValueError()) == "ValueError()"
    assert message_of(MuteError()) == "MuteError"
    group = ExceptionGroup("both", [ValueError("why"), ExceptionGroup("inner", [ConfigError("how")])])
    assert message_of(group) == (
        "ExceptionGroup: both (2 sub-exceptions): ValueError: why; ExceptionGroup: inner (1 sub-exception): how"
    )


class TestRejections:
    def test_raise_first_raises_the_first_with_the_others(self) -> None:
        first, second = KeyFuncError(1), KeyFuncError(2)
        with pytest.raises(KeyFuncError) as caught:
            RejectedObjectError.raise_first([first, second])
        assert caught.value.all() == (first, second)

    def test_raise_first_accepts_an_empty_list(self) -> None:
        RejectedObjectError.raise_first([])
