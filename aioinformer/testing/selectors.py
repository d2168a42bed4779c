"""Label selectors and field selectors, with the real server's grammar and messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.testing.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.resources import ResourceType


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label.

    Attributes:
        key: The label.
        operator: `in`, `notin`, `exists`, `!`, `gt` or `lt`.
        values: What it is compared with.
    """

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it. As upstream, `notin` is met where the label is missing."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        (bound,) = self.values
        try:
            number, limit = int(value or ""), int(bound)
        except ValueError:
            return False
        return number > limit if self.operator == "gt" else number < limit


_TOKEN = re.compile(r"\s*(!=|==|[=!<>(),]|[^\s=!<>(),]+)")
_NAME = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", "in": "in", "notin": "notin", ">": "gt", "<": "lt"}
_PUNCTUATION = frozenset(["!=", "==", "=", "!", "<", ">", "(", ")", ","])


class LabelSelector:
    """A parsed label selector; without requirements it matches everything."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: tuple[Requirement, ...] = ()) -> None:
        self.requirements = requirements

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse `a=b,c!=d,e in (f,g),h,!i,j>1`.

        Raises:
            StatusError: 400, as the real server words it.
        """
        return cls(_LabelParser(text).requirements())

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)


class _LabelParser:
    """Recursive descent over the tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self._tokens = [match.group(1) for match in _TOKEN.finditer(text)]
        self._next = 0

    def requirements(self) -> tuple[Requirement, ...]:
        found: list[Requirement] = []
        if not self._tokens:
            return ()
        while True:
            token = self._peek()
            if token != "!" and token in _PUNCTUATION:
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            token = self._take()
            if token == "":
                return tuple(found)
            if token != ",":
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
            follower = self._peek()
            if follower != "!" and (follower == "" or follower in _PUNCTUATION):
                raise bad_request(f"found '{follower}', expected: identifier after ','")

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
            raise bad_request(
                f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt"
            )
        if operator in ("in", "notin"):
            return Requirement(key, operator, self._set())
        value = "" if self._peek() in ("", ",") else self._take()
        return Requirement(key, _OPERATORS[operator], frozenset([self._value(key, value)]))

    def _key(self) -> str:
        key = self._take()
        if key in _PUNCTUATION or not key:
            raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
        name = key.rpartition("/")[2]
        if not name or len(name) > 63 or not _NAME.fullmatch(name):
            raise bad_request(
                f'unable to parse requirement: <nil>: Invalid value: "{key}": name part must consist of '
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            )
        return key

    def _value(self, key: str, value: str) -> str:
        if value in _PUNCTUATION or len(value) > 63 or not _NAME.fullmatch(value):
            raise bad_request(
                f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": a valid label must be '
                "an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            )
        return value

    def _set(self) -> frozenset[str]:
        if (token := self._take()) != "(":
            raise bad_request(f"unable to parse requirement: found '{token}' expected: '('")
        values: set[str] = set()
        expect_value = True
        while (token := self._take()) != ")":
            if not token:
                raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")
            if token == ",":
                if expect_value:
                    values.add("")
                expect_value = True
            elif expect_value:
                values.add(token)
                expect_value = False
            else:
                raise bad_request(f"unable to parse requirement: found '{token}', expected: ',' or ')'")
        if expect_value:
            values.add("")
        return frozenset(values)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One condition of a field selector: the field's place in `ResourceType.fields`, or name, or namespace."""

    label: str
    value: str
    negated: bool
    index: int

    def matches(self, namespace: str, name: str, fields: tuple[str, ...]) -> bool:
        """Whether an object with these values meets it."""
        if self.index == _NAME_FIELD:
            actual = name
        elif self.index == _NAMESPACE_FIELD:
            actual = namespace
        else:
            actual = fields[self.index]
        return (actual == self.value) is not self.negated


_NAME_FIELD = -1
_NAMESPACE_FIELD = -2


class FieldSelector:
    """A parsed field selector; without terms it matches everything."""

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[FieldTerm, ...] = ()) -> None:
        self.terms = terms

    @classmethod
    def parse(cls, text: str, resource: ResourceType) -> FieldSelector:
        """Parse `metadata.name=x,status.phase!=Running` for a resource.

        Raises:
            StatusError: 400 for bad syntax and for a field that the resource does not offer.
        """
        return cls(tuple(_field_term(part, text, resource) for part in _split_terms(text) if part))

    @classmethod
    def name(cls, name: str) -> FieldSelector:
        """The selector of the one object of a name."""
        return cls((FieldTerm("metadata.name", name, False, _NAME_FIELD),))

    def matches(self, namespace: str, name: str, fields: tuple[str, ...]) -> bool:
        """Whether an object meets every term."""
        return all(term.matches(namespace, name, fields) for term in self.terms)

    def exact(self, label: str) -> str | None:
        """The value that a field must have, if the selector names one."""
        return next((t.value for t in self.terms if t.label == label and not t.negated), None)

    def __bool__(self) -> bool:
        return bool(self.terms)


def _split_terms(text: str) -> list[str]:
    """Split at commas that no backslash escapes."""
    terms, current, escaped = [], "", False
    for character in text:
        if character == "," and not escaped:
            terms.append(current)
            current = ""
            continue
        current += character
        escaped = character == "\\" and not escaped
    terms.append(current)
    return terms


_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)


def _field_term(part: str, text: str, resource: ResourceType) -> FieldTerm:
    match = _TERM.fullmatch(part)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    label, operator, value = match.groups()
    return FieldTerm(label, _unescape(value), operator == "!=", _field_index(label, resource))


def _unescape(value: str) -> str:
    result, escaped = "", False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{character}")
            result += character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            result += character
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return result


def _field_index(label: str, resource: ResourceType) -> int:
    if label == "metadata.name":
        return _NAME_FIELD
    if label == "metadata.namespace" and (resource.namespaced or not (resource.fields or resource.custom)):
        return _NAMESPACE_FIELD
    for index, field in enumerate(resource.fields):
        if field.label == label:
            return index
    if resource.kind == "Job":
        raise bad_request(f'field label "{label}" not supported for Job')
    if resource.fields or resource.custom:
        raise bad_request(f"field label not supported: {label}")
    raise bad_request(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')
