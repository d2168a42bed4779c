"""Errors of the embedded API server, with `Status` bodies as kube-apiserver writes them.

The errors of `aioinformer.testing`:

    TestingError
    ├── StatusError          an HTTP answer with a `Status` body; also raised by the Python API
    ├── MatchingError        the `matching` function of a fault raised
    ├── MarshalError         a stored object cannot be encoded as protobuf
    ├── MissingExtraError    a library of the extra `aioinformer[testing]` is not installed
    ├── UnknownNameError     there is no such verb, resource or controller
    └── SimulationError      a simulation detected a deadlock, a leak or the like
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

import msgspec

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_MESSAGES = {
    410: "The resourceVersion for the provided watch is too old.",
    429: "The apiserver is currently handling too many requests, please try again later",
    500: "Internal error occurred: injected by a test",
    503: "the server is currently unable to handle the request",
    504: "Timeout: request did not complete within the allotted timeout",
}

OPTIMISTIC_LOCK = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class TestingError(Exception):
    """Base class of the errors of `aioinformer.testing`."""

    __test__ = False  # pytest must not collect it


class MissingExtraError(TestingError, ImportError):
    """A library of an optional extra is not installed."""

    def __init__(self, library: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {library}, which is not installed: pip install 'aioinformer[testing]'"
        )


class MarshalError(TestingError, ValueError):
    """A stored object cannot be encoded as protobuf, because a value has the wrong type."""


class MatchingError(TestingError):
    """The `matching` of a fault raised, so the fault did not affect the request; `__cause__` is its error."""

    def __init__(self, cause: Exception, known: Iterable[str]) -> None:
        super().__init__(
            f"matching of a fault raised {type(cause).__name__}: {cause}; a request has these attributes: "
            f"{', '.join(known)}"
        )


class UnknownNameError(TestingError, ValueError):
    """A verb or resource of a fault, or a controller of the control plane, does not exist."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"use one of: {', '.join(known)}"
        super().__init__(f"there is no {what} {name!r}; {hint}")
        self.name = name


class StatusError(TestingError):
    """The server refused a request; `status` is the `Status` object with the reason.

    Attributes:
        code: The HTTP status code.
        reason: The machine-readable reason, such as `"AlreadyExists"`.
        message: The message for people.
        status: The whole `Status` as a dict, in the real server's order.
        warnings: What the answer warns of.
    """

    def __init__(
        self,
        code: int,
        reason: str | None = None,
        message: str | None = None,
        *,
        details: dict[str, Any] | None = None,
        continue_token: str | None = None,
    ) -> None:
        self.code = code
        self.reason = reason if reason is not None else _REASONS.get(code, "")
        self.message = message if message is not None else _MESSAGES.get(code, f"HTTP status {code}")
        self.details = details
        self.continue_token = continue_token
        self.warnings: Sequence[str] = ()
        super().__init__(f"{code} {self.reason}: {self.message}")

    @property
    def status(self) -> dict[str, Any]:
        """The `Status` object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def retry_after(self) -> int | None:
        """Seconds for the Retry-After header; None without `details.retryAfterSeconds`."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return int(seconds) if seconds else None


def cause(reason: str, message: str, field: str = "") -> dict[str, str]:
    """Return an entry of `details.causes`."""
    entry = {"reason": reason, "message": message}
    if field:
        entry["field"] = field
    return entry


def field_required(path: str, why: str = "") -> dict[str, str]:
    """Return the cause for a missing field."""
    return cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def field_invalid(path: str, value: Any, why: str) -> dict[str, str]:
    """Return the cause for an invalid value."""
    return cause("FieldValueInvalid", f"Invalid value: {_show(value)}: {why}", path)


def field_not_supported(path: str, value: Any, supported: Iterable[str]) -> dict[str, str]:
    """Return the cause for a value outside the supported values."""
    listed = ", ".join(map(_show, supported))
    return cause(
        "FieldValueNotSupported", f"Unsupported value: {_show(value)}: supported values: {listed}", path
    )


def field_duplicate(path: str, value: str) -> dict[str, str]:
    """Return the cause for a value that occurs twice."""
    return cause("FieldValueDuplicate", f"Duplicate value: {_show(value)}", path)


def field_forbidden(path: str, why: str) -> dict[str, str]:
    """Return the cause for a field that is forbidden here."""
    return cause("FieldValueForbidden", f"Forbidden: {why}", path)


def field_too_long(path: str, most: int) -> dict[str, str]:
    """Return the cause for a value that exceeds a number of bytes."""
    return cause("FieldValueTooLong", f"Too long: may not be more than {most} bytes", path)


def field_too_many(path: str, number: int, most: int) -> dict[str, str]:
    """Return the cause for a list with too many items."""
    return cause("FieldValueTooMany", f"Too many: {number}: must have at most {most} items", path)


def _show(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class _Resource(Protocol):
    """What an error tells about its resource."""

    @property
    def group(self) -> str: ...

    @property
    def plural(self) -> str: ...

    @property
    def kind(self) -> str: ...


def _qualify(resource: _Resource) -> str:
    return in_group(resource.plural, resource.group)


def in_group(name: str, group: str) -> str:
    """Return a plural or a kind as messages show it: `"pods"`, `"deployments.apps"`."""
    return f"{name}.{group}" if group else name


def _details(resource: _Resource, name: str) -> dict[str, Any]:
    return _about(name, resource.group, resource.plural)


def _about(name: str, group: str, kind: str) -> dict[str, Any]:
    return {field: value for field, value in (("name", name), ("group", group), ("kind", kind)) if value}


def bad_request(message: str) -> StatusError:
    """Return a 400."""
    return StatusError(400, "BadRequest", message)


def too_large(why: str) -> StatusError:
    """Return a 413."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def unknown_conversion(kind: str, api_version: str | None, wanted: _Resource) -> StatusError:
    """Return the 400 for an object of another kind than the wanted one."""
    group = wanted.group.split(".")[0] or "core"
    return bad_request(
        f'{kind} in version "{api_version}" cannot be handled as a {wanted.kind}: converting '
        f"({str(api_version).replace('/', '.')}.{kind}) to ({group}.{wanted.kind}): unknown conversion"
    )


def not_found(resource: _Resource, name: str) -> StatusError:
    """Return the 404 for an object."""
    return StatusError(
        404,
        "NotFound",
        f'{_qualify(resource)} "{name}" not found',
        details=_details(resource, name),
    )


def path_not_found() -> StatusError:
    """Return the 404 for a path without a resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: _Resource, name: str, *, generated: bool, terminating: bool) -> StatusError:
    """Return the 409 for a create."""
    details = _details(resource, name)
    message = f'{_qualify(resource)} "{name}" already exists'
    if terminating:
        message = f"object is being deleted: {message}"
    if generated:
        details["retryAfterSeconds"] = 1
        message += ", the server was not able to generate a unique name for the object"
    return StatusError(409, "AlreadyExists", message, details=details)


def conflict(
    resource: _Resource, name: str, why: str = OPTIMISTIC_LOCK, subresource: str = ""
) -> StatusError:
    """Return the 409 for an update, a delete, or a write to a subresource."""
    below = f"/{subresource}" if subresource else ""
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {_qualify(resource)}{below} "{name}": {why}',
        details={**_details(resource, name), "kind": f"{resource.plural}{below}"},
    )


def other_object(
    resource: _Resource, namespace: str, name: str, precondition: str, wanted: str, current: str
) -> StatusError:
    """Return the 409 for a write that means an object with another uid or resourceVersion."""
    key = "/".join(filter(None, (resource.plural, namespace, name)))
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {precondition} in precondition: {wanted}, {precondition} in object meta: {current}"
    )
    return conflict(resource, name, why)


def precondition_failed(resource: _Resource, name: str, why: str) -> StatusError:
    """Return the 409 for a failed precondition of a delete, which names the kind as the real server does."""
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {in_group(resource.kind, resource.group)} "{name}": {why}',
        details={**_details(resource, name), "kind": resource.kind},
    )


def forbidden(resource: _Resource, name: str, why: str) -> StatusError:
    """Return a 403."""
    subject = f'{_qualify(resource)} "{name}"' if name else _qualify(resource)
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details=_details(resource, name))


def invalid(kind: str, group: str, name: str, causes: Sequence[dict[str, str]]) -> StatusError:
    """Return a 422; each of the `causes` names its field."""
    qualified = in_group(kind, group)
    reasons = [f"{entry.get('field', '')}: {entry['message']}" for entry in causes]
    text = reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]"
    details = {**_about(name, group, kind), "causes": list(causes)}
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details=details)


def method_not_allowed() -> StatusError:
    """Return the 405 for a verb that a path does not support."""
    return StatusError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )


def resource_version_too_large(asked: int, current: int) -> StatusError:
    """Return the 504 for a version that the server has not reached."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={
            "causes": [cause("ResourceVersionTooLarge", "Too large resource version")],
            "retryAfterSeconds": 1,
        },
    )
