"""Declaration: what a CustomResource class says about its resource."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Meta

from ..errors import ConfigError
from ..objects.api_resources import APIResource
from ..objects.labels import label_key_faults, label_value_faults
from .annotations import Column, Scale

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_KIND = re.compile(r"[A-Za-z]([-A-Za-z0-9]{0,57}[A-Za-z0-9])?")
"""At most 59 letters, since the kind of lists, such as WebsiteList, may have 63."""
_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")
_COLUMN_FORMATS = ("int32", "int64", "float", "double", "byte", "date", "date-time", "password")
_PROTECTED = (".k8s.io", ".kubernetes.io")

_MOST_SELECTABLE_FIELDS = 8

_TYPES: dict[str, type | tuple[type, ...]] = {
    "group": str, "version": str, "kind": str, "plural": str, "namespaced": bool, "served": bool, "storage": bool,
    "scale": Scale, "deprecated": (bool, str), "labels": Mapping, "annotations": Mapping, "description_limit": int,
}  # fmt: skip
_ITEMS: dict[str, type] = {
    "short_names": str, "categories": str, "columns": Column, "rules": Meta, "selectable_fields": str,
}  # fmt: skip
"""The types of class arguments; of tuples, those of their items."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The class arguments of a CustomResource; see there. None means that the argument was not given.

    Attributes:
        wrong_types: What is wrong with arguments of another type, which count as not given.
    """

    class_name: str
    group: str = ""
    version: str = ""
    kind: str = ""
    plural: str = ""
    short_names: Collection[str] = ()
    categories: Collection[str] = ()
    namespaced: bool = True
    served: bool = True
    storage: bool | None = None
    scale: Scale | None = None
    columns: Collection[Column] = ()
    rules: Collection[Meta] = field(default=(), hash=False)
    selectable_fields: Collection[str] = ()
    deprecated: bool | str = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    description_limit: int | None = None
    wrong_types: tuple[str, ...] = ()

    @property
    def resource(self) -> APIResource:
        """The resource.

        Raises:
            ConfigError: The names are invalid; the message has all mistakes.
        """
        if mistakes := [*self.mistakes()]:
            raise mistakes_error(self.class_name, mistakes)
        return self.names

    @property
    def names(self) -> APIResource:
        """The resource, unchecked."""
        return APIResource(f"{self.group}/{self.version}", self.plural, self.kind, self.namespaced)

    def mistakes(self) -> Iterator[str]:
        """Yield what is wrong with the arguments, except for paths, which need the schema."""
        if not self.group or not self.version:
            yield (
                f"a group and a version are needed: class {self.class_name}(CustomResource, "
                'group="example.com", version="v1")'
            )
        if self.group and (not _GROUP.fullmatch(self.group) or "." not in self.group):
            yield f"group={self.group!r} must be a domain in lower case with a dot in it, like 'example.com'"
        elif self.group.endswith(_PROTECTED) or self.group in ("k8s.io", "kubernetes.io"):
            yield f"group={self.group!r} is reserved for Kubernetes: use a domain of your own"
        if self.version and not _NAME.fullmatch(self.version):
            yield f"version={self.version!r} must be like 'v1' or 'v1alpha1'"
        if not _KIND.fullmatch(self.kind):
            yield f"kind={self.kind!r} must have letters and digits only, at most 59: give it as kind=…"
        elif not _NAME.fullmatch(self.plural):
            yield f"plural={self.plural!r} must be a name in lower case, like 'websites'"
        for what, given in (("short_names", self.short_names), ("categories", self.categories)):
            for name in given:
                if not _NAME.fullmatch(name):
                    yield f"{what}: {name!r} must be a name in lower case that begins with a letter, at most 63 letters"
        if len(f"{self.plural}.{self.group}") > 253:
            yield f"group={self.group!r} is too long: {self.plural}.{self.group} may have 253 letters"
        for column in self.columns:
            yield from _column_mistakes(column)
        yield from self._more_mistakes()
        yield from self.wrong_types

    def _more_mistakes(self) -> Iterator[str]:
        if isinstance(warning := self.deprecated, str) and not (
            0 < len(warning.encode()) <= 256 and warning.isprintable()
        ):
            yield f"deprecated={warning!r} must have 1 to 256 printable bytes, or be True for the server's own text"
        if self.description_limit is not None and self.description_limit < 0:
            yield f"description_limit={self.description_limit} must be 0, for no descriptions, or more"
        if len(self.selectable_fields) > _MOST_SELECTABLE_FIELDS:
            yield f"selectable_fields: {len(self.selectable_fields)} fields, and servers take at most 8"
        if len({*self.selectable_fields}) < len(self.selectable_fields):
            yield f"selectable_fields={self.selectable_fields!r} has a field twice"
        yield from _pair_mistakes("labels", self.labels)
        yield from _pair_mistakes("annotations", self.annotations)


def _pair_mistakes(what: str, pairs: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what is wrong with labels or annotations."""
    for name, value in pairs.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            yield f"{what}: {name!r}: {value!r} must be two strings"
            continue
        faults = label_key_faults(name if what == "labels" else name.lower())
        if what == "labels":
            faults = [*faults, *label_value_faults(value)]
        if faults:
            yield f"{what}: {name!r}: {value!r}: {'; '.join(faults)}"


def _column_mistakes(column: Column) -> Iterator[str]:
    """Yield what is wrong with a column, except for its path."""
    what = f"the column {column.name!r}"
    if not column.name:
        yield f"the column of {column.path} needs a name"
    if column.type is not None and column.type not in _COLUMN_TYPES:
        yield f"{what}: type={column.type!r} must be one of {', '.join(_COLUMN_TYPES)}"
    if column.format and column.format not in _COLUMN_FORMATS:
        yield f"{what}: format={column.format!r} must be one of {', '.join(_COLUMN_FORMATS)}"
    if not 0 <= column.priority < 2**31:
        yield f"{what}: priority={column.priority} must be 0 for the default view, or more"


def _wrong_type(name: str, value: object) -> str:
    """Return what is wrong with the type of a class argument; ``""`` if it is right."""
    if (wanted := _TYPES.get(name)) is not None:
        names = " or ".join(kind.__name__ for kind in (wanted if isinstance(wanted, tuple) else (wanted,)))
        return "" if isinstance(value, wanted) else f"{name}={value!r} must be a {names}"
    item = _ITEMS[name]
    if isinstance(value, (str, item)) or not isinstance(value, Collection):
        return f"{name}={value!r} must be a tuple: {name}=({value!r},)"
    wrong = [element for element in value if not isinstance(element, item)]
    return f"{name}: {wrong[0]!r} is not a {'Rule' if item is Meta else item.__name__}" if wrong else ""


def plural_of(kind: str) -> str:
    """Return the plural of a kind in lower case, by the rules of English."""
    word = kind.lower()
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}s"


def mistakes_error(class_name: str, mistakes: list[str]) -> ConfigError:
    """Return the error that has all mistakes of a class."""
    if len(mistakes) == 1:
        return ConfigError(f"{class_name}: {mistakes[0]}")
    lines = "".join(f"\n  - {mistake}" for mistake in mistakes)
    return ConfigError(f"{class_name} has {len(mistakes)} mistakes:{lines}")


def inherit(declaration: Declaration | None, given: dict[str, Any], class_name: str) -> Declaration:
    """Return the declaration of a class: what it gives, and the rest from the class that it extends."""
    known = {} if declaration is None else {**declaration.__dict__}
    for name in ("served", "storage", "deprecated"):  # of one version
        known.pop(name, None)
    if "kind" in given:  # another kind has other names
        known.pop("plural", None)
        known.pop("short_names", None)
    wrong = {name: text for name, value in given.items() if (text := _wrong_type(name, value))}
    given = {name: value for name, value in given.items() if name not in wrong}
    wrong_types = (*known.get("wrong_types", ()), *wrong.values())
    said = {**known, **given, "class_name": class_name, "wrong_types": wrong_types}
    said["kind"] = said.get("kind") or class_name
    said["plural"] = said.get("plural") or plural_of(said["kind"])
    return Declaration(**said)
