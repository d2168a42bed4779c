"""labels.py: label selectors, as the API server understands them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import ConfigError, LabelSelector
from aioinformer.errors import SelectorError
from aioinformer.objects.labels import Requirement

LABELS = {"app": "web", "tier": "front", "count": "7", "empty": "", "example.com/x": "y"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("   ", True),
        ("app", True),
        ("none", False),
        ("!none", True),
        ("! app", False),
        ("app=web", True),
        ("app==web", True),
        (" app = web , tier=front", True),
        ("app=other", False),
        ("none=", False),
        ("empty=", True),
        ("empty=,app", True),
        ("app!=web", False),
        ("app!=other", True),
        ("none!=x", True),
        ("app in (web)", True),
        ("app in (a,web)", True),
        ("app in (a, b)", False),
        ("empty in (a,)", True),
        ("empty in ()", True),
        ("none in (a)", False),
        ("app notin (web)", False),
        ("app notin (a,b)", True),
        ("none notin (a)", True),
        ("count>6", True),
        ("count>7", False),
        ("count < 8", True),
        ("app>6", False),
        ("none>6", False),
        ("empty<1", False),
        ("example.com/x=y", True),
        ("in", False),
        ("a.b-c_d", False),
    ],
)
def test_what_matches(text: str, expected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    "text",
    [
        ",",
        "a,",
        "a,,b",
        "=",
        "=a",
        "a=b=c",
        "a=b c=d",
        "a b",
        "a in",
        "a in b",
        "a in (",
        "a in (b",
        "a in (b c)",
        "a in (-)",
        "a notin (ü)",
        "!",
        "!!a",
        "(a)",
        "a=-b",
        "a=b-",
        "a=(b)",
        "-a",
        "a/",
        "/a",
        "a/b/c",
        "UPPER/a",
        "a..b/c",
        "ключ=x",
        "a>",
        "a>b",
        "a<1_0",
        "a=" + "x" * 64,
        "x" * 64,
        "x" * 254 + "/a",
    ],
)
def test_what_cannot_be_parsed(text: str) -> None:
    with pytest.raises(SelectorError):
        LabelSelector.parse(text)


@pytest.mark.parametrize("space", ["\u00a0", "\v", "\f", "\u2003", "\x85", "\0"])
@pytest.mark.parametrize("text", ["{}", "{}app", "app{}", "app=web{}", "app in (web{})", "app,{}"])
def test_only_ascii_space_separates(text: str, space: str) -> None:
    """A selector of a no-break space would pick everything."""
    with pytest.raises(SelectorError):
        LabelSelector.parse(text.format(space))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a!==b", "unable to parse requirement: found '=', expected: identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
        ),
        (
            "a/",
            'unable to parse requirement: <nil>: Invalid value: "a/": name part must be non-empty; name part must '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            "x" * 64,
            f'unable to parse requirement: <nil>: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes',
        ),
        (
            f"-/{'x' * 63}-",
            f'unable to parse requirement: <nil>: Invalid value: "-/{"x" * 63}-": prefix part a lowercase RFC 1123 '
            "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); name part must be no more than 63 "
            "bytes; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            f"a in (b,{'v' * 64})",
            f'unable to parse requirement: values[1][a]: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
        ),
    ],
)
def test_messages_equal_upstream(text: str, said: str) -> None:
    """apimachinery 0.36, run on these."""
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert str(caught.value) == said


@pytest.mark.parametrize("wrong", [None, 5, b"app=web", LabelSelector()])
def test_non_string_selector_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="a label selector must be a string"):
        LabelSelector.parse(wrong)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"app": "web", "empty": ""}, True),
        ({"app": "web", "none": ""}, False),
        ({"matchLabels": {"app": "web", "tier": "front"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {}, "matchExpressions": None}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["api", "web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "empty", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "none", "operator": "DoesNotExist", "values": []}]}, True),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
            },
            False,
        ),
    ],
)
def test_labels_or_what_the_spec_of_an_object_selects(selector: dict[str, Any], expected: bool) -> None:
    """As LabelSelectorAsSelector."""
    assert LabelSelector.of(selector).matches(LABELS) is expected
    assert LabelSelector.of(MappingProxyType(selector)).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({"app": ["web"]}, r"a selector's label 'app' must be a string, like 'web', not \['web'\]"),
        ({"app": {"x": "y"}}, "a selector's label 'app' must be a string"),
        ({"app": None}, "a selector's label 'app' must be a string, like 'web', not None"),
        ({"n": 1}, "a selector's label 'n' must be a string, like 'web', not 1"),
        ({1: "x"}, "the name of a selector's label must be a string, like 'app', not 1"),
        ({"matchLabels": {"n": 1}}, "a selector's label 'n' must be a string"),
    ],
)
def test_non_string_labels_are_refused(selector: Any, said: str) -> None:
    """They would pick nothing."""
    with pytest.raises(ConfigError, match=said):
        LabelSelector.of(selector)


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({"matchLabels": {}, "app": "web"}, "unknown field `app`"),
        ({"matchLabels": "app=web"}, r"got `str` - at `\$.matchLabels`"),
        ({"matchExpressions": {"key": "a", "operator": "Exists"}}, r"at `\$.matchExpressions`"),
        ({"matchExpressions": [{"operator": "Exists"}]}, "missing required field `key`"),
        (
            {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]},
            "'a': no operator 'in'; use In, NotIn, ",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]}, r"\[0\].values`"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "'a': In needs values"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]}, "'a': NotIn needs values"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "'a': Exists takes no ",
        ),
        (
            {"matchLabels": {"app": "a b"}},
            r'^values\[0\]\[app\]: Invalid value: "a b": a valid label must be ',
        ),
        ({"matchLabels": {"": "x"}}, '^key: Invalid value: "": name part must be non-empty; name part must '),
        (
            {"matchExpressions": [{"key": "a b", "operator": "NotIn", "values": ["x"]}]},
            '^key: Invalid value: "a b": name part must consist of',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "v" * 64]}]},
            r"^values\[1\]\[a\]: .* must be no more than 63 bytes$",
        ),
    ],
)
def test_bad_spec_selectors_are_refused(selector: Any, said: str) -> None:
    with pytest.raises(SelectorError, match=said):
        LabelSelector.of(selector)


def test_required_labels_are_not_validated() -> None:
    """As SelectorFromSet, which checks nothing."""
    assert not LabelSelector.of({"a b": "", "": "x"}).matches(LABELS)


@given(st.text(max_size=30) | st.text("ab=!,() <>in/-.0", max_size=30))
def test_noise_raises_only_selector_errors(text: str) -> None:
    try:
        selector = LabelSelector.parse(text)
    except SelectorError:
        return
    assert selector.matches(LABELS) in (True, False)
    assert selector.matches({}) in (True, False)


def test_labels_that_are_no_numbers_are_not_compared() -> None:
    selector = LabelSelector.parse("a>0")
    for value in ("1_0", "\u0667", " 1", "1.5", "", "x", "9" * 5000):
        assert not selector.matches({"a": value})


def test_numbers_are_of_64_bits() -> None:
    """As upstream's: such as a time in nanoseconds."""
    now = "1700000000000000000"
    assert LabelSelector.parse("ts>5").matches({"ts": now})
    assert LabelSelector.parse("ts<9223372036854775807").matches({"ts": now})
    assert not LabelSelector.parse("ts>5").matches({"ts": "9223372036854775808"})
    with pytest.raises(SelectorError):
        LabelSelector.parse("ts<9223372036854775808")


def test_huge_selector_is_parsed() -> None:
    names = [f"v{number}" for number in range(20_000)]
    assert LabelSelector.parse(f"app in ({','.join(names)},web)").matches(LABELS)


def test_an_empty_selector_is_false() -> None:
    assert not LabelSelector.parse("")
    assert LabelSelector.parse("a")


@pytest.mark.parametrize("operator", ["<", "IN", "", "ge"])
def test_unknown_operator_is_an_error_that_names_it(operator: Any) -> None:
    with pytest.raises(SelectorError, match=f"'count': no operator '{operator}'; use in, notin"):
        Requirement("count", operator, frozenset(["7"])).matches(LABELS)
