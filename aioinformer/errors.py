"""Every error that aioinformer raises.

AioInformerError
├── ApiError                    the API server answered with a failure Status
│   └── RefusedError            it refused a request about an object or a collection
│       ├── ForbiddenError      not permitted (403)
│       ├── ObjectNotFoundError there is no such object (404); also a NotFoundError
│       ├── ConflictError       the object has changed, or a field belongs to another manager (409)
│       ├── AlreadyExistsError  an object of this name exists (409)
│       ├── InvalidError        invalid fields (422)
│       └── TooManyRequestsError    try later (429); also an eviction that a budget forbids
├── TransportError              no usable answer: refused, reset, cut, timed out
│   ├── IdleTimeoutError        a connection was open and silent for too long
│   └── DamagedError            the bytes were changed on the way
├── VeryShortWatchError         a watch ended at once, without an event
├── ConfigError                 an invalid kubeconfig, in-cluster file or argument
│   └── ClientClosedError       a request through a closed client
├── SelectorError               an invalid label selector
├── DecodeError                 bytes or a value that cannot become the requested object type
├── RejectedObjectError         one object was rejected; the others were stored
│   ├── KeyFuncError            its key function raised
│   ├── TransformError          its transformer raised
│   └── IndexFuncError          an index function raised (the object is stored, without that index)
├── FIFOClosedError             pop on a queue that is closed and empty
├── QueueHeldError              adding to a queue from inside its own process function
├── RequeueError                raised *by* a process function: put the item back
├── UnknownIndexError           reading an index that was never added
├── IndexerConflictError        adding an index whose name is taken
├── NotFoundError               there is no such object: in a cache, or on the server
├── WorkQueueError              done() for an item that the work queue did not hand out
│   └── QueueShutDownError      get on a work queue that is shut down and empty
├── ReconcileError              a reconciler failed
│   ├── TerminalError           raised *by* a reconciler: a retry would not help
│   ├── InvalidResultError      it did not return a Result
│   └── ReconcileTimeout        it took too long
├── UntilError                  until() did not see what it waited for
│   ├── WatchClosedError        the events ended first
│   └── UntilTimeout            the timeout passed first
├── LeadershipLostError         another candidate may lead by now
├── CacheMutatedError           an object of the cache was changed in place
├── WrongEventLoopError         used from another event loop or thread than its own
└── InformerError               lifecycle
    ├── AlreadyStartedError
    ├── StoppedError
    └── SyncTimeout             not synced before the timeout
        └── VersionTimeout      a version was not reached before the timeout
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._core.difference import difference

__all__ = [
    "AioInformerError",
    "AlreadyExistsError",
    "AlreadyStartedError",
    "ApiError",
    "CacheMutatedError",
    "ClientClosedError",
    "ConfigError",
    "ConflictError",
    "DamagedError",
    "DecodeError",
    "FIFOClosedError",
    "ForbiddenError",
    "IdleTimeoutError",
    "IndexFuncError",
    "IndexerConflictError",
    "InformerError",
    "InvalidError",
    "InvalidResultError",
    "KeyFuncError",
    "LeadershipLostError",
    "NotFoundError",
    "ObjectNotFoundError",
    "QueueHeldError",
    "QueueShutDownError",
    "ReconcileError",
    "ReconcileTimeout",
    "RefusedError",
    "RejectedObjectError",
    "RequeueError",
    "SelectorError",
    "StoppedError",
    "SyncTimeout",
    "TerminalError",
    "TooManyRequestsError",
    "TransformError",
    "TransportError",
    "UnknownIndexError",
    "UntilError",
    "UntilTimeout",
    "VersionTimeout",
    "VeryShortWatchError",
    "WatchClosedError",
    "WorkQueueError",
    "WrongEventLoopError",
]

LONGEST_RETRY_AFTER = 600.0
"""The longest ``retry_after`` in seconds; a longer one is cut to it."""

KNOWN_REASONS = frozenset({
    "AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError", "Invalid",
    "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge", "ServerTimeout",
    "ServiceUnavailable", "StorageReadError", "Timeout", "TooManyRequests", "Unauthorized",
    "UnsupportedMediaType",
})  # fmt: skip
"""The reasons that are more specific than the status code (apierrors ``knownReasons``)."""

LONGEST_TEXT = 2000
"""Characters of a server's message in error texts; ``message`` has the whole message."""


class AioInformerError(Exception):
    """The base class of every error of this package."""


class StatusCause(NamedTuple):
    """One cause in a Status.

    Attributes:
        field: The field, such as ``"spec.containers[0].image"``; ``""`` for none.
        reason: Machine-readable, such as ``"FieldValueRequired"``.
        message: The text for people.
    """

    field: str
    reason: str
    message: str


class ApiError(AioInformerError):
    """The API server answered with a failure Status (k8s.io/apimachinery, ``metav1.Status``).

    Args:
        status: The HTTP status code, which is also the Status' ``code``; 0 for an ERROR event without one.
        reason: The machine-readable reason, such as ``"Expired"`` or ``"Forbidden"``.
        message: The server's text for people.
        details: The Status' ``details``: name, kind, causes, retryAfterSeconds.
    """

    def __init__(
        self, status: int, reason: str = "", message: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        AioInformerError.__init__(self, status, reason, message, details)
        self.status = status
        self.reason = reason
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.context = ""
        """The request, such as ``"list pods in default"``; set by the sender."""

    def __str__(self) -> str:
        asked = f"{self.context}: " if self.context else ""
        said = f"{self.reason or 'Unknown'}: {self.message or 'no message'}"
        status = f"{self.status} " if self.status else ""
        return f"{asked}{status}{said if len(said) <= LONGEST_TEXT else said[:LONGEST_TEXT] + '…'}"

    @classmethod
    def from_status(cls, status: Any) -> ApiError:
        """Return the error for a Status, a dict such as an ERROR event's object; invalid parts stay empty."""
        code = status.get("code")
        details = status.get("details")
        return cls(
            code if isinstance(code, int) and 0 < code < 1000 else 0,
            str(status.get("reason") or ""),
            str(status.get("message") or ""),
            details if isinstance(details, Mapping) else None,
        )

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """The causes that the server lists, one for each field."""
        given = self.details.get("causes")
        return tuple(
            StatusCause(*(str(cause.get(name) or "") for name in ("field", "reason", "message")))
            for cause in (given if isinstance(given, list) else ())
            if isinstance(cause, Mapping)
        )

    @property
    def is_expired(self) -> bool:
        """Whether the resourceVersion or continue token is too old (410; ``IsResourceExpired``, ``IsGone``)."""
        return self.reason == "Expired" or self._has_reason("Gone", 410)

    @property
    def is_too_large_resource_version(self) -> bool:
        """Whether the resourceVersion is ahead of the server (``IsTooLargeResourceVersion``, and as before 1.18.5)."""
        if any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes):
            return True
        in_words = "Too large resource version"
        return self._has_reason("Timeout", 504) and (
            any(cause.message == in_words for cause in self.causes)
            or (in_words in self.message and bool(self.details))
        )

    @property
    def is_too_many_requests(self) -> bool:
        """Whether the server is overloaded (429)."""
        return self.status == 429 or self.reason == "TooManyRequests"

    @property
    def is_missing_resource(self) -> bool:
        """Whether the resource itself does not exist (a 404 that names no object)."""
        return self.status == 404 and not self.details.get("name")

    @property
    def is_internal_error(self) -> bool:
        """Whether the server had an internal error (``IsInternalError``)."""
        return self._has_reason("InternalError", 500)

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, as the server asks, at most LONGEST_RETRY_AFTER; or None."""
        seconds = self.details.get("retryAfterSeconds")
        if not isinstance(seconds, (int, float)) or not seconds > 0:
            return None
        return float(min(seconds, LONGEST_RETRY_AFTER))

    def _has_reason(self, reason: str, status: int) -> bool:
        """Return whether this has the reason, or the status code and no known reason."""
        return self.reason == reason or (self.status == status and self.reason not in KNOWN_REASONS)


class RefusedError(ApiError):
    """The API server refused a request of a Resource: any 4xx answer except 401.

    Attributes:
        key: The object's key; ``""`` for a list.
        resource: The collection, such as ``"deployments.apps"``; for a list with namespace and selectors.
    """

    key = ""
    resource = ""

    def __str__(self) -> str:
        unsaid = [
            f"{cause.field}: {cause.message or cause.reason}" if cause.field else cause.message
            for cause in self.causes
            if (cause.field not in self.message if cause.field else cause.message not in self.message)
        ]
        fields = f" ({'; '.join(unsaid)})" if unsaid else ""
        again = f"; again in {self.retry_after:g} s" if self.retry_after is not None else ""
        return f"{super().__str__()}{fields}{again}"


class ForbiddenError(RefusedError):
    """The request is not permitted (403): a missing permission, a quota, or a namespace that is being deleted."""


class ConflictError(RefusedError):
    """The object has changed since it was read, or a field belongs to another manager (409).

    Read it again, and decide again.
    """


class AlreadyExistsError(RefusedError):
    """An object of this name exists (409)."""


class InvalidError(RefusedError):
    """The object would be invalid (422), or a ``test`` of a JSON patch failed."""


class TooManyRequestsError(RefusedError):
    """The server is overloaded (429): retry after ``retry_after``; or a disruption budget forbids an eviction."""


class TransportError(AioInformerError):
    """No usable answer came: the connection was refused, reset, cut in the middle, or timed out."""


class IdleTimeoutError(TransportError):
    """A connection stayed open and silent past its deadline (half-open connections end here)."""


class DamagedError(TransportError):
    """The bytes of a connection were changed on the way, as TLS has found."""


class VeryShortWatchError(AioInformerError):
    """A watch ended as soon as it was open, without an event or an error."""


class ConfigError(AioInformerError):
    """The configuration is invalid: a kubeconfig, context, in-cluster file or argument."""


class ClientClosedError(ConfigError):
    """The client was closed. Requests are not retried: their callers end with this error."""


class SelectorError(AioInformerError):
    """A label selector cannot be parsed."""


class DecodeError(AioInformerError):
    """Bytes or a value could not be decoded as the requested object type."""


class RejectedObjectError(AioInformerError):
    """One object was rejected; ``others`` are further rejections of the same call. All other objects were stored."""

    others: tuple[RejectedObjectError, ...] = ()

    def all(self) -> tuple[RejectedObjectError, ...]:
        """Return this rejection and the others of the same call."""
        return (self, *self.others)

    @staticmethod
    def raise_first(rejected: list[RejectedObjectError]) -> None:
        """Raise the first error with the rest in ``others``, and clear the list. Do nothing if it is empty."""
        if not rejected:
            return
        first, *others = rejected
        first.others = tuple(others)
        # The traceback refers to this frame: without these deletions the cycle would keep the objects alive.
        rejected.clear()
        try:
            raise first
        finally:
            del first, others


class KeyFuncError(RejectedObjectError):
    """A key function raised for an object (client-go ``cache.KeyError``)."""

    def __init__(self, obj: Any, cause: BaseException | None = None) -> None:
        super().__init__(obj, cause)
        self.obj = obj
        self.cause = cause

    def __str__(self) -> str:
        return f"no key for {type(self.obj).__name__} {shortened(self.obj)}: {self.cause}"


class TransformError(RejectedObjectError):
    """A transformer raised for an object, or returned None or an object with another key."""

    def __init__(self, key: str, resource_version: str, cause: BaseException) -> None:
        super().__init__(key, resource_version, cause)
        self.key = key
        self.resource_version = resource_version
        self.cause = cause

    def __str__(self) -> str:
        return f"transforming {self.key} at {self.resource_version or 'no version'} failed: {self.cause!r}"


class IndexFuncError(RejectedObjectError):
    """An index function raised for an object. The object is stored without that index."""

    def __init__(self, index: str, key: str, cause: BaseException, resource_version: str = "") -> None:
        super().__init__(index, key, cause, resource_version)
        self.index = index
        self.key = key
        self.cause = cause
        self.resource_version = resource_version

    def __str__(self) -> str:
        version = self.resource_version or "no version"
        return f"index {self.index!r} failed on {self.key} at {version}: {self.cause!r}"


class FIFOClosedError(AioInformerError):
    """The queue is closed and everything in it has been popped."""


class QueueHeldError(AioInformerError):
    """A process function called its own queue, which is locked until the function returns.

    Not raised if it awaits another task that calls the queue, as ``asyncio.gather`` does: that waits forever.
    """


class RequeueError(AioInformerError):
    """Raised by a process function: put the item back unless something newer is queued for its key.

    Args:
        cause: ``pop`` raises it after the item was put back; None if the pop counts as a success.
    """

    def __init__(self, cause: BaseException | None = None) -> None:
        super().__init__(cause)
        self.cause = cause


class UnknownIndexError(AioInformerError):
    """No index of this name was added."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(name, self.known)

    def __str__(self) -> str:
        return f"no index named {self.name!r}; there are: {', '.join(self.known) or 'none'}"


class IndexerConflictError(AioInformerError):
    """An index of this name exists."""


class NotFoundError(AioInformerError):
    """There is no such object: in the cache, or (ObjectNotFoundError) on the server."""

    def __init__(self, key: str, resource: str = "object", hint: str = "") -> None:
        super().__init__(key, resource, hint)
        self.key = key
        self.resource = resource
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.resource} {self.key!r} not found" + (f": {self.hint}" if self.hint else "")


class ObjectNotFoundError(RefusedError, NotFoundError):
    """The server has no such object, or no such resource or namespace (404); the message says which."""


class WorkQueueError(AioInformerError):
    """``done`` was called for an item that the work queue did not hand out."""


class QueueShutDownError(WorkQueueError):
    """The work queue is shut down and empty."""


class ReconcileError(AioInformerError):
    """A reconciler failed."""


class TerminalError(ReconcileError):
    """Raised by a reconciler: a retry would not help until something changes (controller-runtime)."""


class InvalidResultError(ReconcileError):
    """A reconciler did not return a Result."""


class ReconcileTimeout(ReconcileError, TimeoutError):  # noqa: N818 - as SyncTimeout
    """A reconciler took too long and was cancelled."""


class UntilError(AioInformerError):
    """``until`` did not see what it waited for.

    Args:
        message: What it waited for, and where.
        event: The last event; None if there was none.
    """

    def __init__(self, message: str, event: Any = None) -> None:
        super().__init__(message, event)
        self.message = message
        self.event = event

    def __str__(self) -> str:
        return self.message


class WatchClosedError(UntilError):
    """The events ended first (client-go ``ErrWatchClosed``)."""


class UntilTimeout(UntilError, TimeoutError):  # noqa: N818 - as SyncTimeout
    """The timeout passed first."""


class LeadershipLostError(AioInformerError):
    """Another candidate may lead by now, so the work under this leadership was cancelled.

    Args:
        lease: The Lease's key.
        identity: The former leader.
        why: What happened.
    """

    def __init__(self, lease: str, identity: str, why: str) -> None:
        super().__init__(lease, identity, why)
        self.lease = lease
        self.identity = identity
        self.why = why

    def __str__(self) -> str:
        return f"{self.identity} has no leadership by the lease {self.lease}: {self.why}"


class CacheMutatedError(AioInformerError):
    """An object of the cache was changed in place, so all its readers see the change."""

    def __init__(self, name: str, key: str, before: Any, after: Any) -> None:
        super().__init__(name, key, before, after)
        self.name = name
        self.key = key
        self.before = before
        self.after = after

    def __str__(self) -> str:
        path, was, now = difference(self.before, self.after) or ("", self.before, self.after)
        where = f" at {path}" if path else ""
        return f"{self.name}: cached object {self.key} was modified{where}: was {shortened(was)}, is {shortened(now)}"


class WrongEventLoopError(AioInformerError):
    """An object was used from another event loop or thread than its own."""


class InformerError(AioInformerError):
    """An informer was used in a state that does not allow it."""


class AlreadyStartedError(InformerError):
    """It was configured after its start, or started twice."""


class StoppedError(InformerError):
    """The informer has stopped; informers do not start again."""


class SyncTimeout(InformerError, TimeoutError):  # noqa: N818 - the name of the public contract
    """The cache or a handler did not sync in time. The message says what it is waiting for.

    Args:
        *args: The message.
        informer: The name of the informer or registration; None if several were waited for.
        handler: The handler's name; None if only the cache was waited for.
        key: The key that the handler is handling or that was waited for, or None.
    """

    def __init__(
        self, *args: object, informer: str | None = None, handler: str | None = None, key: str | None = None
    ) -> None:
        super().__init__(*args)
        self.informer = informer
        self.handler = handler
        self.key = key


class VersionTimeout(SyncTimeout):
    """The cache did not reach a version in time.

    Args:
        name: The informer's name.
        wanted: The version; ``""`` for the object's deletion.
        reached: The version that was reached.
        key: The object's key; None for the collection.
        timeout: Seconds.
        state: What the informer is doing.
    """

    def __init__(
        self, name: str, wanted: str, reached: str, key: str | None, timeout: float, state: str
    ) -> None:
        super().__init__(name, wanted, reached, key, timeout, state, informer=name, key=key)
        self.name = name
        self.wanted = wanted
        self.reached = reached
        self.timeout = timeout
        self.state = state

    def __str__(self) -> str:
        what = "the collection" if self.key is None else self.key
        what = f"{what} at {self.wanted}" if self.wanted else f"without {what}"
        hint = "Where nothing changes, a server says only every minute or two which version that is"
        if self.wanted and not self.wanted.isdecimal():
            hint = (
                "That version is no number, so it cannot be told whether the cache is past it: read the object at the "
                "server (Resource.get)"
            )
        return (
            f"{self.name}: not {what} after {self.timeout:g} s: reached {self.reached}; {self.state}. {hint}"
        )


def said(error: BaseException) -> str:
    """Return an error's text for logs, with its type if it is not one of these. Never raises."""
    name = type(error).__name__
    try:
        text = str(error)
        if not text:
            return repr(error)
    except Exception:
        return name
    return text if isinstance(error, AioInformerError) else f"{name}: {text}"


def traceback_of(error: BaseException) -> BaseException | None:
    """Return the ``exc_info`` for a log line: None for these errors, whose text says everything."""
    return None if isinstance(error, AioInformerError) else error


def shortened(value: Any, limit: int = 120) -> str:
    """Return a repr for messages, shortened. Never raises."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}…"
