"""KubeObject: an object that keeps the server's bytes and decodes fields when they are read."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeGuard, TypeVar, cast

import msgspec

from ..errors import DecodeError
from .decoders import decoder_of, with_type_meta
from .excerpts import describe
from .meta import TypeMeta
from .nested_encoding import encode_nested
from .nesting import DECODE_ERRORS, decode_typed

S = TypeVar("S")

LABELS_BEGIN = 1024
"""API servers write an object's labels within its first bytes. The search for labels ends here."""


Wanted = tuple[tuple[str, "Wanted"], ...]
"""Field names in JSON, each with the wanted fields inside it; empty for all fields."""


def on_path(*names: str) -> Wanted:
    """Return the ``Wanted`` of one path of field names."""
    wanted: Wanted = ()
    for name in reversed(names):
        wanted = ((name, wanted),)
    return wanted


class _NoAttribute:
    """A missing attribute whose error says how to read the field. (``__getattr__`` would slow all others.)"""

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
    """The fields that are read of every object, in one pass over its bytes."""

    # some clients write null for an empty field
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815 - named as in JSON, so that msgspec needs no renaming


class _HeadAndLabels(Head, gc=False):
    labels: msgspec.Raw = msgspec.Raw(b"{}")
    """Undecoded, because many callers do not read them. A view of the object's bytes."""


class _HeadOnly(msgspec.Struct, gc=False):
    metadata: _HeadAndLabels
    spec: msgspec.Raw = msgspec.Raw()  # undecoded, as labels


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


_META: Wanted = (("metadata", tuple((field.encode_name, ()) for field in msgspec.structs.fields(_Meta))),)
LABELS, ANNOTATIONS = on_path("metadata", "labels"), on_path("metadata", "annotations")


class _Labels(msgspec.Struct):
    labels: Any = {}


class _LabelsOnly(msgspec.Struct):
    metadata: _Labels


class _Front(msgspec.Struct, gc=False):
    labels: dict[str, str]


class _FrontOnly(msgspec.Struct, gc=False):
    metadata: _Front


_head_decoder = msgspec.json.Decoder(_HeadOnly)
_decode_head = _head_decoder.decode
_meta_decoder = msgspec.json.Decoder(_MetaOnly)
_any_decoder = msgspec.json.Decoder()
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode
_any_labels_decoder = msgspec.json.Decoder(_LabelsOnly)
_decode_front = msgspec.json.Decoder(_FrontOnly).decode
_dict_decoder = msgspec.json.Decoder(dict[str, Any])


def encode(value: Any) -> bytes:
    """Encode a dict or list as JSON.

    Raises:
        DecodeError: A value cannot be encoded.
    """
    try:
        # A copy: the bytes that msgspec returns keep a larger buffer.
        return bytes(memoryview(encode_nested(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from error


@lru_cache(maxsize=256)
def _field_decoder(field: str) -> msgspec.json.Decoder[Any]:
    """Return a decoder of one top-level field that skips the others."""
    if not isinstance(field, str):  # msgspec would replace None by the attribute's name
        raise TypeError(field)
    wanted = msgspec.field(name=field, default=msgspec.UNSET)
    return msgspec.json.Decoder(msgspec.defstruct("Field", [("value", Any, wanted)]))


class Form(Protocol):
    """Storage encoding of an object's bytes, when it is not JSON: protobuf, or compressed JSON or protobuf."""

    def raw_of(self, obj: KubeObject) -> bytes:
        """Return an object's JSON.

        Raises:
            DecodeError: The object cannot be read.
        """
        ...

    def fields_of(self, obj: KubeObject, wanted: Wanted = ()) -> dict[str, Any] | None:
        """Return the wanted fields as decoded JSON; None if the caller has to decode ``raw_of``.

        Raises:
            DecodeError: The object cannot be read.
        """
        ...

    def uid_of(self, obj: KubeObject) -> str:
        """Return the uid of an object whose ``_uid`` is empty."""
        ...

    def version_of(self, obj: KubeObject) -> str:
        """Return the resourceVersion of an object whose ``_version`` is empty."""
        ...


class ObjectMeta(msgspec.Struct, eq=False, gc=False):
    """The metadata of one KubeObject (``metav1.ObjectMeta``), read-only.

    Name, namespace, uid and resource_version cost nothing. Labels are decoded alone, and so are annotations of an
    object that came as protobuf. The first use of another field decodes all fields, once for this view. Each
    ``obj.metadata`` is a new view: a caller may change its dicts and lists without an effect on others.
    """

    _obj: KubeObject
    _labels: dict[str, str] | None = None
    _annotations: dict[str, str] | None = None
    _more: _Meta | None = None

    if not TYPE_CHECKING:  # names as in JSON, and fields without an attribute
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
        """``""`` if the server sent none."""
        return self._obj.uid

    @property
    def resource_version(self) -> str:
        """``""`` if the server sent none."""
        return self._obj.resource_version

    @property
    def generate_name(self) -> str:
        """The prefix of a generated name; ``""`` if the name was given."""
        return self._rest.generate_name or ""

    @property
    def generation(self) -> int:
        """The number of changes of the spec; 0 if the server does not count them."""
        return self._rest.generation or 0

    @property
    def labels(self) -> dict[str, str]:
        """The labels; empty if there are none."""
        if self._labels is None:
            labels = _labels_alone(self._obj)
            self._labels = self._rest.labels or {} if labels is None else labels
        return self._labels

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations; empty if there are none."""
        if self._annotations is None:
            fields = self._obj._fields(ANNOTATIONS)
            own: dict[str, str] | None = (
                self._rest.annotations if fields is None else fields["metadata"].get("annotations")
            )
            self._annotations = own or {}
        return self._annotations

    @property
    def finalizers(self) -> list[str]:
        """The finalizers that have to be removed before the object is deleted."""
        return self._rest.finalizers or []

    @property
    def owner_references(self) -> list[OwnerReference]:
        """The owners."""
        return self._rest.owner_references or []

    @property
    def creation_timestamp(self) -> datetime | None:
        """When it was created; None if the server sent no time."""
        return self._rest.creation_timestamp

    @property
    def deletion_timestamp(self) -> datetime | None:
        """When the object was marked for deletion; None if it is not."""
        return self._rest.deletion_timestamp

    @property
    def deletion_grace_period_seconds(self) -> int | None:
        """The grace period of its deletion in seconds; None if it is not marked for deletion."""
        return self._rest.deletion_grace_period_seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectMeta) and _is_equal(self._obj["metadata"], other._obj["metadata"])

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own ``__ne__`` does not call ``__eq__``

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
    """Return whether values are equal. Values that are nested too deeply to be compared are not."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


AS_JSON: Any = type("KubeObject", (), {})()
"""The form of JSON. Its type makes msgspec refuse to encode a KubeObject, which would encode its private fields."""


class KubeObject(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A Kubernetes object of any kind, kept as its bytes, JSON or protobuf. Immutable, and a Mapping of its fields.

    ``key``, ``namespace``, ``name``, ``uid`` and ``resource_version`` are decoded once. ``metadata`` has the other
    fields of the metadata, typed. ``obj["spec"]`` decodes that field at each use, so a reader may change the result
    without an effect on the cache or other readers. To read many fields, use ``to_dict()``, or name them in a
    ``msgspec.Struct`` and use ``decode``. Create objects with ``from_bytes`` and ``from_dict``.

    Objects from lists and watches are equal and give the same ``to_dict()``, although items of a built-in list have no
    apiVersion and kind. The same holds for JSON, protobuf and compressed objects. Objects compare as dicts do: true
    equals 1.

    To send an object, use ``raw`` or ``to_dict()``. msgspec refuses to encode it.

    Attributes:
        key: ``"namespace/name"``, or ``"name"`` for cluster-scoped objects.
    """

    # gc=False: the garbage collector does not track objects, so a million of them do not slow its passes.
    _kept: bytes
    key: str
    _uid: str  # "" if the bytes have it: see Form.uid_of
    _version: str  # "" if the bytes have it: see Form.version_of
    _type_meta: TypeMeta | None
    _labels: Any = None  # for JSON a Raw, for protobuf their offset; None if unknown
    _spec: msgspec.Raw | None = None  # for JSON; empty if there is none
    _form: Form = AS_JSON

    @classmethod
    def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Self:
        """Return the object of JSON bytes.

        Args:
            raw: One JSON object with a ``metadata`` object and no duplicate names. All bytes are scanned, but a number
                that is too large for any type is found only when it is read. It may have 10,000 levels. Invalid UTF-8
                is read as U+FFFD.
            type_meta: apiVersion and kind, each used if the bytes do not have it.

        Raises:
            DecodeError: It is not JSON, or not a Kubernetes object.
        """
        if type(raw) is not bytes:
            raw = bytes(raw)  # the owner of a buffer may change it
        try:
            decoded = _decode_head(raw)
        except DECODE_ERRORS:
            head = _read_head(raw)
            # A copy: the labels are a view of other bytes, which would stay in memory.
            return cls.of(raw, head, type_meta, msgspec.Raw(bytes(head.labels)))
        head = decoded.metadata
        name = head.name or ""
        key = f"{head.namespace}/{name}" if head.namespace else name
        return cls(raw, key, head.uid or "", head.resourceVersion or "", type_meta, head.labels, decoded.spec)

    @classmethod
    def of(
        cls,
        raw: bytes,
        head: Head,
        type_meta: TypeMeta | None,
        labels: msgspec.Raw | None = None,
    ) -> Self:
        """Return the object of bytes with a decoded head. labels have to be a view of the bytes, or small."""
        name = head.name or ""
        key = f"{head.namespace}/{name}" if head.namespace else name
        return cls(raw, key, head.uid or "", head.resourceVersion or "", type_meta, labels)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return the object of a dict. NaN and infinities become null, as JSON has none.

        Raises:
            DecodeError: A value cannot be encoded as JSON, or there is no metadata.
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
        """The object's JSON as the server sent it; for protobuf the equivalent JSON."""
        return self._kept if self._form is AS_JSON else self._form.raw_of(self)

    @property
    def uid(self) -> str:
        """``""`` if the server sent none."""
        return self._uid if self._uid or self._form is AS_JSON else self._form.uid_of(self)

    @property
    def resource_version(self) -> str:
        """``""`` if the server sent none."""
        if self._version or self._form is AS_JSON:
            return self._version
        return self._form.version_of(self)

    @property
    def metadata(self) -> ObjectMeta:
        """The typed metadata; a new view at each use."""
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
        """Such as ``"apps/v1"``; ``""`` if unknown."""
        return str(self.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        """Such as ``"Deployment"``; ``""`` if unknown."""
        return str(self.get("kind") or "")

    def to_dict(self) -> dict[str, Any]:
        """Return the whole object as dicts and lists, a copy that the caller may change."""
        fields = self._fields()
        if fields is None:
            fields = self._decode_with(_dict_decoder, "the object")
        return with_type_meta(fields, self._type_meta)

    def decode(self, type: type[S]) -> S:
        """Decode the object to another object type: dict, a ``msgspec.Struct`` or a model class.

        Raises:
            DecodeError: The object does not fit the type.
        """
        if not is_kube_object_type(type):
            return cast("S", decoder_of(type)(self.raw, self._type_meta))
        made: KubeObject
        if overrides_construction(type):
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
        except (TypeError, ValueError):  # not a name that msgspec accepts
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
        missing = KeyError(field)
        if "." in field:
            missing.add_note(f"This reads top-level fields; read a path with field({field!r})(obj)")
        raise missing

    def __contains__(self, field: object) -> bool:
        return self.get(field, msgspec.UNSET) is not msgspec.UNSET

    def get(self, field: Any, default: Any = None) -> Any:
        """Return the decoded field, or the default if there is none."""
        try:
            return self[field]
        except KeyError:
            return default

    def keys(self) -> KeysView[str]:
        """Return the names of the top-level fields."""
        return self.to_dict().keys()

    def values(self) -> ValuesView[Any]:
        """Return the top-level fields, decoded."""
        return self.to_dict().values()

    def items(self) -> ItemsView[str, Any]:
        """Return names and values of the top-level fields, decoded."""
        return self.to_dict().items()

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __bool__(self) -> bool:
        return True  # without this, ``if obj:`` would decode the object to count its fields

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
        )  # equal bytes compress equally with one dictionary
        return (same_bytes and self._type_meta == other._type_meta) or _is_equal(
            self.to_dict(), other.to_dict()
        )

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own ``__ne__`` does not call ``__eq__``

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
        """Return the wanted fields; None if they have to be decoded from the JSON."""
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


def _read_head(raw: bytes) -> _HeadAndLabels:
    """Read the head of an object that msgspec refuses, such as a deeply nested one.

    Raises:
        DecodeError: It is not JSON, or not a Kubernetes object.
    """
    try:
        return decode_typed(_head_decoder, raw).metadata
    except DECODE_ERRORS as error:
        raise DecodeError(f"not a Kubernetes object: {error}; {describe(raw)}") from error


def is_kube_object_type(wanted: object) -> TypeGuard[type[KubeObject]]:
    """Return whether a type is KubeObject or a subclass."""
    return isinstance(wanted, type) and issubclass(wanted, KubeObject)


def overrides_construction(wanted: type[KubeObject]) -> bool:
    """Return whether a subclass of KubeObject overrides ``from_bytes`` or ``of``, which may then refuse objects."""
    subclass: Any = wanted
    base: Any = KubeObject
    return any(
        getattr(subclass, name).__func__ is not getattr(base, name).__func__ for name in ("from_bytes", "of")
    )


def read_labels(obj: KubeObject) -> Any:
    """Return metadata.labels, of any type; ``{}`` if there are none. Nothing else of the metadata is decoded.

    Raises:
        DecodeError: The object cannot be read.
    """
    labels = _labels_alone(obj)
    return (
        obj._decode_with(_any_labels_decoder, "metadata.labels").metadata.labels if labels is None else labels
    )


def _labels_alone(obj: KubeObject) -> dict[str, str] | None:
    """Return metadata.labels without a scan of the rest; None if that fails, or if they are not strings."""
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
        # Bytes that are cut after the labels and closed with two braces decode only if the labels are in
        # a top-level object.
        front: _FrontOnly = _decode_front(raw[: raw.find(b"}", begin) + 1] + b"}}")
    except DECODE_ERRORS:
        return None
    return front.metadata.labels


Mapping.register(KubeObject)  # pyright: ignore[reportAttributeAccessIssue]
