"""The line of a user's code that raised an error."""

from __future__ import annotations

import json

from aioinformer._core.own_code import own_frame


def error_of(text: str) -> Exception:
    try:
        json.loads(text)
    except ValueError as error:
        return error
    raise AssertionError("the text is valid")


def test_own_frame_is_the_innermost_outside_libraries() -> None:
    frame = own_frame(error_of("{"))
    assert frame is not None
    assert frame.filename == __file__
    assert frame.line == "json.loads(text)"


def test_error_that_was_never_raised_has_no_frame() -> None:
    assert own_frame(ValueError()) is None
