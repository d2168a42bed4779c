"""The server's resources: `ResourceType` and the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping  # a public annotation
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from aioinformer.testing.errors import in_group
from aioinformer.testing.schema.definition import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = (None, "beta", "alpha")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


@dataclass(frozen=True)
class FieldLabel:
    """A field that field selectors can use.

    Attributes:
        label: Its name in a selector.
        path: Its path in the object; the label if empty.
        default: Its value for an object without the field.
    """

    label: str
    path: str = ""
    default: str = ""

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The keys of the path."""
        return tuple((self.path or self.label).split("."))


class PrinterColumn(NamedTuple):
    """A column of `kubectl get` for a custom resource.

    Attributes:
        name: Its title.
        path: The JSON path of its value, such as `.spec.replicas`.
        type: `string`, `integer`, `number`, `boolean` or `date`.
        priority: 0 shows it always, another number only with `-o wide`.
        format: The format of the type; clients may ignore it.
        description: What its value means.
    """

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


class Subresource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subresource as discovery shows it; without group and version if they are those of its resource."""

    group: str = ""
    version: str = ""
    kind: str
    verbs: tuple[str, ...]


class ScalePaths(NamedTuple):
    """The paths of the fields that an object's Scale shows.

    Attributes:
        replicas: The wanted replicas.
        status_replicas: The current replicas.
        selector: A label selector as text, or a map of labels.
    """

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".spec.selector.matchLabels"


class Conversion(NamedTuple):
    """How the objects of a resource are stored as those of another group, which shows them, too.

    Attributes:
        group: The other group; the resource has the same plural name there.
        to_stored: Returns an object as the other group has it.
        from_stored: Returns an object of the other group as this resource has it.
    """

    group: str
    to_stored: Callable[[dict[str, Any]], dict[str, Any]]
    from_stored: Callable[[dict[str, Any]], dict[str, Any]]


class WebhookStorage(NamedTuple):
    """How a custom resource is stored whose definition has a conversion webhook.

    Attributes:
        version: The resource in the stored version.
        client_config: Where the webhook is.
    """

    version: ResourceType
    client_config: dict[str, Any]


@dataclass(frozen=True)
class ResourceType:
    """A resource in a version of its API group.

    Attributes:
        group: The API group; empty for the core group.
        version: The version, such as `"v1"`.
        plural: The name in paths, such as `"pods"`.
        kind: The kind of its objects.
        namespaced: Whether its objects are namespaced; False for cluster-scoped objects.
        short_names: Short names for kubectl.
        subresources: `"status"`, `"scale"` and others. With `"status"`, an update of the object keeps its status, and
            an update of the status keeps the object.
        categories: Groups of resources for kubectl, such as `"all"`.
        singular: The singular name; the kind in lower case if empty.
        fields: The fields that field selectors can use besides metadata.name and metadata.namespace.
        custom: Whether it behaves like a custom resource: list items have their kind, a status update changes only
            the status, and there is no strategic merge patch.
        generation: Whether metadata.generation counts the changes of the spec.
        create_on_update: Whether PUT creates a missing object.
        unconditional_update: Whether PUT works without a resourceVersion; False for custom resources.
        returns_deleted: Whether the answer to a delete has the object instead of a `Status`.
        scale_paths: The fields of the scale subresource.
        verbs: Its verbs, in the real server's order.
        stored: Whether the server stores its objects. Reviews are not stored; they can only be created.
        warning: What the server warns of in its answers, if it is deprecated.
        conversion: How its objects are stored, if as those of another group.
        storage: How its objects are stored, if a webhook converts them.
        columns: Printer columns beyond the name for `kubectl get`; without any, a custom resource shows its age.
        schema: The schema of a custom resource from its definition; without one all fields are kept.
        built_in_subresources: What the real server's discovery tells of the subresources of a built-in resource.
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
    returns_deleted: bool = False
    scale_paths: ScalePaths = field(default=ScalePaths())
    verbs: tuple[str, ...] = _CUSTOM_VERBS
    stored: bool = True
    warning: str = ""
    conversion: Conversion | None = None
    storage: WebhookStorage | None = field(default=None, repr=False)
    columns: tuple[PrinterColumn, ...] = field(default=(), compare=False)
    schema: Schema | None = field(default=None, repr=False)
    built_in_subresources: Mapping[str, Subresource] = field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        return hash((self.group, self.version, self.plural))  # all fields take long

    @cached_property
    def api_version(self) -> str:
        """`"v1"` or `"apps/v1"`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def group_resource(self) -> str:
        """The name in messages: `"pods"` or `"deployments.apps"`."""
        return in_group(self.plural, self.group)

    @cached_property
    def group_kind(self) -> str:
        """The kind in messages: `"Pod"` or `"Deployment.apps"`."""
        return in_group(self.kind, self.group)

    @cached_property
    def stored_group(self) -> str:
        """The group under which its objects are stored."""
        return self.group if self.conversion is None else self.conversion.group

    @cached_property
    def is_converted(self) -> bool:
        """True if its objects are stored in another version, and a webhook converts them."""
        return self.storage is not None and self.storage.version.version != self.version

    @cached_property
    def stored_type(self) -> ResourceType:
        """The resource in the version in which its objects are stored."""
        return self.storage.version if self.storage is not None and self.is_converted else self

    @cached_property
    def has_status(self) -> bool:
        """True if status is a subresource."""
        return "status" in self.subresources

    def subresource(self, name: str) -> Subresource:
        """Return what discovery tells of a subresource."""
        if name in self.built_in_subresources:
            return self.built_in_subresources[name]
        verbs = ("get", "patch", "update")
        if name == "scale":
            return Subresource(group="autoscaling", version="v1", kind="Scale", verbs=verbs)
        return Subresource(kind=self.kind, verbs=verbs)

    def subresource_type(self, name: str) -> ResourceType:
        """Return the type of a subresource's objects, such as a Scale."""
        subresource = self.subresource(name)
        group, version = subresource.group or self.group, subresource.version or self.version
        return ResourceType(group, version, self.plural, subresource.kind, custom=False)

    @cached_property
    def prefix(self) -> bytes:
        """The start of an object's JSON: kind and apiVersion, in the real server's order."""
        kind = msgspec.json.encode(self.kind)
        api_version = msgspec.json.encode(self.api_version)
        if self.custom:
            return b'{"apiVersion":' + api_version + b',"kind":' + kind + b","
        return b'{"kind":' + kind + b',"apiVersion":' + api_version + b","

    @cached_property
    def item_prefix(self) -> bytes:
        """The start of a list item's JSON: items of built-in lists have neither kind nor apiVersion."""
        return self.prefix if self.custom else b"{"


class Registry:
    """The registered resources, in the order of registration."""

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        for resource in types:
            self.add(resource)

    def add(self, resource: ResourceType) -> None:
        """Add a type, or replace the type of the same name."""
        self._types[resource.group, resource.version, resource.plural] = resource

    def remove(self, group: str, plural: str) -> None:
        """Remove a resource in all its versions."""
        for key in [key for key in self._types if key[0] == group and key[2] == plural]:
            del self._types[key]

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the type of a group, version and plural, or None."""
        return self._types.get((group, version, plural))

    def of_kind(self, group: str, kind: str) -> ResourceType | None:
        """Return the resource of a kind in any version, or None."""
        return next((t for t in self._types.values() if t.group == group and t.kind == kind), None)

    def of_version(self, group: str, version: str) -> list[ResourceType]:
        """Return the resources of a version of a group."""
        return [resource for resource in self if (resource.group, resource.version) == (group, version)]

    def has_builtin(self, group: str) -> bool:
        """Return whether a group has a built-in resource; unknown paths in it then get a Status."""
        return any(resource.group == group and not resource.custom for resource in self)

    def names(self) -> set[str]:
        """Return the plural names of all resources, with and without their groups."""
        plurals = {t.plural for t in self._types.values()}
        return plurals | {f"{t.plural}.{t.group}" for t in self._types.values() if t.group}

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(list(self._types.values()))

    def group_versions(self) -> dict[str, list[str]]:
        """Return the versions of each group, preferred first; the groups are in the order of registration."""
        groups: dict[str, set[str]] = {}
        for group, version, _ in self._types:
            groups.setdefault(group, set()).add(version)
        return {group: sorted(versions, key=priority) for group, versions in groups.items()}


def priority(version: str) -> tuple[int, int, int, str]:
    """Return a sort key that orders versions as v2, v1, v2beta1, v1beta1, v1alpha1, then all others."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STAGES), 0, 0, version
    major, stage, minor = match.groups()
    return _STAGES.index(stage), -int(major), -int(minor or 0), version
