"""KubeObject: an object as the bytes that the server sent, decoded where somebody reads it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard, TypeVar, cast

import msgspec

from ..errors import DecodeError
from .decoders import decoder_of, with_type_meta
from .excerpts import described
from .meta import TypeMeta
from .nesting import DECODE_ERRORS, decode_typed

S = TypeVar("S")

LABELS_BEGIN = 1024
"""Bytes of an object in which API servers begin its labels: there is little before them."""


Wanted = tuple[tuple[str, "Wanted"], ...]
"""Fields by their names in JSON, each with those that are wanted of it; all of them if it is empty."""


def on_path(*names: str) -> Wanted:
    """The field of a path: each is in the one before."""
    wanted: Wanted = ()
    for name in reversed(names):
        wanted = ((name, wanted),)
    return wanted


class _NoAttribute:
    """In place of an attribute that one expects: says how it is read. (A ``__getattr__`` would slow all others.)"""

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, obj: object, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}: {self._remedy}")


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """``metadata.ownerReferences[]``."""

    name: str = ""
    kind: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    if not TYPE_CHECKING:
        apiVersion = _NoAttribute("it is api_version")  # noqa: N815 - as in JSON
        blockOwnerDeletion = _NoAttribute("it is block_owner_deletion")  # noqa: N815


class Head(msgspec.Struct, gc=False):
    """What is read of every object, in one pass over its bytes."""

    # null is what some clients write for an empty field
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815 - the wire's name, decoded without a lookup


class _HeadAlone(msgspec.Struct, gc=False):
    metadata: Head


class _HeadAndLabels(Head, gc=False):
    labels: msgspec.Raw = msgspec.Raw(b"{}")
    """As they are: what many read and many do not. A view of the object's bytes."""


class _HeadOnly(msgspec.Struct, gc=False):
    metadata: _HeadAndLabels
    spec: msgspec.Raw = msgspec.Raw()  # likewise


class _Meta(msgspec.Struct, rename="camel"):
    generate_name: str | None = None
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class _MetaOnly(msgspec.Struct):
    metadata: _Meta


_META: Wanted = (("metadata", tuple((each.encode_name, ()) for each in msgspec.structs.fields(_Meta))),)
LABELS, ANNOTATIONS = on_path("metadata", "labels"), on_path("metadata", "annotations")


class _Labels(msgspec.Struct):
    labels: Any = {}


class _LabelsOnly(msgspec.Struct):
    metadata: _Labels


class _Front(msgspec.Struct, gc=False):
    labels: dict[str, str]


class _FrontOnly(msgspec.Struct, gc=False):
    metadata: _Front


_decode_head = msgspec.json.Decoder(_HeadOnly).decode
_head_decoder = msgspec.json.Decoder(_HeadAlone)
_meta_decoder = msgspec.json.Decoder(_MetaOnly)
_any_decoder = msgspec.json.Decoder()
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_any_labels_decoder = msgspec.json.Decoder(_LabelsOnly)
_decode_front = msgspec.json.Decoder(_FrontOnly).decode
_dict_decoder = msgspec.json.Decoder(dict[str, Any])


def encode(value: Any) -> bytes:
    """A dict or list as JSON.

    Raises:
        DecodeError: It cannot be written as JSON.
    """
    try:
        # A copy: what msgspec gives keeps a buffer larger than itself.
        return bytes(memoryview(msgspec.json.encode(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from error


@lru_cache(maxsize=256)
def _field_decoder(field: str) -> msgspec.json.Decoder[Any]:
    """Decodes one top-level field and skips over the others."""
    if not isinstance(field, str):  # None, for which msgspec takes the attribute's name
        raise TypeError(field)
    wanted = msgspec.field(name=field, default=msgspec.UNSET)
    return msgspec.json.Decoder(msgspec.defstruct("Field", [("value", Any, wanted)]))


class Form(Protocol):
    """What the bytes of objects are that are kept, where they are not JSON: protobuf, or either of them compressed."""

    def raw_of(self, obj: KubeObject) -> bytes:
        """An object's JSON.

        Raises:
            DecodeError: It cannot be read.
        """
        ...

    def fields_of(self, obj: KubeObject, wanted: Wanted = ()) -> dict[str, Any] | None:
        """The wanted fields of an object, as its JSON has them; None where they are to be had from that. Raises so."""
        ...

    def uid_of(self, obj: KubeObject) -> str:
        """The uid of an object that has none at hand."""
        ...

    def version_of(self, obj: KubeObject) -> str:
        """The resourceVersion, likewise."""
        ...


class ObjectMeta(msgspec.Struct, eq=False, gc=False):
    """The metadata of one KubeObject (``metav1.ObjectMeta``), read-only.

    Name, namespace, uid and resource_version are at hand, and labels are read alone (of protobuf annotations, too);
    the first use of any other field decodes them all, once for this view. Every ``obj.metadata`` is a view of its own,
    so what a caller does to the dicts and lists it got here changes nothing for others.
    """

    _obj: KubeObject
    _labels: dict[str, str] | None = None
    _annotations: dict[str, str] | None = None
    _more: _Meta | None = None

    if not TYPE_CHECKING:  # the names of the JSON, and of what is not read so
        resourceVersion = _NoAttribute("it is resource_version")  # noqa: N815
        generateName = _NoAttribute("it is generate_name")  # noqa: N815
        ownerReferences = _NoAttribute("it is owner_references")  # noqa: N815
        creationTimestamp = _NoAttribute("it is creation_timestamp")  # noqa: N815
        deletionTimestamp = _NoAttribute("it is deletion_timestamp")  # noqa: N815
        deletionGracePeriodSeconds = _NoAttribute("it is deletion_grace_period_seconds")  # noqa: N815
        managedFields = _NoAttribute("read it as obj['metadata'].get('managedFields')")  # noqa: N815

    @property
    def name(self) -> str:
        """The object's name."""
        return self._obj.key.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        """``""`` for cluster-scoped objects."""
        return self._obj.key.rpartition("/")[0]

    @property
    def uid(self) -> str:
        """``""`` where the server gave none."""
        return self._obj.uid

    @property
    def resource_version(self) -> str:
        """``""`` where the server gave none."""
        return self._obj.resource_version

    @property
    def generate_name(self) -> str:
        """What the server was to begin the name with; ``""`` where it was given."""
        return self._rest.generate_name or ""

    @property
    def generation(self) -> int:
        """Counts the changes of the spec; 0 where the server does not count."""
        return self._rest.generation or 0

    @property
    def labels(self) -> dict[str, str]:
        """Read alone, where they can be."""
        if self._labels is None:
            found = _labels_alone(self._obj)
            self._labels = self._rest.labels or {} if found is None else found
        return self._labels

    @property
    def annotations(self) -> dict[str, str]:
        """All of them; empty where there are none."""
        if self._annotations is None:
            fields = self._obj._fields(ANNOTATIONS)
            found: dict[str, str] | None = (
                self._rest.annotations if fields is None else fields["metadata"].get("annotations")
            )
            self._annotations = found or {}
        return self._annotations

    @property
    def finalizers(self) -> list[str]:
        """Who has to let go before the object goes."""
        return self._rest.finalizers or []

    @property
    def owner_references(self) -> list[OwnerReference]:
        """To whom it belongs."""
        return self._rest.owner_references or []

    @property
    def creation_timestamp(self) -> datetime | None:
        """When it was created; None where the server did not say."""
        return self._rest.creation_timestamp

    @property
    def deletion_timestamp(self) -> datetime | None:
        """When the object was marked for deletion; None while it is not."""
        return self._rest.deletion_timestamp

    @property
    def deletion_grace_period_seconds(self) -> int | None:
        """Seconds that its deletion gives it; None while it is not marked."""
        return self._rest.deletion_grace_period_seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectMeta) and _is_equal(self._obj["metadata"], other._obj["metadata"])

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own knows nothing of the above

    def __hash__(self) -> int:
        return hash(self._obj)

    def __repr__(self) -> str:
        return f"<ObjectMeta {self._obj.key} at {self.resource_version or 'no version'}>"

    @property
    def _rest(self) -> _Meta:
        if self._more is None:
            fields = self._obj._fields(_META)
            decoded: _MetaOnly = (
                self._obj._decode_with(_meta_decoder, "metadata")
                if fields is None
                else msgspec.convert(fields, _MetaOnly)
            )
            self._more = decoded.metadata
        return self._more


def _is_equal(one: Any, other: Any) -> bool:
    """Whether values are equal; what is nested too deeply to be compared is not."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


AS_JSON: Any = type("KubeObject", (), {})()
"""In place of a form, where the bytes are JSON. msgspec encodes no object that has it: that would be of internals."""


class KubeObject(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A Kubernetes object of any kind, kept as its bytes, JSON or protobuf. Immutable, and a Mapping of its fields.

    ``key``, ``namespace``, ``name``, ``uid`` and ``resource_version`` are read once; ``metadata`` gives the rest
    of the metadata typed; ``obj["spec"]`` decodes that field, anew at each use, so what a reader does to the
    result never reaches the cache or another reader. To read many fields use ``to_dict()``, or name them in a
    ``msgspec.Struct`` and use ``decode``. Made by ``from_bytes`` and ``from_dict``.

    How an object arrived makes no difference: the items of a built-in LIST carry no apiVersion and kind, watch
    objects do, and both give the same ``to_dict()`` and are equal, as dicts are: true equals 1. Nor does how it is
    kept: one that came as protobuf says the same, and so does a compressed one, some microseconds later.

    To send one on, take ``raw``, or ``to_dict()``; msgspec refuses to encode it.

    Attributes:
        key: ``"namespace/name"``, or ``"name"`` for cluster-scoped objects.
    """

    # A Struct that the garbage collector does not track: a million of them cost its passes nothing.
    _kept: bytes
    key: str
    _uid: str  # "" where it is packed
    _version: str  # likewise
    _type_meta: TypeMeta | None
    _labels: Any = None  # of JSON, a part of what is kept; of protobuf, where to look; None for neither
    _spec: msgspec.Raw | None = None  # a part, likewise; empty where there is none
    _form: Form = AS_JSON

    @classmethod
    def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Self:
        """The object that these JSON bytes say.

        Args:
            raw: One JSON object with a ``metadata`` object, no name twice in it. All of it is scanned, but a number
                too large for any type is found where it is read. It may be nested 10,000 levels deep; what is no text
                is U+FFFD in it.
            type_meta: apiVersion and kind, each where the bytes do not carry it.

        Raises:
            DecodeError: It is no JSON, or no Kubernetes object.
        """
        if type(raw) is not bytes:
            raw = bytes(raw)  # of a buffer that its owner may go on writing to
        try:
            decoded = _decode_head(raw)
        except DECODE_ERRORS:
            return cls.of(raw, read_head(raw), type_meta)
        head = decoded.metadata
        return cls.of(raw, head, type_meta, head.labels, decoded.spec)

    @classmethod
    def of(
        cls,
        raw: bytes,
        head: Head,
        type_meta: TypeMeta | None,
        labels: msgspec.Raw | None = None,
        spec: msgspec.Raw | None = None,
    ) -> Self:
        """The object of these bytes, of which this was read already; labels and spec only if they are parts of them."""
        name = head.name or ""
        key = f"{head.namespace}/{name}" if head.namespace else name
        return cls(raw, key, head.uid or "", head.resourceVersion or "", type_meta, labels, spec)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The object that this dict says; NaN and infinities, which JSON has not, are null in it.

        Raises:
            DecodeError: It cannot be written as JSON, or has no metadata.
        """
        return cls.from_bytes(encode(fields))

    if not TYPE_CHECKING:
        spec = _NoAttribute(
            "read it as obj['spec'], or one field as field('spec.nodeName')(obj), or give an object type that has it"
        )
        status = _NoAttribute("read it as obj['status'], or one field as field('status.phase')(obj)")
        data = _NoAttribute("read it as obj.get('data')")
        labels = _NoAttribute("it is obj.metadata.labels")
        annotations = _NoAttribute("it is obj.metadata.annotations")
        apiVersion = _NoAttribute("it is obj.api_version")  # noqa: N815
        resourceVersion = _NoAttribute("it is obj.resource_version")  # noqa: N815

    @property
    def raw(self) -> bytes:
        """The object's JSON, as the server sent it; of one that came as protobuf what says the same."""
        return self._kept if self._form is AS_JSON else self._form.raw_of(self)

    @property
    def uid(self) -> str:
        """``""`` where the server gave none."""
        return self._uid if self._uid or self._form is AS_JSON else self._form.uid_of(self)

    @property
    def resource_version(self) -> str:
        """``""`` where the server gave none."""
        if self._version or self._form is AS_JSON:
            return self._version
        return self._form.version_of(self)

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata, typed; a view of its own each time."""
        return ObjectMeta(self)

    @property
    def name(self) -> str:
        """The object's name."""
        return self.key.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        """``""`` for cluster-scoped objects."""
        return self.key.rpartition("/")[0]

    @property
    def api_version(self) -> str:
        """Such as ``"apps/v1"``; ``""`` where nobody says."""
        return str(self.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        """Such as ``"Deployment"``; ``""`` where nobody says."""
        return str(self.get("kind") or "")

    def to_dict(self) -> dict[str, Any]:
        """A copy to edit: the whole object as plain dicts and lists."""
        fields = self._fields()
        if fields is None:
            fields = self._decode_with(_dict_decoder, "the object")
        return with_type_meta(fields, self._type_meta)

    def decode(self, type: type[S]) -> S:
        """The object as another object type: dict, a ``msgspec.Struct`` or a model class.

        Raises:
            DecodeError: The object does not fit the type.
        """
        if not is_kube_object_type(type):
            return cast("S", decoder_of(type)(self.raw, self._type_meta))
        made: KubeObject
        if is_made_its_own_way(type):
            made = type.from_bytes(self.raw, self._type_meta)
        else:
            made = type(
                self._kept,
                self.key,
                self._uid,
                self._version,
                self._type_meta,
                self._labels,
                self._spec,
                self._form,
            )
        return cast("S", made)

    def __getitem__(self, field: str) -> Any:
        try:
            decoder = _field_decoder(field)
        except (TypeError, ValueError):  # no name that msgspec could look for
            return self.to_dict()[field]
        if field == "spec" and self._spec:
            return self._decode_with(_any_decoder, field, self._spec)
        fields = self._fields(((field, ()),))
        value = (
            self._decode_with(decoder, field).value if fields is None else fields.get(field, msgspec.UNSET)
        )
        if value is not msgspec.UNSET:
            return value
        if self._type_meta is not None and field in ("apiVersion", "kind"):
            return self._type_meta.api_version if field == "apiVersion" else self._type_meta.kind
        raise KeyError(field)

    def __contains__(self, field: object) -> bool:
        return self.get(field, msgspec.UNSET) is not msgspec.UNSET

    def get(self, field: Any, default: Any = None) -> Any:
        """The decoded field, or the default where there is none."""
        try:
            return self[field]
        except KeyError:
            return default

    def keys(self) -> KeysView[str]:
        """The names of the top-level fields."""
        return self.to_dict().keys()

    def values(self) -> ValuesView[Any]:
        """The top-level fields, decoded."""
        return self.to_dict().values()

    def items(self) -> ItemsView[str, Any]:
        """The top-level fields by name, decoded."""
        return self.to_dict().items()

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __bool__(self) -> bool:
        return True  # it has metadata; without this, "if obj:" would decode it all to count its fields

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KubeObject):
            return isinstance(other, Mapping) and _is_equal(self.to_dict(), other)
        same_head = (
            self.key == other.key
            and self.resource_version == other.resource_version
            and self.uid == other.uid
        )
        if not same_head:
            return False
        same_bytes = (
            self._kept == other._kept if self._form is other._form else self.raw == other.raw
        )  # which of one dictionary compress to the same
        return (same_bytes and self._type_meta == other._type_meta) or _is_equal(
            self.to_dict(), other.to_dict()
        )

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own knows nothing of the above

    def __hash__(self) -> int:
        return hash((self.key, self.uid, self.resource_version))

    def __repr__(self) -> str:
        kind = self._type_meta.kind if self._type_meta is not None else type(self).__name__
        return f"<{kind} {self.key} at {self.resource_version or 'no version'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.raw, self._type_meta)

    def __copy__(self) -> KubeObject:
        return self

    def __deepcopy__(self, memo: object) -> KubeObject:
        return self

    def _fields(self, wanted: Wanted = ()) -> dict[str, Any] | None:
        """The wanted fields; None where they are to be decoded from the JSON."""
        if self._form is AS_JSON:
            return None
        try:
            return self._form.fields_of(self, wanted)
        except DecodeError as error:
            raise self._unreadable(wanted[0][0] if wanted else "the object", error) from error

    def _decode_with(
        self, decoder: msgspec.json.Decoder[Any], what: str, part: msgspec.Raw | None = None
    ) -> Any:
        raw = self.raw if part is None else part
        try:
            return decoder.decode(raw)
        except DECODE_ERRORS:
            pass
        try:
            return decode_typed(decoder, raw)
        except DECODE_ERRORS as error:
            raise self._unreadable(what, error) from error

    def _unreadable(self, what: str, error: Exception) -> DecodeError:
        return DecodeError(
            f"{self.key} at {self.resource_version or 'no version'}: {what} cannot be read: {error}"
        )


def read_head(raw: bytes) -> Head:
    """Read the head of an object that msgspec refuses, as it may be nested deeply.

    Raises:
        DecodeError: It is no JSON, or no Kubernetes object.
    """
    try:
        return decode_typed(_head_decoder, raw).metadata
    except DECODE_ERRORS as error:
        raise DecodeError(f"not a Kubernetes object: {error}; {described(raw)}") from error


def is_kube_object_type(wanted: object) -> TypeGuard[type[KubeObject]]:
    """Whether this is KubeObject, or a class of one's own made of it."""
    return isinstance(wanted, type) and issubclass(wanted, KubeObject)


def is_made_its_own_way(wanted: type[KubeObject]) -> bool:
    """Whether a class made of KubeObject makes objects in a way of its own, by which it may refuse some."""
    own: Any = wanted
    plain: Any = KubeObject
    return any(
        getattr(own, name).__func__ is not getattr(plain, name).__func__ for name in ("from_bytes", "of")
    )


def read_labels(obj: KubeObject) -> Any:
    """metadata.labels and nothing else of the metadata, whatever they are; none are ``{}``.

    Raises:
        DecodeError: The object cannot be read.
    """
    labels = _labels_alone(obj)
    return (
        obj._decode_with(_any_labels_decoder, "metadata.labels").metadata.labels if labels is None else labels
    )


def _labels_alone(obj: KubeObject) -> dict[str, str] | None:
    """metadata.labels, without a scan of the rest; None if that cannot be, or if they are no labels."""
    if (fields := obj._fields(LABELS)) is not None:
        labels: dict[str, str] = fields["metadata"].get("labels", {})
        return labels
    try:
        if obj._labels is not None:
            return _decode_labels(obj._labels)
        raw = obj.raw
        begin = raw.find(b'"labels":{', 0, LABELS_BEGIN)
        if begin < 0:
            return None
        # What ends behind the first labels can be read as an object only if they are in one at the top, with nothing
        # else open: then that is what the whole says.
        front: _FrontOnly = _decode_front(raw[: raw.find(b"}", begin) + 1] + b"}}")
    except DECODE_ERRORS:
        return None
    return front.metadata.labels


Mapping.register(KubeObject)  # pyright: ignore[reportAttributeAccessIssue]
