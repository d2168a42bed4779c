"""AdmissionReview: the request that a webhook reviews, with its warnings and denials."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ...errors import DecodeError, Denied
from ...objects.json_values import same
from ...objects.nesting import DECODE_ERRORS, decode_any, reader_of

T = TypeVar("T")

Operation = Literal["CREATE", "UPDATE", "DELETE"]


class UserInfo(msgspec.Struct, frozen=True):
    """The user who makes a request (``authentication/v1 UserInfo``)."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _GroupVersionKind(msgspec.Struct, frozen=True):
    version: str = ""
    kind: str = ""


class AdmissionRequest(msgspec.Struct, rename="camel", kw_only=True):
    """What the API server sends (``admission/v1 AdmissionRequest``), with undecoded objects."""

    uid: str
    operation: Operation
    kind: _GroupVersionKind = _GroupVersionKind()
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    options: dict[str, Any] | None = None
    dry_run: bool | None = None


class _Times(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: _Times


_read_head = reader_of(_Head)


class AdmissionReview(Generic[T]):
    """A request that a webhook allows, changes or denies.

    A unit test makes one by ``operator.review(obj)``.

    Attributes:
        uid: Of this request.
        operation: ``"CREATE"``, ``"UPDATE"`` or ``"DELETE"``.
        kind: The object's kind.
        version: The version of ``raw``, such as ``"v1"``.
        name: The object's name; ``""`` if the server generates it.
        namespace: ``""`` for cluster-scoped objects.
        subresource: ``"status"``; ``""`` for the object itself.
        user: The user who makes the request.
        dry_run: Whether nothing will be stored, so the webhook must not write anything elsewhere.
        options: Of the request: the server's CreateOptions, UpdateOptions or DeleteOptions.
        raw: The object's JSON, with the fields that its class does not have.
        warnings: What ``warn`` got.
        denials: What ``deny`` got.
    """

    def __init__(self, request: AdmissionRequest, decode: Callable[[bytes], T]) -> None:
        self._request = request
        self._decode = decode
        self.uid = request.uid
        self.operation: Operation = request.operation
        self.kind = request.kind.kind
        self.version = request.kind.version
        self.name = request.name
        self.namespace = request.namespace
        self.subresource = request.sub_resource
        self.user = request.user_info
        self.dry_run = bool(request.dry_run)
        self.options = request.options or {}
        self.warnings: list[str] = []
        self.denials: list[Denied] = []
        self.unread: dict[str, DecodeError] = {}
        """Why ``object`` or ``old`` could not be read, once the webhook has tried."""

    def __repr__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"<AdmissionReview {self.operation} {where or 'a generated name'}>"

    @property
    def raw(self) -> bytes:
        """The object's JSON as the server sent it, with the fields that its class does not have."""
        return bytes(self._request.old_object if self.operation == "DELETE" else self._request.object)

    @cached_property
    def object(self) -> T:
        """The object as it would be stored; of a DELETE, the object that would be deleted.

        Raises:
            DecodeError: It does not fit its class.
        """
        return self._read("object", self.raw)

    @cached_property
    def old(self) -> T | None:
        """The object as it is stored; None of a CREATE.

        Raises:
            DecodeError: It does not fit its class.
        """
        raw = bytes(self._request.old_object)
        return None if raw == b"null" else self._read("old", raw)

    def _read(self, which: str, raw: bytes) -> T:
        try:
            return self._decode(raw)
        except DecodeError as error:
            self.unread[which] = error
            raise

    @property
    def was_read(self) -> bool:
        """Whether the webhook has read ``object``, and may have changed it."""
        return "object" in self.__dict__

    @property
    def is_being_deleted(self) -> bool:
        """Whether this is an update of an object that waits for its finalizers."""
        if self.operation != "UPDATE":
            return False
        try:
            head = _read_head(self._request.old_object)
        except DECODE_ERRORS:
            return False
        return head.metadata.deletion_timestamp is not None

    @cached_property
    def changes_only_metadata(self) -> bool:
        """Whether this is an update that changes nothing but metadata."""
        if self.operation != "UPDATE":
            return False
        try:
            before, after = decode_any(self._request.old_object), decode_any(self._request.object)
        except DECODE_ERRORS:
            return False
        if not (isinstance(before, dict) and isinstance(after, dict)):
            return False
        return same({**before, "metadata": None}, {**after, "metadata": None})

    def warn(self, message: str) -> None:
        """Show the user a warning. The server cuts it after 256 characters."""
        self.warnings.append(message)

    def deny(self, message: str, *, field: str = "") -> None:
        """Deny the request when the webhook returns, to name all mistakes at once. ``raise Denied`` does it now.

        Args:
            message: Why, for the user.
            field: The field that is wrong: ``"spec.host"``.
        """
        self.denials.append(Denied(message, field=field))
