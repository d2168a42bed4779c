"""Label selectors (k8s.io/apimachinery ``pkg/labels``)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from .._core.checks import LONGEST_NAME, SHORT_NAME, is_subdomain, require_text
from ..errors import SelectorError


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label.

    Attributes:
        key: The label's key.
        operator: `in`, `notin`, `exists`, `!`, `gt` or `lt`.
        values: The operands.
    """

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the condition. As upstream, `notin` is met if the label is missing.

        Raises:
            SelectorError: There is no such operator.
        """
        value = labels.get(self.key)
        if not isinstance(value, str):
            value = None  # no label
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "gt" | "lt":
                (bound,) = map(int, self.values)
                if value is None or not _is_int64(value):
                    return False
                return int(value) > bound if self.operator == "gt" else int(value) < bound
            case _:
                raise SelectorError(
                    f"{self.key!r}: no operator {self.operator!r}; use in, notin, exists, !, gt or lt"
                )


_TOKEN = re.compile(r"[ \t\r\n]*(!=|==|[=!<>(),]|[^ \t\r\n=!<>(),]+)")
"""As for the server, other white space, such as a no-break space, is a part of a word, which is then no label."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")  # a label has at most 63 characters
_INT64 = range(-(2**63), 2**63)
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}
_PUNCTUATION = frozenset(["!=", "==", "=", "!", "<", ">", "(", ")", ","])

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
"""The server's message for a name that is not a DNS subdomain."""

_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _is_int64(value: str) -> bool:
    """Return whether upstream accepts it as a number (``strconv.ParseInt``)."""
    return _INTEGER.fullmatch(value) is not None and int(value) in _INT64


class LabelSelector:
    """A parsed label selector. Without requirements it matches everything."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: tuple[Requirement, ...] = ()) -> None:
        self.requirements = requirements

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse `a=b,c!=d,e in (f,g),h,!i,j>1`.

        Raises:
            SelectorError: It cannot be parsed. The message is the server's for the first fault. NUL is refused too;
                the server stops reading there.
            ConfigError: It is not a string.
        """
        require_text("a label selector", text)
        return cls(_LabelParser(text).requirements())

    @classmethod
    def of(cls, selector: str | Mapping[str, Any] | LabelSelector) -> LabelSelector:
        """Return the selector of a string, a dict of required labels, or an object's `spec.selector`.

        A `spec.selector` has `matchLabels` and `matchExpressions` (``LabelSelectorAsSelector``).

        Raises:
            SelectorError: It cannot be parsed, or a label of a `spec.selector` is invalid. Required labels in a dict
                are not validated: no object has an invalid label (``SelectorFromSet``).
            ConfigError: A label is not a string.
        """
        if isinstance(selector, LabelSelector):
            return selector
        if not isinstance(selector, Mapping):
            return cls.parse(selector)
        in_spec = "matchLabels" in selector or "matchExpressions" in selector
        return cls(tuple(_requirements_of(selector) if in_spec else _equal(selector)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet every requirement."""
        for requirement in self.requirements:  # noqa: SIM110 - a lister calls this for each object
            if not requirement.matches(labels):
                return False
        return True

    def __bool__(self) -> bool:
        return bool(self.requirements)


class _Expression(msgspec.Struct):
    key: str
    operator: str
    values: list[str] | None = None


class _InSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    match_labels: dict[str, Any] | None = None
    match_expressions: list[_Expression] | None = None


class SpecOperator(NamedTuple):
    """An operator of `matchExpressions`.

    Attributes:
        operator: The operator of the Requirement that it becomes.
        takes_values: Whether it needs values; without, it takes none.
    """

    operator: str
    takes_values: bool


SPEC_OPERATORS = {
    "In": SpecOperator("in", takes_values=True),
    "NotIn": SpecOperator("notin", takes_values=True),
    "Exists": SpecOperator("exists", takes_values=False),
    "DoesNotExist": SpecOperator("!", takes_values=False),
}


def _requirements_of(selector: Mapping[str, Any]) -> Iterator[Requirement]:
    """Return the requirements of an object's `spec.selector`."""
    try:
        given = msgspec.convert(selector, _InSpec)
    except msgspec.ValidationError as error:
        raise SelectorError(f"a selector of matchLabels and matchExpressions: {error}") from error
    for requirement in _equal(given.match_labels or {}):
        yield _require(requirement.key, requirement.operator, requirement.values)
    for expression in given.match_expressions or ():
        if (known := SPEC_OPERATORS.get(expression.operator)) is None:
            raise SelectorError(
                f"{expression.key!r}: no operator {expression.operator!r}; use {', '.join(SPEC_OPERATORS)}"
            )
        if known.takes_values != bool(expression.values):
            needs = "needs" if known.takes_values else "takes no"
            raise SelectorError(f"{expression.key!r}: {expression.operator} {needs} values")
        yield _require(expression.key, known.operator, expression.values or ())


def _require(key: str, operator: str, values: Collection[str]) -> Requirement:
    """Return a validated requirement (``NewRequirement``)."""
    _valid_key("key", key)
    for number, value in enumerate(values):
        _valid_value(f"values[{number}][{key}]", value)
    return Requirement(key, operator, frozenset(values))


def _equal(labels: Mapping[str, Any]) -> Iterator[Requirement]:
    for key, value in labels.items():
        require_text("the name of a selector's label", key, "app")
        require_text(f"a selector's label {key!r}", value, "web")
        yield Requirement(key, "in", frozenset([value]))


def label_key_faults(key: str) -> list[str]:
    """Return the faults of the key of a label or annotation, or of a finalizer (``content.IsLabelKey``)."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_RULE} {optional}"]
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash and not is_subdomain(prefix):
        faults.append(f"prefix part {SUBDOMAIN_RULE}")
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > LONGEST_NAME:
        faults.append(f"name part must be no more than {LONGEST_NAME} bytes")
    if not SHORT_NAME.fullmatch(name):
        faults.append(f"name part {_KEY_RULE}")
    return faults


def label_value_faults(value: str) -> list[str]:
    """Return the faults of a label's value (``content.IsLabelValue``)."""
    faults = []
    if len(value) > LONGEST_NAME:
        faults.append(f"must be no more than {LONGEST_NAME} bytes")
    if value and not SHORT_NAME.fullmatch(value):
        faults.append(_VALUE_RULE)
    return faults


def _valid_key(where: str, key: str) -> str:
    """Return a valid label key, or raise SelectorError."""
    return _valid(where, key, label_key_faults(key))


def _valid_value(where: str, value: str) -> str:
    """Return a valid label value, or raise SelectorError."""
    return _valid(where, value, label_value_faults(value))


def _valid(where: str, text: str, faults: list[str]) -> str:
    if faults:
        raise SelectorError(f'{where}: Invalid value: "{text}": {"; ".join(faults)}')
    return text


class _LabelParser:
    """A recursive descent parser of label selectors."""

    def __init__(self, text: str) -> None:
        self._tokens = [match.group(1) for match in _TOKEN.finditer(text)]
        self._next = 0

    def requirements(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        if not self._tokens:
            return ()
        while True:
            token = self._peek()
            if token != "!" and token in _PUNCTUATION:
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            requirements.append(self._requirement())
            token = self._take()
            if token == "":
                return tuple(requirements)
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            follower = self._peek()
            if follower != "!" and (follower == "" or follower in _PUNCTUATION):
                raise SelectorError(f"found '{follower}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), "!")
        key = self._key()
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        operator = self._take()
        if operator not in _OPERATORS:
            raise SelectorError(
                f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt"
            )
        if operator in ("in", "notin"):
            values = enumerate(sorted(self._set()))
            return Requirement(key, operator, frozenset(self._value(key, *text) for text in values))
        value = "" if self._peek() in ("", ",") else self._take()
        if value in _PUNCTUATION:
            raise SelectorError(f"unable to parse requirement: found '{value}', expected: identifier")
        value = self._value(key, 0, value)
        if operator in ("<", ">") and not _is_int64(value):
            raise SelectorError(
                f'unable to parse requirement: values[0]: Invalid value: "{value}": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            )
        return Requirement(key, _OPERATORS[operator], frozenset([value]))

    def _key(self) -> str:
        key = self._take()
        if key in _PUNCTUATION or not key:
            raise SelectorError(f"unable to parse requirement: found '{key}', expected: identifier")
        return _valid_key("unable to parse requirement: <nil>", key)

    def _value(self, key: str, number: int, value: str) -> str:
        return _valid_value(f"unable to parse requirement: values[{number}][{key}]", value)

    def _set(self) -> frozenset[str]:
        if (token := self._take()) != "(":
            raise SelectorError(f"unable to parse requirement: found '{token}' expected: '('")
        values: set[str] = set()
        expect_value = True
        while (token := self._take()) != ")":
            if token == ",":
                if expect_value:
                    values.add("")
                expect_value = True
            elif not token or token in _PUNCTUATION or not expect_value:
                after_comma = "',', or identifier" if values else "',', ')' or identifier"
                expected = after_comma if expect_value else "',' or ')'"
                raise SelectorError(f"unable to parse requirement: found '{token}', expected: {expected}")
            else:
                values.add(token)
                expect_value = False
        if expect_value:
            values.add("")
        return frozenset(values)
