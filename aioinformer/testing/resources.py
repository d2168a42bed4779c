"""Which resources the server has: `ResourceType` and the registry of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = (None, "beta", "alpha")


class FieldLabel(NamedTuple):
    """A field that a field selector may name.

    Attributes:
        label: Its name in a selector.
        path: Where its value is in the object; the label's own path if empty.
        default: Its value where the object does not have it.
    """

    label: str
    path: str = ""
    default: str = ""

    @property
    def steps(self) -> tuple[str, ...]:
        """The path's keys."""
        return tuple((self.path or self.label).split("."))


class ScalePaths(NamedTuple):
    """Where an object has what its Scale shows.

    Attributes:
        replicas: How many are wanted.
        status_replicas: How many there are.
        selector: Which they are: a label selector as text, or a map of labels.
    """

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".spec.selector.matchLabels"


@dataclass(frozen=True)
class ResourceType:
    """One resource in one version of its API group.

    Attributes:
        group: The API group; empty for the core group.
        version: The version, such as `"v1"`.
        plural: The name in paths, such as `"pods"`.
        kind: The kind of its objects.
        namespaced: Whether its objects live in namespaces.
        short_names: Abbreviations that kubectl takes.
        subresources: `"status"`, `"scale"` and others; with `"status"`, an update of the object leaves its
            status alone and the other way round.
        categories: Groups of resources that kubectl takes, such as `"all"`.
        singular: The singular name; the kind in lower case if empty.
        fields: What field selectors may name besides metadata.name and metadata.namespace.
        custom: Whether it behaves like a custom resource, which differs in details: the items of its lists
            carry their kind, a change of its status changes nothing else, there is no strategic merge patch.
        generation: Whether metadata.generation counts the changes of the spec.
        create_on_update: Whether PUT creates what is not there.
        unconditional_update: Whether PUT works without a resourceVersion; a custom resource's does not.
        scale_paths: Where the scale subresource finds what it shows.
        stored: Whether its objects are kept; those of reviews are answered, and can only be created.
        columns: Printer columns beyond the name for `kubectl get`: (title, JSON path, type, priority).
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)
    categories: tuple[str, ...] = ()
    singular: str = ""
    fields: tuple[FieldLabel, ...] = ()
    custom: bool = True
    generation: bool = True
    create_on_update: bool = False
    unconditional_update: bool = False
    scale_paths: ScalePaths = field(default=ScalePaths())
    stored: bool = True
    columns: tuple[tuple[str, str, str, int], ...] = field(default=(), compare=False)

    @cached_property
    def api_version(self) -> str:
        """`"v1"` or `"apps/v1"`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def group_resource(self) -> str:
        """The name in messages: `"pods"` or `"deployments.apps"`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def verbs(self) -> tuple[str, ...]:
        """What can be done with it, in the order of the real server."""
        if not self.stored:
            return ("create",)
        if self.custom:
            return ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
        some = () if (self.group, self.plural) == ("", "namespaces") else ("deletecollection",)
        return ("create", "delete", *some, "get", "list", "patch", "update", "watch")

    @cached_property
    def has_status(self) -> bool:
        """Whether status is a subresource."""
        return "status" in self.subresources

    @cached_property
    def prefix(self) -> bytes:
        """How every object of this type begins: kind and apiVersion, in the order of the real server."""
        kind = msgspec.json.encode(self.kind)
        api_version = msgspec.json.encode(self.api_version)
        if self.custom:
            return b'{"apiVersion":' + api_version + b',"kind":' + kind + b","
        return b'{"kind":' + kind + b',"apiVersion":' + api_version + b","

    @cached_property
    def item_prefix(self) -> bytes:
        """How an item of a list begins: items of built-in lists carry neither kind nor apiVersion."""
        return self.prefix if self.custom else b"{"


def verbs_of(subresource: str) -> tuple[str, ...]:
    """What can be done with a subresource."""
    if subresource in ("binding", "eviction"):
        return ("create",)
    return ("update",) if subresource == "finalize" else ("get", "patch", "update")


class Registry:
    """The resources that exist, in the order of their registration."""

    def __init__(self, types: Iterable[ResourceType] = ()) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        for resource in types:
            self.add(resource)

    def add(self, resource: ResourceType) -> None:
        """Add a type, in place of an older one of the same name."""
        self._types[resource.group, resource.version, resource.plural] = resource

    def remove(self, group: str, plural: str) -> None:
        """Remove a resource in all its versions."""
        for key in [key for key in self._types if key[0] == group and key[2] == plural]:
            del self._types[key]

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """The type at a path, or None."""
        return self._types.get((group, version, plural))

    def of_kind(self, group: str, kind: str) -> ResourceType | None:
        """The resource whose objects are of a kind, in any of its versions, or None."""
        return next((t for t in self._types.values() if t.group == group and t.kind == kind), None)

    def names(self) -> set[str]:
        """What resources can be called: their plurals, alone and with their groups."""
        plurals = {t.plural for t in self._types.values()}
        return plurals | {f"{t.plural}.{t.group}" for t in self._types.values() if t.group}

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(list(self._types.values()))

    def group_versions(self) -> dict[str, list[str]]:
        """The versions of each group, the preferred one first; the groups in the order of their registration."""
        groups: dict[str, set[str]] = {}
        for group, version, _ in self._types:
            groups.setdefault(group, set()).add(version)
        return {group: sorted(versions, key=_priority) for group, versions in groups.items()}


def _priority(version: str) -> tuple[int, int, int, str]:
    """Where a version stands among others: v2, v1, v2beta1, v1beta1, v1alpha1, and then what is named otherwise."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return len(_STAGES), 0, 0, version
    major, stage, minor = found.groups()
    return _STAGES.index(stage), -int(major), -int(minor or 0), version
