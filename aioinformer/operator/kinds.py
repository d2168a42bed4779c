"""The resources that an operator declares, as far as they are known without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Generic, NamedTuple, TypeVar, overload

from .._core.checks import LABEL, is_subdomain
from ..client.lookup import resource_of_class
from ..errors import ConfigError, SelectorError
from ..listwatch.collection import require_selectors
from ..objects.api_resources import APIResource, built_in, did_you_mean
from ..objects.kube_object import KubeObject
from ..objects.labels import LabelSelector
from ..store import IndexFunc
from ..typed import CustomResource, crd

T = TypeVar("T")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Kind(Generic[T]):
    """A resource with the type of its objects, its indexes and selectors. Use it in place of a class or a name.

    Kinds of one resource share a cache if they have the same object type and the same selectors.

    ::

        PODS = Kind("pods", Pod, indexers={"node": "spec.nodeName"})

        pods = await context.resource(PODS).by_index("node", "node-1")  # a list of Pods

    Args:
        resource: A class, or a name such as ``"pods"``.
        object_type: After a name, the type of its objects; KubeObject if not given.
        indexers: The indexes of its cache: functions of an object, or paths, by name.
        label_selector: As kubectl's ``-l``: the cache has only these objects, and only they trigger reconciles.
        field_selector: As kubectl's ``--field-selector``, likewise.
        optional: Whether the server may lack it, because others install its definition: for a class. It counts as empty
            until its definition comes, and again when that is gone; the operator is ready meanwhile. ``Operator`` does
            not install the definition.
        namespaced: Whether objects live in namespaces. It counts for a custom resource that is named by its plural and
            group; the scope of others is known.
    """

    resource: str | type[T]
    object_type: type[T] | None = None
    indexers: Mapping[str, IndexFunc[T] | str] = field(default_factory=dict)
    label_selector: str = ""
    field_selector: str = ""
    optional: bool = False
    namespaced: bool = True

    @overload
    def __init__(
        self: Kind[KubeObject],
        resource: str,
        *,
        indexers: Mapping[str, IndexFunc[KubeObject] | str] = ...,
        label_selector: str = ...,
        field_selector: str = ...,
        optional: bool = ...,
        namespaced: bool = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        resource: str,
        object_type: type[T],
        *,
        indexers: Mapping[str, IndexFunc[T] | str] = ...,
        label_selector: str = ...,
        field_selector: str = ...,
        optional: bool = ...,
        namespaced: bool = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        resource: type[T],
        *,
        indexers: Mapping[str, IndexFunc[T] | str] = ...,
        label_selector: str = ...,
        field_selector: str = ...,
        optional: bool = ...,
    ) -> None: ...

    def __init__(
        self,
        resource: str | type[Any],
        object_type: type[Any] | None = None,
        *,
        indexers: Mapping[str, IndexFunc[Any] | str] | None = None,
        label_selector: str = "",
        field_selector: str = "",
        optional: bool = False,
        namespaced: bool = True,
    ) -> None:
        object.__setattr__(self, "resource", resource)
        object.__setattr__(self, "object_type", object_type)
        object.__setattr__(self, "indexers", indexers or {})
        object.__setattr__(self, "label_selector", label_selector)
        object.__setattr__(self, "field_selector", field_selector)
        object.__setattr__(self, "optional", optional)
        object.__setattr__(self, "namespaced", namespaced)

    def __repr__(self) -> str:
        """Return how a program makes it, without the defaults."""
        named = [part for part in (self.resource, self.object_type) if part is not None]
        shown = [kind.__name__ if isinstance(kind, type) else repr(kind) for kind in named]
        options = ("indexers", "label_selector", "field_selector", "optional")
        shown += [f"{option}={value!r}" for option in options if (value := getattr(self, option))]
        return f"Kind({', '.join(shown)}{'' if self.namespaced else ', namespaced=False'})"


ResourceReference = str | type[Any] | Kind[Any]
"""A resource: ``"pods"``, ``"deploy"``, ``"certificates.cert-manager.io"``, the class of its objects, or a Kind."""


def resource_named(named: ResourceReference) -> APIResource:
    """Return the resource that a declaration names.

    Of a custom resource that is named by its plural and group, version and kind are empty: discovery finds them for a
    run. It counts as namespaced unless a Kind says otherwise.

    Raises:
        ConfigError: The name or class does not name a resource, or the label selector of a Kind cannot be parsed. The
            message has all mistakes of a class.
    """
    if isinstance(named, Kind):
        _require_selectors(named)
        if named.optional and is_discovered(named):
            raise ConfigError(
                f"{show(named)} is optional, so its version cannot be looked up at the server: pass its class in place "
                "of its name"
            )
    if (kind := custom_class(named)) is not None:
        crd(kind)  # raises all mistakes of the class
    resource = resource_of(named)
    is_cluster_scoped = isinstance(named, Kind) and not named.namespaced and is_discovered(named)
    return resource._replace(namespaced=False) if is_cluster_scoped else resource


def _require_selectors(kind: Kind[Any]) -> None:
    require_selectors(kind.label_selector, kind.field_selector)
    try:
        LabelSelector.parse(kind.label_selector)
    except SelectorError as error:
        raise ConfigError(f"{show(kind)}: label_selector={kind.label_selector!r}: {error}") from error


def resource_of(named: ResourceReference) -> APIResource:
    """Return the resource, without checking a class, which takes milliseconds: for each reconcile and review."""
    named = base_of(named)
    if isinstance(named, type):
        return resource_of_class(named)
    if not isinstance(named, str):
        raise ConfigError(f"a resource must be a name or a class, not {named!r}")
    if (resource := built_in(named)) is not None:
        return resource
    plural, _, group = named.partition(".")
    if not (LABEL.fullmatch(plural) and "." in group and is_subdomain(group)):
        raise ConfigError(
            f"{named!r} is no built-in resource: for a custom one, pass its class, or its plural and group, as in "
            f"'certificates.cert-manager.io'{did_you_mean(named)}"
        )
    return APIResource(f"{group}/", plural, "", True)


def names_of(named: ResourceReference) -> tuple[str, ...]:
    """Return the only name that a Kind's field selector lets through, as in ``metadata.name=settings``; else ``()``."""
    selector = named.field_selector if isinstance(named, Kind) else ""
    terms = (term.strip().partition("=") for term in selector.split(","))
    return tuple(value.lstrip("=") for field, _, value in terms if field == "metadata.name")


def base_of(named: ResourceReference) -> str | type[Any]:
    """Return the name or the class, without what a Kind adds."""
    return named.resource if isinstance(named, Kind) else named


class CacheKey(NamedTuple):
    """What all ways to name the same cache have in common."""

    resource: APIResource
    object_type: type | None
    label_selector: str = ""
    field_selector: str = ""


def key_of(named: ResourceReference) -> CacheKey:
    """Return the key of the cache that a declaration names."""
    base, resource = base_of(named), resource_of(named)
    object_type = base if isinstance(base, type) else None
    if not isinstance(named, Kind):
        return CacheKey(resource, object_type)
    return CacheKey(resource, object_type or named.object_type, named.label_selector, named.field_selector)


def arguments_of(named: ResourceReference) -> tuple[Any, ...]:
    """Return the arguments of ``Manager.resource`` or ``Resource``."""
    object_type = named.object_type if isinstance(named, Kind) else None
    return (base_of(named),) if object_type is None else (base_of(named), object_type)


def custom_class(named: ResourceReference) -> type[CustomResource] | None:
    """Return the CustomResource class that is named; None for other resources."""
    base = base_of(named)
    return base if isinstance(base, type) and issubclass(base, CustomResource) else None


def is_optional(named: ResourceReference) -> bool:
    """Return whether the server may lack the resource."""
    return isinstance(named, Kind) and named.optional


def is_discovered(named: ResourceReference) -> bool:
    """Return whether only a server knows the resource's version and kind."""
    base = base_of(named)
    return isinstance(base, str) and built_in(base) is None


def show(named: ResourceReference) -> str:
    """Return how a program names the resource, for messages."""
    base = base_of(named)
    return base.__name__ if isinstance(base, type) else repr(base)


def require_distinct(named: Iterable[ResourceReference]) -> None:
    """Check that different CustomResource classes are different kinds, or versions of one kind.

    Raises:
        ConfigError: Two classes are the same version of a kind, or disagree on the plural of a kind.
    """
    classes = dict.fromkeys(custom_class(kind) for kind in named)
    declarations = {kind: kind.__declaration__.names for kind in classes if kind and kind.__declaration__}
    for (first, one), (second, other) in combinations(declarations.items(), 2):
        if one.group != other.group or (one.kind != other.kind and one.plural != other.plural):
            continue
        both = f"{_path(first)} and {_path(second)} are both"
        if (one.kind, one.plural) != (other.kind, other.plural):
            raise ConfigError(
                f"{both} of {one.group} and are called {one.kind} ({one.plural}) and {other.kind} ({other.plural}): "
                "versions of one kind share kind= and plural=, and different kinds have neither in common"
            )
        if one.version == other.version:
            raise ConfigError(
                f"{both} the version {one.version} of the kind {one.kind}.{one.group}: use one class everywhere, or "
                "give one another version= or kind="
            )


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
