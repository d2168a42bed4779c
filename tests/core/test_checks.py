"""checks.py: bad arguments raise ConfigError with their name and value."""

from __future__ import annotations

import math
from typing import Any

import pytest

from aioinformer import ConfigError, ListOptions
from aioinformer._core.callables import require_callable
from aioinformer._core.checks import (
    require_count,
    require_flag,
    require_list,
    require_seconds,
    require_text,
    require_timeout,
)
from aioinformer.objects.versions import NONE, number_of, require_version

HUGE = pytest.param(10**400, id="10**400")
"""An int that no float can hold."""


@pytest.mark.parametrize("value", [0, 0.0, 1, 2.5, 10**9])
def test_require_seconds_accepts_numbers(value: float) -> None:
    require_seconds("delay", value)


@pytest.mark.parametrize("value", [-1, -0.001, math.nan, math.inf, -math.inf, HUGE, True, "5", None])
def test_require_seconds_refuses_other_values(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^delay must be a number of seconds, 0 or more, not ") as caught:
        require_seconds("delay", value)
    assert repr(value) in str(caught.value)


def test_require_timeout_accepts_none_and_negative_numbers() -> None:
    require_timeout(None)
    require_timeout(0)
    require_timeout(-0.1)
    with pytest.raises(
        ConfigError, match=r"^timeout must be a number of seconds, or None for no end, not nan"
    ):
        require_timeout(math.nan)


@pytest.mark.parametrize("value", [-1, 1.0, False, "5", None])
def test_require_count_refuses_other_values(value: Any) -> None:
    require_count("page_size", 0)
    require_count("page_size", 500)
    with pytest.raises(ConfigError, match=r"^page_size must be a whole number, 0 or more, not "):
        require_count("page_size", value)


@pytest.mark.parametrize("value", ["false", "true", 0, 1, None])
def test_require_flag_refuses_other_values(value: Any) -> None:
    require_flag("insecure", True)
    require_flag("insecure", False)
    with pytest.raises(ConfigError, match=r"^insecure must be true or false, not "):
        require_flag("insecure", value)


def test_require_list_refuses_single_values_and_strings() -> None:
    assert require_list("owns", (5, 6)) == [5, 6]
    with pytest.raises(ConfigError, match=r"owns must be a list, not 5: put it in brackets"):
        require_list("owns", 5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"owns must be a list, not 'pods'"):
        require_list("owns", "pods")


def test_require_text_and_require_callable_refuse_other_values() -> None:
    require_text("name", "")
    require_callable("handler", print)
    with pytest.raises(ConfigError, match="name must be a string, not 5"):
        require_text("name", 5)
    with pytest.raises(ConfigError, match="handler must be a function, not None"):
        require_callable("handler", None)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("limit", -1),
        ("limit", True),
        ("limit", "500"),
        ("timeout_seconds", -1),
        ("timeout_seconds", 1.5),
        ("resource_version", 7),
        ("resource_version", None),
        ("continue_token", None),
        ("label_selector", {"app": "web"}),
        ("field_selector", None),
        ("resource_version_match", "Sometime"),
    ],
)
def test_list_options_refuse_values_that_no_request_can_carry(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=option) as caught:
        ListOptions(**{option: value})
    assert repr(value) in str(caught.value)


def test_versions_of_any_length_sort_as_numbers() -> None:
    long, longer = "9" * 5000, "1" * 5001  # int() takes 4300 digits
    versions = ["", "0", "9", "10", "99", "100", "18446744073709551616", long, longer]
    mixed = [longer, "100", "", "9", "18446744073709551616", "10", long, "0", "99"]
    assert sorted(mixed, key=number_of) == versions
    assert number_of("x1") == number_of("\u0663") == number_of("") == NONE < number_of("0")
    assert require_version("it", long) == number_of(long)
