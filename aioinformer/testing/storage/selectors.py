"""Label selectors and field selectors, with the real server's grammar and messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.errors import SelectorError
from aioinformer.objects.labels import LabelSelector
from aioinformer.testing.errors import bad_request

if TYPE_CHECKING:
    from aioinformer.testing.resources import ResourceType


def parse_labels(text: str) -> LabelSelector:
    """Parse a label selector.

    Raises:
        StatusError: 400 with the real server's message.
    """
    try:
        return LabelSelector.parse(text)
    except SelectorError as error:
        raise bad_request(str(error)) from error


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A term of a field selector, for a field of `ResourceType.fields`, the name or the namespace."""

    label: str
    value: str
    negated: bool
    index: int

    def matches(self, namespace: str, name: str, fields: tuple[str, ...]) -> bool:
        """Return whether an object with these values matches the term."""
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
            StatusError: 400 for invalid syntax or an unsupported field.
        """
        return cls(tuple(_field_term(part, text, resource) for part in _split_terms(text) if part))

    @classmethod
    def name(cls, name: str) -> FieldSelector:
        """Return a selector for the object with this name."""
        return cls((FieldTerm("metadata.name", name, False, _NAME_FIELD),))

    def matches(self, namespace: str, name: str, fields: tuple[str, ...]) -> bool:
        """Return whether an object matches every term."""
        return all(term.matches(namespace, name, fields) for term in self.terms)

    def exact(self, label: str) -> str | None:
        """Return the value that the selector requires of a field, or None."""
        return next((t.value for t in self.terms if t.label == label and not t.negated), None)

    def __bool__(self) -> bool:
        return bool(self.terms)


def _split_terms(text: str) -> list[str]:
    """Split at commas that are not escaped by a backslash."""
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
        if label and field.label == label:
            return index
    if resource.kind == "Job":
        raise bad_request(f'field label "{label}" not supported for Job')
    if resource.fields or resource.custom:
        raise bad_request(f"field label not supported: {label}")
    raise bad_request(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')
