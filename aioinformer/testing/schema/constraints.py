"""Values checked against a schema: types, limits, enums, patterns and logic, with the real server's messages.

The rules are those of kube-openapi (pkg/validation/validate) and of the ratcheting around them in
apiextensions-apiserver (pkg/apiserver/validation, v1.36): a fault of an unchanged value is tolerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.schema.faults import Fault, number, show
from aioinformer.testing.schema.formats import fits_format
from aioinformer.testing.schema.patterns import matches

if TYPE_CHECKING:
    from aioinformer.testing.schema.node import Node

MISSING: Any = object()
"""Stands for an old value that does not exist, or that has no counterpart."""

_INT_OR_STRING = ("integer", "string")
_LOGIC = frozenset(["allOf", "anyOf", "not", "oneOf"])
_NAMES = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
_BOUNDS = {"int32": 2**31, "int64": 2**63, "": 2**63}


class _Result:
    """The faults of a value, and how many checks were made, by which the real server picks a branch of `anyOf`."""

    __slots__ = ("checks", "faults")

    def __init__(self) -> None:
        self.faults: dict[tuple[str, str, str], Fault] = {}
        self.checks = 0

    def add(self, fault: Fault) -> None:
        self.faults.setdefault((fault.kind, fault.field, fault.detail), fault)

    def merge(self, other: _Result) -> None:
        for fault in other.faults.values():
            self.add(fault)
        self.checks += other.checks


def faults_of(node: Node, value: Any, old: Any = MISSING) -> list[Fault]:
    """Return the faults of a value; those of parts that equal the old value's are tolerated."""
    return [*_check(node, value, "", old).faults.values()]


def _check(node: Node, value: Any, path: str, old: Any = MISSING) -> _Result:
    result = _Result()
    types = _INT_OR_STRING if node.format == "int-or-string" else (node.type,) if node.type else ()
    if value is None:
        if types and not node.nullable:
            result.add(_wrong_type(path, ",".join(types), "null"))
    else:
        _check_type(node, types, value, path, result)
        result.checks += 2
        if not _LOGIC.isdisjoint(node.rules):
            _check_logic(node, value, path, result)
        if isinstance(value, str):
            result.checks += 1
            _check_string(node, value, path, result)
        elif isinstance(value, list):
            _check_list(node, value, path, old, result)
        elif isinstance(value, dict):
            result.checks += 1
        elif not isinstance(value, bool):
            result.checks += 2
            _check_number(node, value, path, result)
        result.checks += 3
    if node.enum:
        _check_enum(node, value, path, result)
    if isinstance(value, dict):
        _check_object(node, value, path, old, result)
    if old is not MISSING and old == value:
        result.faults.clear()
    return result


def _invalid(path: str, value: Any, why: str) -> Fault:
    return Fault("Invalid", path.removeprefix("."), value, f"{path} in body {why}")


def _plain(why: str) -> Fault:
    """Return a fault that upstream reports without its path."""
    return Fault("Invalid", "", "", why)


def _wrong_type(path: str, wanted: str, given: str) -> Fault:
    return Fault(
        "TypeInvalid", path.removeprefix("."), given, f'{path} in body must be of type {wanted}: "{given}"'
    )


def _check_type(node: Node, types: tuple[str, ...], value: Any, path: str, result: _Result) -> None:
    format_ = "" if node.format == "int-or-string" else node.format
    if not types and not format_:
        return
    result.checks += 2
    given = _NAMES[type(value)]
    if given in types:
        return
    fits = given == "integer" and "number" in types
    fits = fits or (given == "number" and "integer" in types and value.is_integer() and abs(value) < 2**53)
    is_text = isinstance(value, str | list)
    of_number = {"integer": "int64", "number": "float64"}.get(given, "")
    if not is_text and format_ and not fits and of_number != format_:
        result.add(_wrong_type(path, format_, of_number))
    elif not fits and not (is_text and format_ and not {"number", "integer"} & {*types}):
        result.add(_wrong_type(path, ",".join(types), given))


def _check_logic(node: Node, value: Any, path: str, result: _Result) -> None:
    rules = node.rules
    if parts := rules.get("anyOf"):
        results = []
        for part in parts:
            results.append(_check(part, value, path))
            if not results[-1].faults:
                break
        if results[-1].faults:
            result.add(_plain(f'"{path}" must validate at least one schema (anyOf)'))
            result.merge(_best(results))
        else:
            result.merge(results[-1])
    if parts := rules.get("oneOf"):
        results = [_check(part, value, path) for part in parts]
        valid = [outcome for outcome in results if not outcome.faults]
        if len(valid) == 1:
            result.merge(valid[0])
        else:
            how_many = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
            result.add(_plain(f'"{path}" must validate one and only one schema (oneOf). {how_many}'))
            if not valid:
                result.merge(_best(results))
    if parts := rules.get("allOf"):
        results = [_check(part, value, path) for part in parts]
        for outcome in results:
            result.merge(outcome)
        if any(outcome.faults for outcome in results):
            some = ". None validated" if all(outcome.faults for outcome in results) else ""
            result.add(_plain(f'"{path}" must validate all the schemas (allOf){some}'))
    if (part := rules.get("not")) is not None and not _check(part, value, path).faults:
        result.add(_plain(f'"{path}" must not validate the schema (not)'))


def _best(results: list[_Result]) -> _Result:
    return max(results, key=lambda result: result.checks)


def _check_string(node: Node, value: str, path: str, result: _Result) -> None:
    rules = node.rules
    if len(value) > rules.get("maxLength", len(value)):
        most = rules["maxLength"]
        why = (
            "value is too long" if most < 0 else f"may not be more than {most} byte{'' if most == 1 else 's'}"
        )
        result.add(Fault("TooLong", path.removeprefix("."), detail=why))
    elif len(value) < rules.get("minLength", 0):
        result.add(_invalid(path, value, f"should be at least {rules['minLength']} chars long"))
    elif (pattern := rules.get("pattern")) and not matches(pattern, value):
        result.add(_invalid(path, value, f"should match '{pattern}'"))
    if node.format and node.type != "integer" and node.type != "number":
        if node.format != "int-or-string":
            result.checks += 1
        if not fits_format(node.format, value):
            result.add(
                Fault(
                    "TypeInvalid",
                    path.removeprefix("."),
                    value,
                    f'{path} in body must be of type {node.format}: "{value}"',
                )
            )


def _check_number(node: Node, value: float, path: str, result: _Result) -> None:
    rules, of_integer = node.rules, node.type == "integer"

    def check_range(what: str, limit: float) -> bool:
        """Return whether a number fits the type; report it if not."""
        bound = _BOUNDS.get(node.format, 0)
        fits = not of_integer or (limit == int(limit) and -bound <= limit < bound)
        if fits and of_integer and limit == -bound and what != "Checked":
            fits = False  # a limit is a float there, whose least value counts as too small
        if not fits:
            kind = f"with format {node.format}" if node.format else "(default format)"
            result.add(_plain(f"{what} value must be of type integer {kind} in {path}"))
        return fits

    check_range("Checked", value)
    if (factor := rules.get("multipleOf")) is not None:
        if check_range("MultipleOf", factor) and isinstance(value, int):
            factor = _whole(factor)
        if factor <= 0:  # as upstream for an integer value and a factor below 1
            why = f"factor MultipleOf declared for {path} must be positive: {number(factor)}"
            result.add(Fault("Invalid", path.removeprefix("."), factor, why))
        elif not _is_multiple(value, factor):
            result.add(_invalid(path, value, f"should be a multiple of {number(factor)}"))
    for name, sign, word in (("minimum", -1, "greater"), ("maximum", 1, "less")):
        if (limit := rules.get(name)) is None:
            continue
        if check_range(f"{name.capitalize()} boundary", limit) and isinstance(value, int):
            limit = _whole(limit)
        excluded = rules.get(f"exclusive{name.capitalize()}", False)
        if value * sign > limit * sign or (excluded and value == limit):
            shown = number(limit)
            why = (
                f"should be {word} than {shown}" if excluded else f"should be {word} than or equal to {shown}"
            )
            result.add(_invalid(path, value, why))


def _whole(limit: float) -> int:
    """Return a limit as Go's int64; one that does not fit becomes the least one."""
    return int(limit) if -(2**63) <= limit < 2**63 else -(2**63)


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return _is_whole(value / factor if factor >= 1 else 1 / factor * value)


def _is_whole(value: float) -> bool:
    near = float(int(value))
    return abs(value) < 2**53 and (
        value == near or (near != 0 and abs(value - near) / (abs(value) + abs(near)) < 1e-9)
    )


def _check_enum(node: Node, value: Any, path: str, result: _Result) -> None:
    fits = (
        value == allowed and isinstance(value, bool) == isinstance(allowed, bool) for allowed in node.enum
    )
    if value is None or not any(fits):  # null is in no enum
        supported = ", ".join(
            show(allowed if isinstance(allowed, str) else show(allowed)) for allowed in node.enum
        )
        result.add(Fault("NotSupported", path.removeprefix("."), value, f"supported values: {supported}"))


def _check_list(node: Node, value: list[Any], path: str, old: Any, result: _Result) -> None:
    result.checks += 2
    if node.items is not None and node.type != "object":
        before = old_items(node, old)
        for number_, element in enumerate(value):
            result.merge(_check(node.items, element, f"{path}[{number_}]", before(element)))
    rules = node.rules
    if len(value) < rules.get("minItems", 0):
        result.add(_invalid(path, len(value), f"should have at least {rules['minItems']} items"))
    if len(value) > rules.get("maxItems", len(value)):
        result.add(_too_many(path, len(value), rules["maxItems"]))


def _too_many(path: str, given: int, most: int) -> Fault:
    items = "item" if most == 1 else "items"
    return Fault("TooMany", path.removeprefix("."), given, f"must have at most {most} {items}")


def old_items(node: Node, old: Any) -> Any:
    """Return a function that finds the old item for a new one, by the keys of a list of type map."""
    if node.list_type != "map" or not isinstance(old, list):
        return lambda _: MISSING
    known: dict[str, Any] = {}
    for item in old:
        known.setdefault(_keys(node, item), item)
    return lambda item: known.get(_keys(node, item), MISSING)


def _keys(node: Node, item: Any) -> str:
    return repr([item.get(key) for key in node.list_keys]) if isinstance(item, dict) else ""


def old_field(old: Any, name: str) -> Any:
    """Return a field of the old value, or MISSING."""
    return old.get(name, MISSING) if isinstance(old, dict) else MISSING


def _check_object(node: Node, value: dict[str, Any], path: str, old: Any, result: _Result) -> None:
    rules = node.rules
    if len(value) < rules.get("minProperties", 0):
        result.add(_invalid(path, len(value), f"should have at least {rules['minProperties']} properties"))
    if len(value) > rules.get("maxProperties", len(value)):
        result.add(_too_many(path, len(value), rules["maxProperties"]))
    for name, entry in value.items():
        known = node.properties.get(name)
        if known is None and rules.get("additionalProperties") is False:
            result.add(
                Fault(
                    "Invalid", path.removeprefix("."), name, f"{path}.{name} in body is a forbidden property"
                )
            )
        elif known is not None:
            below = f"{path}.{name}" if path else name
            result.merge(_check(known, entry, below, old_field(old, name)))
        elif node.items is not None and node.type != "array":
            result.merge(_check(node.items, entry, f"{path}.{name}", old_field(old, name)))
    for name in node.required:
        if name not in value:
            result.add(Fault("Required", f"{path}.{name}".removeprefix(".")))
