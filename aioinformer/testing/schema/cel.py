"""Rules in CEL, compiled and evaluated by cel-expr-python: Google's C++ runtime, imported for the first rule."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.schema.cel_functions import FUNCTIONS
from aioinformer.testing.schema.node import OF_EVERY_OBJECT

if TYPE_CHECKING:
    from aioinformer.testing.schema.node import Node

# Functions of the real server that the runtime lacks, and its own that Kubernetes extends.
_LACKING = {
    *("all", "exists", "existsOne", "exists_one", "transformList", "transformMap", "transformMapEntry"),
    *("format", "validate", "flatten", "slice", "sort", "sortBy", "distinct", "range", "first", "last"),
    *("reverse", "indexOf", "lastIndexOf", "string", "authorizer"),
}
_UNKNOWN = re.compile(r"(?:undeclared reference to|found no matching overload for) '([\w.]+)'")
_CODE = re.compile(r"^[A-Z_]+: ")
_RUNTIME_ERRORS = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile("^divide by zero"), "division by zero"),
    (re.compile("^No matching overloads found.*"), "no such overload"),
)


class InvalidRuleError(Exception):
    """A rule does not compile; the message is the compiler's."""


class NotEnforcedError(Exception):
    """The real server knows the rule, and the embedded one cannot evaluate it."""


class EvaluationError(Exception):
    """The evaluation of a rule failed."""


class Program:
    """A compiled expression.

    Attributes:
        uses_old: Whether it reads `oldSelf`.
    """

    def __init__(self, expression: Any, *, uses_old: bool, optional_old: bool) -> None:
        self.uses_old = uses_old
        self._expression = expression
        self._optional_old = optional_old

    def __call__(self, value: Any, old: Any = None) -> Any:
        """Return the value of the expression.

        Raises:
            EvaluationError: With the message of the real server for the common errors.
        """
        data = {"self": value}
        if self.uses_old:
            data |= {"has_old": old is not None, "old": old} if self._optional_old else {"oldSelf": old}
        try:
            return _value(self._expression.eval(data=data))
        except RuntimeError as error:  # such as more iterations than the runtime does
            raise EvaluationError(_CODE.sub("", str(error))) from error


def _value(result: Any) -> Any:
    if result.type().name() == "ERROR":
        message = _CODE.sub("", str(result.value()))
        for pattern, replacement in _RUNTIME_ERRORS:
            message = pattern.sub(replacement, message)
        raise EvaluationError(message)
    return result.value()


def compile_expression(
    source: str, node: Node, *, returns: str = "BOOL", optional_old: bool = False
) -> Program:
    """Compile an expression about values of a schema.

    Args:
        source: The expression.
        node: The schema of `self`.
        returns: The type that it must return: `"BOOL"` or `"STRING"`.
        optional_old: Whether `oldSelf` is an optional value, which a new object has too.

    Raises:
        InvalidRuleError: It does not compile.
        NotEnforcedError: The runtime is not installed, or lacks a function.
    """
    type_of_self, uses_old = _type_of(node), False
    if undefined := undefined_field(source, node):
        raise InvalidRuleError(f"compilation failed: {undefined}")
    try:
        expression = _environment(type_of_self).compile(source)
    except RuntimeError as error:
        if "undeclared reference to 'oldSelf" not in str(error):
            raise _refusal(str(error)) from None
        uses_old = True
        if optional_old:
            source = f"cel.bind(oldSelf, has_old ? optional.of(old) : optional.none(), ({source}))"
        try:
            expression = _environment(type_of_self, "optional" if optional_old else "old").compile(source)
        except RuntimeError as error:
            raise _refusal(str(error)) from None
    if expression.return_type().name() not in (returns, "DYN"):
        raise InvalidRuleError(
            "cel expression must evaluate to a bool" if returns == "BOOL" else "must evaluate to a string"
        )
    return Program(expression, uses_old=uses_old, optional_old=optional_old)


class Condition:
    """A compiled match condition of an admission webhook."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def __call__(self, obj: Any, old: Any, request: Any) -> bool:
        """Return whether a request meets it.

        Raises:
            EvaluationError: With the message of the real server for the common errors.
        """
        data = {"object": obj, "oldObject": old, "request": request}
        return bool(_value(self._expression.eval(data=data)))


@lru_cache(maxsize=256)
def condition(source: str) -> Condition:
    """Compile a match condition.

    Raises:
        InvalidRuleError: It does not compile.
        NotEnforcedError: The runtime is not installed, or lacks a function.
    """
    environment = _environment_of(("object", "dyn"), ("oldObject", "dyn"), ("request", "dyn"))
    try:
        expression = environment.compile(source)
    except RuntimeError as error:
        raise _refusal(str(error)) from None
    if (returns := expression.return_type().name()) not in ("BOOL", "DYN"):
        raise InvalidRuleError(f"must evaluate to bool but got {returns.lower()}")
    return Condition(expression)


_STRING = re.compile(r"""[rR]?(?:\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')""")
_FIELDS = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*(?!\w|\s*\())+)")


def undefined_field(source: str, node: Node) -> str:
    """Return the compiler's message for a field of `self` that the schema lacks, or `""`.

    Objects are dynamic for the runtime, so that it cannot tell.
    """
    plain = _STRING.sub(lambda match: "_" * len(match[0]), source)
    for match in _FIELDS.finditer(plain):
        place, column = node, match.start(1)
        for name in match[1].split(".")[1:]:
            known = place.properties
            if not known or place.items is not None or (place.is_embedded and name in OF_EVERY_OBJECT):
                break
            fields = {escape(name): part for name, part in known.items()}
            if name not in fields:
                lines = plain[:column].split("\n")
                row, shown = len(lines), source.split("\n")[len(lines) - 1]
                at = len(lines[-1])
                return f"ERROR: <input>:{row}:{at + 1}: undefined field '{name}'\n | {shown}\n | {'.' * at}^"
            place, column = fields[name], column + 1 + len(name)
    return ""


_RESERVED = {
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
    *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
}
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@cache
def escape(name: str) -> str:
    """Return a field's name in CEL; `""` if rules cannot read the field."""
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][\w./-]*", name, re.ASCII):
        return ""
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)


def _refusal(message: str) -> Exception:
    text = message.partition(": ")[2].rpartition(" [")[0]
    if lacking := {*_UNKNOWN.findall(text)} & _LACKING:
        return NotEnforcedError(f"the embedded server cannot evaluate {', '.join(sorted(lacking))}")
    return InvalidRuleError(f"compilation failed: {text}")


def _type_of(node: Node) -> str:
    """Return the type of a value in CEL; objects are dynamic."""
    match node.type:
        case "string":
            return _TEXTS.get(node.format, "string")
        case "integer" | "number" | "boolean":
            return {"integer": "int", "number": "double", "boolean": "bool"}[node.type]
        case "array" if node.items is not None:
            return f"list({_type_of(node.items)})"
    return "dyn" if node.format == "int-or-string" else "object"


_TEXTS = {"byte": "bytes", "date": "timestamp", "date-time": "timestamp", "duration": "duration"}


def _environment(type_of_self: str, old: str = "") -> Any:
    """Return an environment with `self`, and with `oldSelf` if wanted."""
    if old == "optional":
        return _environment_of(("self", type_of_self), ("has_old", "bool"), ("old", "dyn"))
    return _environment_of(("self", type_of_self), *([("oldSelf", type_of_self)] if old else ()))


@cache
def _environment_of(*variables: tuple[str, str]) -> Any:
    """Return an environment with variables of these types."""
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings
    except ImportError:
        why = "the rule needs cel-expr-python, which is not installed: pip install 'aioinformer[cel]'"
        raise NotEnforcedError(why) from None
    types = cel.Type

    def type_named(name: str) -> Any:
        if name.startswith("list("):
            return types.List(type_named(name[5:-1]))
        if name == "object":
            return types.Map(types.STRING, types.DYN)
        return getattr(types, name.upper())

    simple = {"any": types.DYN, "list": types.List(types.DYN)}
    named: dict[str, list[Any]] = {}
    for number, function in enumerate(FUNCTIONS):
        overload = cel.Overload(
            f"{function.name}_{number}",
            return_type=simple.get(function.returns) or type_named(function.returns),
            parameters=[simple.get(name) or type_named(name) for name in function.parameters],
            is_member=function.is_member,
            impl=function.call,
        )
        named.setdefault(function.name, []).append(overload)
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional()]
    if ("has_old", "bool") in variables:
        extensions.append(ext_bindings.ExtBindings())
    return cel.NewEnv(
        variables={name: type_named(kind) for name, kind in variables},
        extensions=extensions,
        functions=[cel.FunctionDecl(name, overloads) for name, overloads in named.items()],
    )
