"""Reviews without a server: call an operator's webhooks for an object, in unit tests."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from ...client.lookup import resource_of_class
from ...errors import ApiError, ConfigError, StatusCause
from ...objects.codec import codec_for
from ...objects.encoding import fields_of
from ...objects.kube_object import KubeObject
from ...objects.nested_encoding import encode_nested
from ...objects.nesting import decode_any, reader_of
from ...typed.declaration import plural_of
from ..context import Context
from .admission import OTHER_KINDS, Admission
from .patching import apply_patch
from .review import AdmissionRequest, Operation, UserInfo

T = TypeVar("T")

Object = dict[str, Any]


@dataclass(frozen=True)
class Reviewed(Generic[T]):
    """The outcome of an operator's webhooks for an object.

    Attributes:
        allowed: Whether the server would store it.
        object: The object as it would be stored, with the changes of mutating webhooks.
        message: Why it is denied; ``""`` if it is allowed.
        causes: The fields that are wrong.
        warnings: The warnings that the user would see.
    """

    allowed: bool
    object: T
    message: str
    causes: tuple[StatusCause, ...]
    warnings: tuple[str, ...]


async def try_review(
    admissions: Iterable[Admission],
    context: Context | None,
    obj: T,
    old: T | None,
    operation: Operation,
    user: UserInfo,
    dry_run: bool,
    subresource: str,
) -> Reviewed[T]:
    """Call the webhooks for an object, as the server does: those that mutate in turn, then those that validate.

    Raises:
        ConfigError: No webhook is called for the object and the operation, or one takes a context and there is none.
        Exception: A webhook failed.
    """
    fields, before = _encode(obj), None if old is None else _encode(old)
    called = [
        admission
        for admission in admissions
        if operation in admission.operations
        and admission.subresource == subresource
        and _is_of(admission, obj, fields)
    ]
    if not called:
        raise ConfigError(
            f"no webhook is called for {operation} of {fields.get('kind') or type(obj).__name__}"
            f"{f'/{subresource}' if subresource else ''}: declare one, or pass an object of a declared kind"
        )
    warnings: list[str] = []
    denials: list[ApiError] = []
    for admission in sorted(called, key=lambda admission: not admission.mutates):
        metadata = fields.get("metadata") or {}
        request = {
            "uid": "test",
            "operation": operation,
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "subResource": subresource,
            "userInfo": user,
            "object": None if operation == "DELETE" else fields,
            "oldObject": fields if operation == "DELETE" else before,
            "dryRun": dry_run,
        }
        handle = admission.bind(context)
        response = await handle(_read_request(encode_nested(request)))
        warnings += response.get("warnings", ())
        if (status := response.get("status")) is not None:
            denials.append(
                ApiError(status["code"], status["reason"], status["message"], status.get("details"))
            )
            if admission.mutates:
                break  # the server asks no other
        elif "patch" in response:
            apply_patch(fields, decode_any(base64.b64decode(response["patch"])))
    return Reviewed(
        not denials,
        codec_for(type(obj)).decode(encode_nested(fields)),
        "; ".join(denial.message for denial in denials),
        tuple(cause for denial in denials for cause in denial.causes),
        tuple(warnings),
    )


_read_request = reader_of(AdmissionRequest)


def _encode(obj: Any) -> Object:
    """Return an object as the server would send it. It shares nothing with the original."""
    fields: Object = decode_any(encode_nested(fields_of(obj)))
    return fields


def _is_of(admission: Admission, obj: Any, fields: Object) -> bool:
    """Return whether a webhook is called for objects of this kind and version."""
    if admission.subresource in OTHER_KINDS:  # a Scale does not say whose it is
        return True
    called = admission.of
    if isinstance(obj, msgspec.Struct) and not isinstance(obj, KubeObject):
        kind = resource_of_class(type(obj))
        group, version, plural = kind.group, kind.version, kind.plural
    else:
        named = str(fields.get("kind", ""))
        group, _, version = str(fields.get("apiVersion", "")).rpartition("/")
        plural = called.plural if called.kind == named else plural_of(named)
    # discovery finds the version of a resource that is named by its plural and group
    return (group, plural) == (called.group, called.plural) and called.version in ("", version)
