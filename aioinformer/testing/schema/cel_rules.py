"""The rules of a custom resource (`x-kubernetes-validations`), compiled and evaluated as the real server does.

The order, messages and ratcheting are those of apiextensions-apiserver (pkg/apiserver/schema/cel, v1.36).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.schema.cel import (
    EvaluationError,
    InvalidRuleError,
    NotEnforcedError,
    Program,
    compile_expression,
    escape,
)
from aioinformer.testing.schema.constraints import MISSING, old_field, old_items
from aioinformer.testing.schema.faults import OMITTED, Fault, child
from aioinformer.testing.schema.node import Node, parts_of
from aioinformer.testing.schema.props import RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_BELOW = "rules below"
_KINDS = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required",
    "FieldValueDuplicate": "Duplicate",
}
_LONGEST_MESSAGE = 5 * 1024
_NAMES = {"kind": Node(type="string"), "apiVersion": Node(type="string")}
_METADATA = Node(type="object", properties={"name": Node(type="string"), "generateName": Node(type="string")})


class CompiledRule(NamedTuple):
    """A rule with its programs."""

    rule: Rule
    program: Program
    message: Program | None


class Refusal(NamedTuple):
    """A rule that is not evaluated.

    Attributes:
        field: The path of the expression in the definition.
        rule: The rule.
        why: Why it is not.
        is_invalid: Whether the real server refuses it too.
    """

    field: str
    rule: Rule
    why: str
    is_invalid: bool


def compile_rules(node: Node, path: str) -> Iterator[Refusal]:
    """Compile the rules of a schema and of the schemas in it, in place; yield those that are not evaluated."""
    compiled: list[CompiledRule] = []
    rules: list[Rule] = node.rules.get(RULES, [])
    for number, rule in enumerate(rules):
        field = f"{path}.{RULES}[{number}].rule"
        optional_old, message = bool(rule.optional_old_self), None
        try:
            program = compile_expression(rule.rule, node, optional_old=optional_old)
            if rule.message_expression:
                field = f"{path}.{RULES}[{number}].messageExpression"
                message = compile_expression(
                    rule.message_expression, node, returns="STRING", optional_old=optional_old
                )
        except NotEnforcedError as error:
            yield Refusal(field, rule, str(error), False)
        except InvalidRuleError as error:
            why = f"messageExpression {error}" if field.endswith("Expression") else str(error)
            yield Refusal(field, rule, why, True)
        else:
            compiled.append(CompiledRule(rule, program, message))
    if rules:
        node.rules[RULES] = compiled
    for below, part in parts_of(node):
        yield from compile_rules(part, path + below)
        if has_rules(part):
            node.rules[_BELOW] = True


def has_rules(node: Node) -> bool:
    """Return whether a schema or a schema in it has rules."""
    return RULES in node.rules or _BELOW in node.rules


def rule_faults(
    node: Node, value: Any, old: Any = MISSING, path: str = "", *, is_unchanged: bool = False
) -> Iterator[Fault]:
    """Yield the faults that a value's rules find.

    Args:
        node: The schema, with compiled rules.
        value: The value.
        old: The old value, if there is one to compare with.
        path: The value's path.
        is_unchanged: Whether the nearest parent with an old value equals it; then faults are tolerated, but those of
            rules about the change.
    """
    if value is None or not has_rules(node):
        return
    if old is not MISSING:
        is_unchanged = bool(old == value)
    if rules := node.rules.get(RULES):
        before = None if old is MISSING or old is None else in_cel(node, old)
        yield from _own_faults(node, rules, value, before, path, is_unchanged)
    if _BELOW not in node.rules:
        return
    if isinstance(value, list) and node.items is not None:
        find = old_items(node, old)
        for number, element in enumerate(value):
            below = f"{path}[{number}]"
            yield from rule_faults(node.items, element, find(element), below, is_unchanged=is_unchanged)
    elif isinstance(value, dict):
        for name, member in value.items():
            known = node.properties.get(name)
            below = f"{path}[{name}]" if known is None else child(path, name)
            if (known := known or node.items) is not None:
                yield from rule_faults(known, member, old_field(old, name), below, is_unchanged=is_unchanged)


def _own_faults(
    node: Node, rules: list[CompiledRule], value: Any, before: Any, path: str, is_unchanged: bool
) -> Iterator[Fault]:
    given = in_cel(node, value)
    for rule, program, message in rules:
        if program.uses_old and before is None and not rule.optional_old_self:
            continue
        text = (rule.message or rule.rule).strip()
        try:
            if program(given, before):
                continue
        except EvaluationError as error:
            why = f"{error} evaluating rule: {text}"
            if str(error).startswith("no such overload"):
                why = (
                    f"'{error}': call arguments did not match a supported operator, function or macro signature for "
                    f"rule: {text}"
                )
            yield Fault("Invalid", path, node.type, why)
            continue
        if is_unchanged and not program.uses_old:
            continue
        detail = _evaluate(message, given, before) or (text if rule.message else f"failed rule: {text}")
        field = child(path, rule.field_path.removeprefix(".")) if rule.field_path else path
        shown = OMITTED if node.type in ("object", "array") else value
        kind = _KINDS.get(rule.reason or "", "Invalid")
        yield Fault(kind, field, shown, "" if kind == "Duplicate" else detail)


def _evaluate(message: Program | None, value: Any, before: Any) -> str:
    """Return the text of a messageExpression; `""` if it fails, is empty, too long or has several lines."""
    if message is None:
        return ""
    try:
        text = str(message(value, before)).strip()
    except EvaluationError:
        return ""
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def in_cel(node: Node, value: Any) -> Any:
    """Return a value as rules see it: with its schema's types, and without what the schema does not describe."""
    if value is None or node.format == "int-or-string":
        return value
    if isinstance(value, list):
        return [in_cel(node.items, element) for element in value] if node.items is not None else value
    if isinstance(value, dict):
        if node.items is not None:
            return {name: in_cel(node.items, member) for name, member in value.items()}
        properties = node.properties
        if node.is_embedded:
            properties = {**properties, **_NAMES, "metadata": _METADATA}
        return {
            escaped: in_cel(known, member)
            for name, member in value.items()
            if (known := properties.get(name)) is not None
            and (known.type or known.format == "int-or-string")
            and (escaped := escape(name))
        }
    if node.type == "number" and isinstance(value, int):
        return float(value)
    if node.type == "string" and isinstance(value, str):
        return _text(node.format, value)
    return value


def _text(format_: str, value: str) -> Any:
    match format_:
        case "byte":
            import base64

            return base64.b64decode(value)
        case "date" | "date-time":
            from google.protobuf.timestamp_pb2 import Timestamp

            moment, stamp = datetime.fromisoformat(value), Timestamp()
            stamp.FromDatetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
            return stamp
        case "duration":
            from google.protobuf.duration_pb2 import Duration

            span = Duration()
            span.FromTimedelta(_duration(value))
            return span
    return value


_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
}


def _duration(text: str) -> timedelta:
    parts = re.findall(r"([0-9.]+)\s*([a-zµμ]+)", text)
    seconds = sum(float(amount) * _UNITS.get(unit, 0) for amount, unit in parts)
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)
