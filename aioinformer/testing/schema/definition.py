"""The schema of a custom resource in one version, compiled from its CustomResourceDefinition."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.schema.cel_rules import Refusal, compile_rules, has_rules, rule_faults
from aioinformer.testing.schema.coerce import coerce, prune
from aioinformer.testing.schema.constraints import MISSING, faults_of
from aioinformer.testing.schema.faults import BLOCKING, Fault
from aioinformer.testing.schema.list_types import embedded_faults, list_faults
from aioinformer.testing.schema.node import parts_of
from aioinformer.testing.schema.patterns import compile_pattern
from aioinformer.testing.schema.props import Props, node_of
from aioinformer.testing.schema.structural import is_supported, schema_faults, structural_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aioinformer.testing.schema.node import Node

_UNCHECKED = Fault(
    "Invalid",
    "",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
)


class Schema:
    """The schema of a custom resource.

    Attributes:
        node: The Node of the whole object.
        refusals: The rules that do not compile, or that cannot be evaluated here.
    """

    def __init__(self, props: Props) -> None:
        self.node = node_of(props, is_root=True)
        self.refusals = [*compile_rules(self.node, "")]
        nodes = [*_nodes(self.node)]
        self._has_lists = any(node.list_type in ("set", "map") for node in nodes)
        self._has_embedded = any(node.is_embedded for node in nodes[1:])

    def read(self, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return an object with its defaults and without unknown fields, and the paths of those."""
        unknown: list[str] = []
        return coerce(self.node, obj, unknown), sorted(unknown)

    def set_status(self, obj: dict[str, Any]) -> None:
        """Set the default of the status, which a new object gets when it is stored without one."""
        status = self.node.properties.get("status")
        if "status" not in obj and status is not None and status.default is not msgspec.UNSET:
            obj["status"] = coerce(status, status.default, [])

    def prune(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return an object of another version without the fields that this one does not know."""
        shown: dict[str, Any] = prune(self.node, obj)
        return shown

    def faults(
        self,
        new: dict[str, Any],
        old: dict[str, Any] | None,
        subresource: str,
        others: Sequence[Fault],
    ) -> list[Fault]:
        """Return the faults of an object; those of unchanged values are tolerated.

        Args:
            new: The object.
            old: The object before; None if it is created.
            subresource: The subresource of the request.
            others: Faults from elsewhere, which come before those of the rules in CEL.
        """
        before: Any = MISSING if old is None else old
        is_status = subresource == "status"
        faults = self._status_faults(new, before) if is_status else faults_of(self.node, new, before)
        if self._has_embedded:
            faults += embedded_faults(self.node, new)
        if self._has_lists and (old is None or not [*list_faults(self.node, old)]):
            faults += list_faults(self.node, new)
        faults += others
        if has_rules(self.node):
            is_blocked = any(fault.kind in BLOCKING for fault in faults)
            faults += [_UNCHECKED] if is_blocked else rule_faults(self.node, new, before)
        return faults

    def _status_faults(self, new: dict[str, Any], old: Any) -> list[Fault]:
        """Return the faults of the status alone; the real server checks it as an object of its own."""
        status = self.node.properties.get("status")
        if status is None or "status" not in new:
            return []
        before = old.get("status", MISSING) if isinstance(old, dict) else MISSING
        return [fault.below("status") for fault in faults_of(status, new["status"], before)]


def _nodes(node: Node) -> Iterator[Node]:
    """Yield a Node and all Nodes inside."""
    yield node
    for _, part in parts_of(node):
        yield from _nodes(part)


class _ShownRule(msgspec.Struct, rename="pascal"):
    """A rule as upstream's messages show it: Go's internal type in JSON."""

    rule: str
    message: str
    message_expression: str
    reason: str | None
    field_path: str
    optional_old_self: bool | None


def compile_schema(schema: Any) -> Schema:
    """Return the schema of a definition's version, which is valid; equal schemas are compiled once."""
    return _compile(msgspec.json.encode(schema))


@lru_cache(maxsize=256)
def _compile(schema: bytes) -> Schema:
    return Schema(msgspec.json.decode(schema, type=Props))


def definition_faults(props: Props, path: str) -> list[Fault]:
    """Return the faults of a schema at a path of its definition."""
    if not is_supported(props):
        return [*schema_faults(props, path)]
    faults = sorted(structural_faults(props, path), key=lambda fault: f"{fault.field}: {fault.message}")
    if props.nullable:
        faults.append(Fault("Forbidden", f"{path}.nullable", detail="nullable cannot be true at the root"))
    if faults:
        return [*faults, *schema_faults(props, path)]
    schema = compile_schema(props)
    faults += _default_faults(schema.node, path)
    faults += schema_faults(props, path)
    return faults or [_fault_of(refusal, path) for refusal in schema.refusals if refusal.is_invalid]


def _fault_of(refusal: Refusal, path: str) -> Fault:
    return Fault(
        "Invalid",
        path + refusal.field,
        msgspec.convert(refusal.rule, _ShownRule, from_attributes=True),
        refusal.why,
    )


def _default_faults(node: Node, path: str) -> Iterator[Fault]:
    """Yield the faults of defaults that do not fit their schemas."""
    if node.default is not msgspec.UNSET:
        field, unknown = f"{path}.default", list[str]()
        coerce(node, node.default, unknown, "x")
        if unknown:
            yield Fault("Invalid", field, node.default, "must not have unknown fields")
        value = coerce(node, node.default, []) if isinstance(node.default, int) else node.default
        for fault in (*embedded_faults(node, value, is_whole=False), *faults_of(node, value)):
            yield fault.below(field)
        yield from rule_faults(node, node.default, path=field)
    for below, part in parts_of(node):
        if below != ".additionalProperties":  # as upstream
            yield from _default_faults(part, path + below)


def not_enforced(schema: Schema) -> list[str]:
    """Return what of a schema the embedded server does not enforce, each with its reason."""
    reasons = [f"{refusal.field}: {refusal.why}" for refusal in schema.refusals if not refusal.is_invalid]
    return reasons + [
        f"{path}: the embedded server does not understand the pattern" for path in _patterns(schema.node, "")
    ]


def _patterns(node: Node, path: str) -> Iterator[str]:
    pattern = node.rules.get("pattern")
    if pattern and compile_pattern(pattern) is None:
        yield f"{path}.pattern: {pattern}"
    for below, part in parts_of(node):
        yield from _patterns(part, path + below)
