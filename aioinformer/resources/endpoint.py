"""One resource of an API server: what requests about its objects have in common."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
import msgspec

from ..client import Client
from ..client.error_mapping import asking, say_more
from ..client.transport import JSON, Change, Query
from ..errors import ApiError, ConfigError, DecodeError, TransportError
from ..objects.codec import Codec
from ..objects.excerpts import begins
from ..objects.kube_object import KubeObject, encode
from ..objects.nesting import DECODE_ERRORS, decode_typed
from .addresses import Addresses
from .encoding import body_of, fields_of
from .refusals import refusing

T = TypeVar("T")

GIVE_KIND = 'give it one, such as "kind": "Cave", or give it to the resource: kind="Cave"'
"""What to do where nothing says of which kind an object is."""

APPLY_YOURS = (
    "an object that was read cannot be applied: apply a new one with the fields that are yours, or update it"
)
"""What to do where an object that was read is applied."""


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint(Generic[T]):
    """Asks about objects by their keys.

    Args:
        client: Who asks.
        addresses: Where.
        codec: What objects become.
        kind: Of objects that do not say it; ``""`` leaves it to the server.
        field_manager: Who owns the fields that are written.
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

    def asking(self, verb: str, key: str) -> AbstractContextManager[None]:
        """Around what is done with an answer: errors say what was asked for."""
        return asking(f"{verb} {self} {key}")

    async def read(self, key: str) -> bytes:
        """An object as the server has it now."""
        seconds = self.timeout
        with refusing("get", str(self), key), self.addresses.collection.explaining():
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
        """Ask for a change of an object.

        Args:
            verb: What to call it in messages.
            key: The object's.
            method: Of HTTP.
            body: A dict or list.
            path: Other than the object's.
            subresource: Of the object.
            content_type: The body's.
            query: What else to say; the field manager is said where there is a body of fields.
        """
        change = Change(method, body_of(body, f"{verb} {self} {key}"), content_type)
        verb = f"{verb} {subresource} of" if subresource not in ("", "eviction") else verb
        with refusing(verb, str(self), key), self.addresses.collection.explaining(subresource):
            try:
                return await self.client.send(
                    change, path or self.addresses.of(key, subresource), query, timeout=self.timeout
                )
            except ApiError as error:
                if "Object 'Kind' is missing" in error.message:
                    say_more(error, GIVE_KIND)
                if "managedFields must be nil" in error.message:
                    say_more(error, APPLY_YOURS)
                raise

    def managed(self, field_manager: str | None = None) -> list[tuple[str, str]]:
        """The query that says who owns what is written."""
        manager = self.field_manager if field_manager is None else field_manager
        return [("fieldManager", manager)] if manager else []

    def seen(self, key: str, body: bytes, *, or_status: bool = False) -> Seen:
        """What an answer says of the life of an object.

        Args:
            key: The object's; ``"namespace/"``, or ``""``, where the server was left to give it a name.
            body: The answer.
            or_status: Whether a Status will do, which stands for one that is gone.

        Raises:
            DecodeError: It is about another one, or about none.
        """
        seen = seen_of(body)
        is_named = bool(key) and not key.endswith("/")
        is_it = seen.key == key if is_named else seen.key.startswith(key) and seen.key != key
        if not is_it and not (or_status and seen.is_status):
            raise DecodeError(f"the answer is about {seen.key or 'no object'}; {begins(body)}")
        return seen

    def of_type(self, obj: Any) -> T:
        """An object of any form in the resource's; one that has it is given back."""
        object_type = self.codec.object_type
        if object_type is not None and isinstance(obj, object_type):
            return obj
        return self.codec.decode(obj if isinstance(obj, KubeObject) else encode(fields_of(obj)))

    def fields(self, obj: Any) -> dict[str, Any]:
        """What is sent of an object: its fields, apiVersion and kind among them.

        Raises:
            ConfigError: It is of another resource, or of none.
        """
        fields = fields_of(obj)
        wanted = self.addresses.collection.api_version
        if not isinstance(fields.get("metadata"), Mapping):
            raise ConfigError(f"{self}: an object has metadata, and {type(obj).__name__} has none")
        for field, value in (("apiVersion", wanted), ("kind", self.kind)):
            given = fields.get(field)
            if given and value and given != value:
                raise ConfigError(f"{self}: {field} is {value}, and the object's is {given}")
        return {"apiVersion": wanted, **({"kind": self.kind} if self.kind else {}), **_said(fields)}


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


_answer_decoder = msgspec.json.Decoder(_Answer)
_namespace_decoder = msgspec.json.Decoder(_Namespace)


@dataclass(frozen=True, slots=True)
class Seen:
    """What an answer says of an object's life.

    Attributes:
        key: Which object it is about; ``""`` where it does not say.
        uid: Which of those that had its name it is.
        version: Its resourceVersion; ``""`` where the answer does not say.
        finalizers: Those in its metadata.
        is_deleted: Whether its deletion was asked for.
        is_kept: Whether finalizers or a grace time keep it.
        is_status: Whether it is not an object, but the Status that stands for one that is gone.
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
        """Whether the write that was answered so has removed it."""
        return self.is_deleted and not self.is_kept


def seen_of(body: bytes) -> Seen:
    """Read an answer: an object; or the Status that stands for one that is gone.

    Raises:
        DecodeError: It is neither.
    """
    try:
        answer = decode_typed(_answer_decoder, body)
        is_to_be_emptied = answer.kind == "Namespace" and bool(
            decode_typed(_namespace_decoder, body).spec.finalizers
        )
    except DECODE_ERRORS as error:
        raise DecodeError(f"the answer is no object: {error}") from error
    metadata = answer.metadata
    if answer.kind == "Status":
        if answer.status == "Failure":
            raise DecodeError(f"the answer is a failure, though its HTTP status is not; {begins(body)}")
        details = answer.details if isinstance(answer.details, dict) else {}
        return Seen("", str(details.get("uid") or ""), "", (), True, False, is_status=True)
    key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name or ""
    is_kept = bool(metadata.finalizers or metadata.deletion_grace_period_seconds or is_to_be_emptied)
    is_deleted = metadata.deletion_timestamp is not None
    finalizers = tuple(metadata.finalizers or ())
    return Seen(key, metadata.uid, metadata.resource_version, finalizers, is_deleted, is_kept)


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    """Without an apiVersion or kind that is empty."""
    return {name: value for name, value in fields.items() if value or name not in ("apiVersion", "kind")}
