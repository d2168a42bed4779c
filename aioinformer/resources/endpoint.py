"""Endpoint: the requests about the objects of one resource."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
import msgspec

from ..client import Client
from ..client.error_mapping import add_detail, name_request
from ..client.request_spans import request_span
from ..client.transport import JSON, Change, Query
from ..errors import ApiError, ConfigError, DecodeError, TransportError
from ..objects.codec import Codec
from ..objects.encoding import fields_of
from ..objects.excerpts import begins
from ..objects.kube_object import KubeObject, encode
from ..objects.nesting import DECODE_ERRORS, reader_of
from .addresses import Addresses
from .refusals import raise_refusals

T = TypeVar("T")

GIVE_KIND = 'add it, such as "kind": "Cave", or create the resource with kind="Cave"'
"""Advice when the kind of an object is unknown."""

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
"""Kubernetes' verbs of the methods that write."""

APPLY_YOURS = (
    "an object that was read cannot be applied: apply a new one with only the fields you own, or update it"
)
"""Advice when an object that was read is applied."""


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint(Generic[T]):
    """Sends requests about objects, by their keys.

    Args:
        client: The client.
        addresses: The paths.
        codec: Decodes objects.
        kind: The kind of objects that do not say it; ``""`` leaves it to the server.
        field_manager: The field manager of writes.
        timeout: Seconds for one answer.
    """

    client: Client
    addresses: Addresses
    codec: Codec[T]
    kind: str
    field_manager: str
    timeout: float

    def __str__(self) -> str:
        return str(self.addresses.collection)

    def name_request(self, verb: str, key: str) -> AbstractContextManager[None]:
        """Return a context manager that adds the request to errors about its answer."""
        return name_request(f"{verb} {self} {key}")

    async def read(self, key: str) -> bytes:
        """Read an object from the server."""
        seconds = self.timeout
        with (
            self._span("get", key),
            raise_refusals("get", str(self), key),
            self.addresses.collection.explain_errors(),
        ):
            with anyio.move_on_after(seconds):
                return await self.client.get(self.addresses.of(key), timeout=seconds)
            raise TransportError(f"no answer within {seconds:g} s")

    async def write(
        self,
        verb: str,
        key: str,
        method: str,
        body: Any,
        *,
        path: str = "",
        subresource: str = "",
        content_type: str = JSON,
        query: Query = (),
    ) -> bytes:
        """Send a write request.

        Args:
            verb: Name of the operation in messages.
            key: The object's key.
            method: The HTTP method.
            body: A dict or list.
            path: The path; empty for the object's.
            subresource: A subresource of the object.
            content_type: The body's content type.
            query: Query parameters, such as ``managed()``.
        """
        change = Change(method, body_of(body, f"{verb} {self} {key}"), content_type)
        verb = f"{verb} {subresource} of" if subresource not in ("", "eviction") else verb
        with (
            self._span(VERBS[method], key, subresource),
            raise_refusals(verb, str(self), key),
            self.addresses.collection.explain_errors(subresource),
        ):
            try:
                return await self.client.send(
                    change, path or self.addresses.of(key, subresource), query, timeout=self.timeout
                )
            except ApiError as error:
                if "Object 'Kind' is missing" in error.message:
                    add_detail(error, GIVE_KIND)
                if "managedFields must be nil" in error.message:
                    add_detail(error, APPLY_YOURS)
                raise

    def _span(self, verb: str, key: str, subresource: str = "") -> AbstractContextManager[object]:
        resource = self.addresses.collection
        namespace, _, name = key.rpartition("/")
        return request_span(
            verb,
            resource.api_version,
            resource.plural,
            namespace,
            name,
            kind=self.kind,
            subresource=subresource,
        )

    def manager_query(self, field_manager: str | None = None) -> list[tuple[str, str]]:
        """Return the query parameter with the field manager."""
        manager = self.field_manager if field_manager is None else field_manager
        return [("fieldManager", manager)] if manager else []

    def read_lifecycle(self, key: str, body: bytes, *, or_status: bool = False) -> Lifecycle:
        """Read the lifecycle fields of an answer, and check that it is about the object.

        Args:
            key: The object's key; ``"namespace/"`` or ``""`` if the server generates the name.
            body: The answer.
            or_status: Whether the answer may be a Status, which stands for a deleted object.

        Raises:
            DecodeError: The answer is about another object, or about none.
        """
        seen = lifecycle_of(body)
        is_named = bool(key) and not key.endswith("/")
        is_it = seen.key == key if is_named else seen.key.startswith(key) and seen.key != key
        if not is_it and not (or_status and seen.is_status):
            raise DecodeError(f"the answer is about {seen.key or 'no object'}; {begins(body)}")
        return seen

    def of_type(self, obj: Any) -> T:
        """Return an object of any type in the resource's type; unchanged if it has that type."""
        object_type = self.codec.object_type
        if object_type is not None and isinstance(obj, object_type):
            return obj
        return self.codec.decode(obj if isinstance(obj, KubeObject) else encode(fields_of(obj)))

    def fields(self, obj: Any) -> dict[str, Any]:
        """Return the fields of an object to send, including apiVersion and kind.

        Raises:
            ConfigError: It has no metadata, or belongs to another resource.
        """
        fields = fields_of(obj)
        wanted = self.addresses.collection.api_version
        if not isinstance(fields.get("metadata"), Mapping):
            raise ConfigError(f"{self}: {type(obj).__name__} has no metadata, so it is not an object")
        for field, value in (("apiVersion", wanted), ("kind", self.kind)):
            given = fields.get(field)
            if given and value and given != value:
                raise ConfigError(f"{self}: the object's {field} is {given}, but the resource's is {value}")
        said = {name: fields[name] for name in fields if fields[name] or name not in ("apiVersion", "kind")}
        return {"apiVersion": wanted, **({"kind": self.kind} if self.kind else {}), **said}


def body_of(fields: Any, what: str) -> bytes:
    """Return a dict or list as a request body.

    Args:
        fields: The dict or list.
        what: Names the request in messages.

    Raises:
        ConfigError: JSON cannot represent it. NaN and infinities count, too; msgspec would write null.
    """
    try:
        body = encode(fields)
        if b"null" in body:
            json.dumps(fields, allow_nan=False, skipkeys=True, default=repr)
    except (DecodeError, ValueError) as error:
        raise ConfigError(f"{what}: the request was not sent: {error}") from error
    return body


class _Metadata(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _Spec(msgspec.Struct):
    finalizers: Any = None


class _Answer(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    kind: str = ""
    status: Any = None
    details: Any = None


class _Namespace(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_read_answer = reader_of(_Answer)
_read_namespace = reader_of(_Namespace)


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The lifecycle fields of an answer.

    Attributes:
        key: The object's key; ``""`` if the answer does not say.
        uid: The object's uid.
        version: Its resourceVersion; ``""`` if the answer does not say.
        finalizers: Its ``metadata.finalizers``.
        is_deleted: Whether it is marked for deletion.
        is_kept: Whether finalizers or a grace period keep it.
        is_status: Whether the answer is a Status, which stands for a deleted object.
    """

    key: str
    uid: str
    version: str
    finalizers: tuple[str, ...]
    is_deleted: bool
    is_kept: bool
    is_status: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether the write has removed the object."""
        return self.is_deleted and not self.is_kept


def lifecycle_of(body: bytes) -> Lifecycle:
    """Read an answer: an object, or a Status that stands for a deleted one.

    Raises:
        DecodeError: It is neither.
    """
    try:
        answer = _read_answer(body)
        is_to_be_emptied = answer.kind == "Namespace" and bool(_read_namespace(body).spec.finalizers)
    except DECODE_ERRORS as error:
        raise DecodeError(f"the answer is not an object: {error}") from error
    metadata = answer.metadata
    if answer.kind == "Status":
        if answer.status == "Failure":
            raise DecodeError(f"the answer is a failure in spite of its HTTP status; {begins(body)}")
        details = answer.details if isinstance(answer.details, dict) else {}
        return Lifecycle("", str(details.get("uid") or ""), "", (), True, False, is_status=True)
    key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name or ""
    is_kept = bool(metadata.finalizers or metadata.deletion_grace_period_seconds or is_to_be_emptied)
    is_deleted = metadata.deletion_timestamp is not None
    finalizers = tuple(metadata.finalizers or ())
    return Lifecycle(key, metadata.uid, metadata.resource_version, finalizers, is_deleted, is_kept)
