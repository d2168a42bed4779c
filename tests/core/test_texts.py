"""texts.py: texts of others."""

from __future__ import annotations

import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.texts import valid_text
from aioinformer.errors import ApiError, ConfigError, Denied, message_of, shorten

FILE = os.fsdecode(b"/data/\xff")
"""The name of a file that is not UTF-8."""


@given(st.text(st.characters(exclude_categories=())))
def test_each_text_is_valid_in_json_and_keeps_its_other_characters(text: str) -> None:
    result = valid_text(text)
    assert msgspec.json.decode(msgspec.json.encode(result)) == result
    assert len(result) == len(text)
    assert all(new == old or "\ud800" <= old <= "\udfff" for new, old in zip(result, text, strict=True))


@pytest.mark.parametrize(
    "error",
    [ValueError(FILE), ConfigError(FILE), ApiError(500, FILE, FILE), ExceptionGroup(FILE, [OSError(FILE)])],
)
def test_the_message_of_an_error_is_valid(error: BaseException) -> None:
    assert "/data/?" in message_of(error)
    assert "\udcff" not in message_of(error)


class _SilentError(Exception):
    def __repr__(self) -> str:
        return FILE

    def __str__(self) -> str:
        return ""


def test_reprs_and_denials_are_valid() -> None:
    assert message_of(_SilentError()) == shorten(_SilentError()) == "/data/?"
    denial = Denied(f"{FILE} is missing", field="spec[\ud800]")
    assert (denial.message, denial.field) == ("/data/? is missing", "spec[?]")
