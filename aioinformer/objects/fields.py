"""Reads single fields by path: ``field("spec.nodeName")`` works on all object types and decodes nothing else."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

from .._core.checks import require_text
from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError
from .class_types import type_info
from .decoders import DECODE_ERRORS, class_of
from .json_values import same
from .kube_object import KubeObject, on_path, read_labels

_STEP = re.compile(
    r"""\.?(?P<name>[A-Za-z_$][A-Za-z0-9_$-]*)"""
    r"""|\['(?P<quoted>[^']+)'\]"""
    r"""|\["(?P<double>[^"]+)"\]"""
    r"""|\[(?P<all>\*)\]"""
    r"""|\[(?P<number>[0-9]{1,6})\]"""
)

_Step = str | int
"""A field's name, an element's index, or _ALL."""

_ALL = -1
"""A step to every element of a list."""

_SEVERAL = (list, tuple, set, frozenset)
"""Types of Struct fields that are JSON lists."""

_SNAKE_CASE = re.compile(r"(?P<parent>metadata|spec|status)\.(?P<name>[a-z0-9]+(_[a-z0-9]+)+)(?=[.[]|$)")

_AT_HAND: dict[str, Callable[[KubeObject], str]] = {
    "metadata.name": lambda obj: obj.name,
    "metadata.namespace": lambda obj: obj.namespace,
    "metadata.uid": lambda obj: obj.uid,
    "metadata.resourceVersion": lambda obj: obj.resource_version,
}


def field(path: str) -> Field:
    """Return a reader of the field at a path: ``field("spec.nodeName")(obj)``.

    The path uses the names in JSON: ``"spec.nodeName"``, ``"metadata.labels['app.kubernetes.io/name']"``,
    ``"spec.containers[*].image"`` for all elements, ``"spec.containers[0].image"`` for the first.

    Raises:
        ConfigError: It is not a path, or it has the names of a model, such as ``"spec.node_name"``.
    """
    require_text("the path of a field", path, "spec.nodeName")
    return _field(path)


class Field:
    """Reads one field of objects of all types. Get one from ``field``.

    Of a KubeObject only the path is decoded. A missing field is None; with ``[*]`` it is left out.

    Args:
        path: As for ``field``.
        in_place: Whether ``[*]`` keeps positions, to compare objects: nested lists for further ``[*]``, and None for
            missing fields.

    Attributes:
        path: The path.
    """

    __slots__ = ("_along", "_decode", "_many", "_read", "_steps", "_wanted", "path")

    def __init__(self, path: str, *, in_place: bool = False) -> None:
        self.path = path
        self._steps = _parse(path)
        self._many = _ALL in self._steps
        self._along = _at if not self._many else _in_place if in_place else _every
        self._decode = _decoder(self._steps)
        self._wanted = on_path(*(step for step in self._steps if isinstance(step, str)))
        self._read = self._reader()

    def __call__(self, obj: Any) -> Any:
        """Return the field's value; with ``[*]`` a list of values. Values of a KubeObject are copies.

        Args:
            obj: A KubeObject, dict, Struct or model; or a tombstone, whose last state is read; or None, which has no
                fields.

        Raises:
            DecodeError: The object cannot be read.
            ConfigError: It is not an object, but for instance a WatchEvent or a Change.
        """
        if isinstance(obj, DeletedFinalStateUnknown):
            obj = obj.obj
        if isinstance(obj, KubeObject):
            return self._read(obj)
        if not _may_have(type(obj), self._steps[0]):  # type: ignore[arg-type]  # classes are hashable
            raise ConfigError(
                f"{self!r} reads an object, such as event.object of a WatchEvent or change.new of a Change, "
                f"not a {type(obj).__name__}"
            )
        return self._along(obj, self._steps, _member)

    def values(self, obj: Any) -> list[str]:
        """Return the values for an index: strings as they are, other values as in JSON.

        Raises:
            DecodeError: The object cannot be read.
            TypeError: The value is an object or a list.
        """
        value = self(obj)
        if value is None:
            return []
        if isinstance(value, str):
            return [value]
        return [self._text(value) for value in (value if self._many else [value])]

    def equals(self, *wanted: Any) -> Callable[[Any], bool]:
        """Return a predicate for listers and filters: whether the field, or with ``[*]`` any value, is one of these."""

        def is_wanted(value: Any) -> bool:
            return value in wanted and any(same(value, other) for other in wanted)

        if self._many:
            return lambda obj: any(map(is_wanted, self(obj)))
        return lambda obj: is_wanted(self(obj))

    def require_known(self, object_type: Any) -> None:
        """Check that an object type has the field. Structs drop fields that they do not name.

        Args:
            object_type: The object type. Types other than Structs have all fields.

        Raises:
            ConfigError: The Struct does not name the field.
        """
        kind = class_of(object_type)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not issubclass(kind, KubeObject):
            missing = _missing(type_info(object_type), self._steps)
            if missing:
                raise ConfigError(f"{self.path!r} is no field of a {kind.__name__}: {missing}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Field, (self.path,)) if self._along is not _in_place else (_in_place_field, (self.path,))

    def __repr__(self) -> str:
        return f"field({self.path!r})"

    def _reader(self) -> Callable[[KubeObject], Any]:
        """Return the fastest reader of KubeObjects for this path."""
        steps, along = self._steps, self._along
        if (at_hand := _AT_HAND.get(self.path)) is not None:
            return lambda obj: at_hand(obj) or None
        if steps[:2] == ("metadata", "labels") and (inside := steps[2:]):
            return lambda obj: along(read_labels(obj), inside, _member)
        if steps[0] in ("apiVersion", "kind"):  # the bytes may not have them
            return lambda obj: along(obj, steps, _member)
        if steps[0] == "spec" and (decode := _decoder(steps[1:])) is not None:
            return lambda obj: self._of_spec(obj, decode)
        return self._decode_all

    def _of_spec(self, obj: KubeObject, decode: Callable[[bytes | msgspec.Raw], Any]) -> Any:
        """Read a field of the spec, without a scan of the rest of the object."""
        try:
            spec = decode(obj._spec) if obj._spec else None
        except DECODE_ERRORS:
            spec = None
        return self._decode_all(obj) if spec is None else self._along(spec, self._steps[1:], _value)

    def _decode_all(self, obj: KubeObject) -> Any:
        if (fields := obj._fields(self._wanted)) is not None:
            return self._along(fields, self._steps, _member)
        try:
            decoded = None if self._decode is None else self._decode(obj.raw)
        except DECODE_ERRORS:
            decoded = None
        if decoded is None:  # of another type or not JSON: read the top-level field, which raises the error
            return self._along(obj, self._steps, _member)
        return self._along(decoded, self._steps, _value)

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        plain = None
        with suppress(TypeError):  # a class that msgspec does not know
            plain = msgspec.to_builtins(value)  # such as an Enum's value, or a datetime as in JSON
        if isinstance(plain, str):
            return plain
        if isinstance(plain, (bool, int, float)):
            return msgspec.json.encode(plain).decode()
        raise TypeError(f"{self.path} is a {type(value).__name__}, which is no value to list an object under")


def _in_place_field(path: str) -> Field:
    """Unpickle a Field with ``in_place``."""
    return Field(path, in_place=True)


def _parse(path: str) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    position = 0
    while match := _STEP.match(path, position):
        if match["all"]:
            steps.append(_ALL)
        elif match["number"]:
            steps.append(int(match["number"]))
        else:
            steps.append(match["name"] or match["quoted"] or match["double"])
        position = match.end()
    if position < len(path) or not steps or not isinstance(steps[0], str):
        raise ConfigError(
            f"{path!r} is no path of a field, such as spec.nodeName, metadata.labels['app'] or "
            "spec.containers[*].image"
        )
    if match := _SNAKE_CASE.match(path):
        raise ConfigError(
            f"{path!r}: a path has the names of the JSON, such as spec.nodeName and status.podIP; a custom resource's "
            f"that has an underscore there is written as {match['parent']}['{match['name']}']"
        )
    return tuple(steps)


def _decoder(steps: tuple[_Step, ...]) -> Callable[[bytes | msgspec.Raw], Any] | None:
    """Return a decoder of one path that skips all other fields; None for names that msgspec does not accept."""
    shape: Any = Any
    for step in reversed(steps):
        if isinstance(step, str):
            wanted = msgspec.field(name=step, default=None)
            try:
                shape = msgspec.defstruct("Path", [("value", shape | None, wanted)], gc=False)
            except (TypeError, ValueError):
                return None
        else:
            shape = list[shape]
    return msgspec.json.Decoder(shape).decode


_Member = Callable[[Any, str], Any]


def _at(value: Any, steps: tuple[_Step, ...], member: _Member) -> Any:
    """Return the value at the end of steps without _ALL."""
    for step in steps:
        if value is None:
            return None
        value = member(value, step) if isinstance(step, str) else _element(value, step)
    return value


def _every(value: Any, steps: tuple[_Step, ...], member: _Member) -> list[Any]:
    """Return all values at the end of the steps."""
    return list(_elements_at(value, steps, 0, member))


def _in_place(value: Any, steps: tuple[_Step, ...], member: _Member) -> Any:
    """Return all values at the end of the steps, in lists of the same positions as in the object."""
    if _ALL not in steps:
        return _at(value, steps, member)
    first_all = steps.index(_ALL)
    elements = _at(value, steps[:first_all], member)
    if not isinstance(elements, _SEVERAL):
        return None
    return [_in_place(element, steps[first_all + 1 :], member) for element in elements]


def _elements_at(value: Any, steps: tuple[_Step, ...], at: int, member: _Member) -> Iterator[Any]:
    """Yield all values at the end of the steps from position ``at`` on."""
    for position in range(at, len(steps)):
        step = steps[position]
        if step == _ALL:
            for element in value if isinstance(value, _SEVERAL) else ():
                yield from _elements_at(element, steps, position + 1, member)
            return
        value = member(value, step) if isinstance(step, str) else _element(value, step)
        if value is None:
            return
    if value is not None:  # an element may be null
        yield value


def _element(value: Any, number: int) -> Any:
    return value[number] if isinstance(value, (list, tuple)) and number < len(value) else None


def _value(wrapper: Any, name: str) -> Any:
    """Return the next level of a value that ``_decoder`` decoded."""
    return wrapper.value


def _member(parent: Any, name: str) -> Any:
    """Return a field by its name in JSON, of any object type."""
    kind = type(parent)
    if kind is dict:
        return parent.get(name)
    attributes = _attributes(kind)  # type: ignore[arg-type]  # classes are hashable
    if attributes is None:
        return parent.get(name)
    attribute = attributes.get(name)
    value = None if attribute is None else getattr(parent, attribute, None)
    return None if value is msgspec.UNSET else value


_field = lru_cache(maxsize=1024)(Field)


@lru_cache(maxsize=1024)
def _may_have(kind: Any, step: _Step) -> bool:
    """Return whether a type has metadata or this field, so that its values can be read. NoneType counts, too."""
    attributes = _attributes(kind)
    return kind is type(None) or attributes is None or "metadata" in attributes or step in attributes


def _missing(kind: inspect.Type, steps: tuple[_Step, ...]) -> str:
    """Describe the first step that a type has no field for; "" if it has all, or if a type on the way is open."""
    if not steps:
        return ""
    if isinstance(kind, inspect.Metadata):
        return _missing(kind.type, steps)
    if isinstance(kind, inspect.UnionType):
        missing = [_missing(part, steps) for part in kind.types if not isinstance(part, inspect.NoneType)]
        return "" if "" in missing else missing[0]
    step, rest = steps[0], steps[1:]
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType)) and isinstance(step, int):
        return _missing(kind.item_type, rest)
    if not isinstance(kind, (inspect.StructType, inspect.TypedDictType, inspect.DataclassType)):
        return ""
    known = {part.encode_name: part.type for part in kind.fields}
    if getattr(kind, "keeps_unknown", False):
        return _missing(known[str(step)], rest) if step in known else ""
    if step in known:
        return _missing(known[str(step)], rest)
    return f"{kind.cls.__name__} has no {step}, but {', '.join(known) or 'nothing'}"


@lru_cache(maxsize=1024)
def _attributes(kind: type[Any]) -> Mapping[str, str] | None:
    """Return the attributes of a Struct, dataclass or model by their names in JSON; None for mappings."""
    if issubclass(kind, Mapping):
        return None
    if issubclass(kind, msgspec.Struct):
        return {info.encode_name: info.name for info in msgspec.structs.fields(kind)}
    if dataclasses.is_dataclass(kind):
        return {info.name: info.name for info in dataclasses.fields(kind)}
    if hasattr(kind, "attribute_map"):
        return {json: name for name, json in kind.attribute_map.items()}
    fields = getattr(kind, "model_fields", {})
    return {info.serialization_alias or info.alias or name: name for name, info in fields.items()}
