"""logs.py and reporting.py: the log of an operator, for people and for programs."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import NoReturn

import msgspec
import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

from aioinformer import ConfigError
from aioinformer._core.log_fields import WorkLogger, log_source
from aioinformer._core.texts import valid_text
from aioinformer.cli.logs import set_up
from aioinformer.cli.reporting import report_errors

UNSAFE = '\x00\x1b[2J\x07\x7f\x80\x85\x9b\u2028\u202e\u2066\ufeff\U000e0041\U000f0000\udc80\n\r"\\ é東🙂'


@pytest.fixture(autouse=True, scope="module")
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def log(text: str, *, is_json: bool) -> str:
    """Log a text as message, logger, traceback and stack, and return what is printed."""
    printed = io.StringIO()
    with redirect_stderr(printed):
        set_up(is_json=is_json, level=logging.INFO)
        try:
            raise ValueError(text)
        except ValueError:
            logging.getLogger(f"a.{text}").exception("it says %s", text)
        logging.getLogger("b").warning(text)
        logging.getLogger("b").warning("%d", text)
        logging.getLogger("b").warning("a stack", stack_info=True)
    return printed.getvalue()


@given(st.text(st.characters(exclude_categories=())))
@example(UNSAFE)
def test_each_line_of_a_json_log_is_json_and_controls_no_terminal(text: str) -> None:
    printed = log(text, is_json=True)
    assert all(char.isprintable() or char == "\n" for char in printed)
    failure, plain, unformatted, stack = map(msgspec.json.decode, printed.split("\n")[:-1])
    text = valid_text(text)
    assert (failure["message"], failure["logger"]) == (f"it says {text}", f"a.{text}")
    assert text in failure["traceback"]
    assert plain["message"] == text
    assert unformatted["message"] == "'%d' cannot be formatted with its arguments: TypeError"
    assert "test_logs.py" in stack["stack"]


@given(st.text(st.characters(exclude_categories=())))
@example(UNSAFE)
def test_a_text_forges_no_line_of_a_log_for_people(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging, "raiseExceptions", False)  # the message that cannot be formatted
        printed = log(text, is_json=False)
    assert all(char.isprintable() or char == "\n" for char in printed)
    heads = [line for line in printed.split("\n")[:-1] if not line.startswith("  ")]
    assert [head.split()[2] for head in heads] == ["ERROR", "WARNING", "WARNING"]


def test_warnings_of_python_go_to_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(is_json=True, level=logging.INFO)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)  # pytest records warnings, which replaces what was captured
        logging.captureWarnings(True)
        warnings.warn("old\x1b[2J", DeprecationWarning, stacklevel=1)
    line = json.loads(capsys.readouterr().err)
    assert (line["logger"], line["level"]) == ("py.warnings", "WARNING")
    assert "DeprecationWarning: old\x1b[2J" in line["message"]


class _Fatal(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [ConfigError("a\nb"), SystemExit("a\nb"), ValueError("a"), OSError("a"), _Fatal("a")]
)
def test_a_failure_is_a_line_of_the_json_log(
    capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    set_up(is_json=True, level=logging.INFO)
    with pytest.raises(typer.Exit), report_errors():
        raise error
    line = json.loads(capsys.readouterr().err)
    assert line["level"] == "CRITICAL"
    assert line["message"] == (
        "a b"
        if isinstance(error, (ConfigError, SystemExit))
        else f"the program failed: {type(error).__name__}: a"
    )
    assert ("traceback" in line) is not isinstance(error, (ConfigError, SystemExit))


@pytest.mark.parametrize("end", [SystemExit(3), SystemExit(None), KeyboardInterrupt()])
def test_an_end_that_was_asked_for_is_no_failure(
    capsys: pytest.CaptureFixture[str], end: BaseException
) -> None:
    set_up(is_json=True, level=logging.INFO)
    with pytest.raises(type(end)) as raised, report_errors():
        raise end
    assert raised.value is end
    assert capsys.readouterr().err == ""


def test_standard_error_is_utf_8_for_json(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    monkeypatch.setattr(sys, "stderr", stream)
    set_up(is_json=True, level=logging.INFO)
    logging.getLogger().warning("東")
    assert isinstance(stream.buffer, io.BytesIO)
    stream.flush()
    assert json.loads(stream.buffer.getvalue())["message"] == "東"


class _Work:
    def log_fields(self) -> dict[str, object]:
        return {"controller": "sites", "namespace": "default", "name": "a", "attempt": 2}


def print_in_work(capsys: pytest.CaptureFixture[str], *, is_json: bool) -> list[str]:
    """Log messages during some work, and return the lines."""
    set_up(is_json=is_json, level=logging.INFO)
    token = log_source.set(_Work())
    try:
        WorkLogger(logging.getLogger("operator"), {}).info("published", extra={"bucket": "b", "at": object})
        logging.getLogger("library").warning("slow", extra={"fields": "a controller", "level": "high"})
        try:
            raise KeyError("a")
        except KeyError:
            logging.getLogger("library").exception("failed")
    finally:
        log_source.reset(token)
    logging.getLogger("library").warning("later")
    return capsys.readouterr().err.splitlines()


def test_json_says_what_each_message_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    published, slow, failed, later = map(json.loads, print_in_work(capsys, is_json=True))
    work = {"controller": "sites", "namespace": "default", "name": "a", "attempt": 2}
    for line in (published, slow, failed):
        assert work.items() <= line.items()
    assert list(published)[:4] == ["time", "level", "logger", "message"]
    assert (published["bucket"], published["at"]) == ("b", "<class 'object'>")
    assert "fields" not in published
    assert slow["level"] == "WARNING", "a field of others changes none of the log's"
    assert failed["error_type"] == "KeyError"
    assert later.keys() == {"time", "level", "logger", "message"}


def test_lines_for_people_name_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    published, slow, *_ = print_in_work(capsys, is_json=False)
    assert published.endswith("INFO operator: published [sites default/a]")
    assert slow.endswith("WARNING library: slow")


@pytest.mark.parametrize("is_json", [False, True])
def test_long_texts_are_cut_so_that_container_runtimes_split_no_line(
    capsys: pytest.CaptureFixture[str], is_json: bool
) -> None:
    set_up(is_json=is_json, level=logging.INFO)
    text = "x" * 1_000_000
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("a").exception("it says %s", text)
    printed = capsys.readouterr().err
    assert max(map(len, printed.split("\n"))) < 16_384
    assert printed.count("x… (1,000,0") == 2
    assert "x… (1,000,012 characters)" in printed, "the last line of the traceback"


@pytest.mark.parametrize(
    "value", [float("nan"), {"rates": [float("inf")]}, {("a", 1): 2}], ids=["nan", "inf", "key"]
)
def test_value_that_json_has_not_is_a_text(capsys: pytest.CaptureFixture[str], value: object) -> None:
    set_up(is_json=True, level=logging.INFO)
    logging.getLogger("a").info("said", extra={"value": value, "share": 0.5})

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    line = json.loads(capsys.readouterr().err, parse_constant=refuse)
    assert (line["value"], line["share"]) == (repr(value), 0.5)


class _Unshowable(dict[str, object]):
    """Also a dict, whose items cannot be read."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def items(self) -> NoReturn:
        raise RuntimeError("no items")


class _Closed:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


@pytest.mark.parametrize(
    "value", [_Closed(), [_Closed()], {"a": _Closed()}, {_Closed(): 1}, _Unshowable(a=1)]
)
def test_a_value_that_cannot_be_shown_loses_no_line(
    capsys: pytest.CaptureFixture[str], value: object
) -> None:
    set_up(is_json=True, level=logging.INFO)
    logging.getLogger("a").info("said", extra={"value": value, "size": 2})
    logging.getLogger("a").info("%s", value)
    logging.getLogger("a").info(value)
    said, formatted, raw = map(msgspec.json.decode, capsys.readouterr().err.splitlines())
    assert (said["message"], said["size"]) == ("said", 2)
    assert type(value).__name__ in str(said["value"]) or "_Closed" in str(said["value"])
    assert "cannot be formatted with its arguments: RuntimeError" in formatted["message"]
    assert f"<{type(value).__name__}> cannot be formatted" in raw["message"]
