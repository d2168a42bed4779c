"""CustomResource: the base of classes that are kinds of the API."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypedDict, Unpack

import msgspec
from msgspec import StructMeta

from ..objects.encoding import plain
from ..objects.kube_object import OwnerReference
from ..objects.models import decode_hook
from ..objects.reading_types import without_limits
from .annotations import Column, Scale
from .declaration import Declaration, inherit


def _about(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


@lru_cache(maxsize=256)
def _reading_type(kind: Any) -> Any:
    return without_limits(kind)


class CamelStruct(msgspec.Struct, rename="camel"):
    """A Struct whose fields are in camelCase in JSON: ``min_ready`` is ``minReady``. For specs and statuses."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, _: Any) -> Any:
        """Let pydantic models have fields of this class, such as conditions."""
        from pydantic_core import core_schema

        def validate(value: Any) -> Any:
            if isinstance(value, cls):
                return value
            return msgspec.convert(value, _reading_type(source), dec_hook=decode_hook)

        return core_schema.no_info_plain_validator_function(
            validate,
            serialization=core_schema.plain_serializer_function_ser_schema(plain),
        )


class Metadata(CamelStruct, omit_defaults=True, kw_only=True):
    """The metadata of an object (``metav1.ObjectMeta``), without managedFields."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


# metav1.Condition. What stands in the class is part of CustomResourceDefinitions, for the readers of `kubectl explain`.
class Condition(CamelStruct, kw_only=True):
    """One aspect of the object's current state."""

    type: Annotated[str, _about("The aspect, in CamelCase, such as Ready. A list has each type once.")]
    status: Annotated[
        Literal["True", "False", "Unknown"], _about("Whether the aspect holds: True, False or Unknown.")
    ]
    reason: Annotated[
        str, _about("Why the status changed last: one word in CamelCase, for programs to compare.")
    ] = ""
    message: Annotated[str, _about("The details of the last change, for people.")] = ""
    last_transition_time: Annotated[
        datetime | None,
        _about("When the status last changed from one value to another. Other fields may be newer."),
    ] = None
    observed_generation: Annotated[
        int,
        _about(
            "The metadata.generation that the condition was set for. If it is smaller than the object's, the condition "
            "is about an older spec."
        ),
    ] = 0


class StructOptions(TypedDict, total=False):
    """Options of msgspec that a CustomResource may use."""

    rename: Literal["lower", "upper", "camel", "pascal", "kebab"] | None
    eq: bool
    order: bool
    kw_only: bool
    omit_defaults: bool
    forbid_unknown_fields: bool
    gc: bool
    weakref: bool
    dict: bool


class _CustomResourceMeta(StructMeta):
    """Takes the declaration out of the class arguments, and makes apiVersion and kind fields with these values."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        group: str | None = None,
        version: str | None = None,
        kind: str | None = None,
        plural: str | None = None,
        short_names: Collection[str] | None = None,
        categories: Collection[str] | None = None,
        namespaced: bool | None = None,
        served: bool | None = None,
        storage: bool | None = None,
        scale: Scale | None = None,
        columns: Collection[Column] | None = None,
        rules: Collection[msgspec.Meta] | None = None,
        selectable_fields: Collection[str] | None = None,
        deprecated: bool | str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        description_limit: int | None = None,
        **options: Unpack[StructOptions],
    ) -> _CustomResourceMeta:
        given = {
            "group": group, "version": version, "kind": kind, "plural": plural, "short_names": short_names,
            "categories": categories, "namespaced": namespaced, "served": served, "storage": storage,
            "scale": scale, "columns": columns, "rules": rules, "selectable_fields": selectable_fields,
            "deprecated": deprecated, "labels": labels, "annotations": annotations,
            "description_limit": description_limit,
        }  # fmt: skip
        given = {argument: value for argument, value in given.items() if value is not None}
        if not given:
            return super().__new__(mcls, name, bases, namespace, **options)
        known = next(
            (
                inherited_declaration
                for parent in bases
                if (inherited_declaration := getattr(parent, "__declaration__", None))
            ),
            None,
        )
        declaration = inherit(known, given, name)
        typed = {
            "__module__": namespace["__module__"],
            "__annotations__": {"api_version": str, "kind": str},
            "api_version": f"{declaration.group}/{declaration.version}",
            "kind": declaration.kind,
        }
        base = super().__new__(mcls, f"{name}Type", bases, typed, kw_only=True)
        made = super().__new__(mcls, name, (base,), namespace, **options)
        made.__declaration__ = declaration
        return made

    __declaration__: Declaration | None = None


class CustomResource(msgspec.Struct, metaclass=_CustomResourceMeta, rename="camel", kw_only=True):
    """The base of classes that are kinds of the API. A class is the object type of informers and resources.

        class Website(CustomResource, group="example.com", version="v1", short_names=("web",)):
            spec: WebsiteSpec
            status: WebsiteStatus | None = None

    ``crd(Website)`` is its CustomResourceDefinition. A class without arguments is a base for others; a class that
    extends one with arguments is another version of its kind, and takes over what it does not give, except ``served``,
    ``storage`` and ``deprecated``. With ``kind=`` it is another kind.

    Args:
        group: The API group, a domain: ``"example.com"``.
        version: ``"v1"``, ``"v1alpha1"``.
        kind: The kind; the class's name if not given.
        plural: The name in paths; ``"websites"`` of a Website if not given.
        short_names: Short names for kubectl.
        categories: Groups of resources for kubectl, such as ``"all"``.
        namespaced: Whether objects live in namespaces.
        served: Whether the server serves this version.
        storage: Whether the server stores objects in this version; of several versions, the last one if not given.
        scale: The scale subresource.
        columns: The columns of ``kubectl get``.
        rules: CEL rules about whole objects, each a ``Rule``.
        selectable_fields: Fields that field selectors may name, such as ``".spec.host"``; at most 8.
        deprecated: Whether the server warns clients that use this version; or the text of the warning.
        labels: Labels of the definition.
        annotations: Annotations of the definition.
        description_limit: Most characters of a description in the definition; 0 for no descriptions.
        **options: Options of ``msgspec.Struct``, such as ``kw_only=True``.
    """

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = msgspec.field(default_factory=Metadata)

    if TYPE_CHECKING:
        __declaration__: ClassVar[Declaration | None]

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``""`` for cluster-scoped objects."""
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """``"namespace/name"``, or ``"name"``."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
