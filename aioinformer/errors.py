"""Every error that aioinformer raises.

AioInformerError
├── ApiError                    the API server answered with a failure Status
│   └── RefusedError            the server refused a request about an object or a collection
│       ├── ForbiddenError      not permitted (403)
│       ├── ObjectNotFoundError no such object (404); also a NotFoundError
│       ├── ConflictError       the object has changed, or another manager owns the field (409)
│       ├── AlreadyExistsError  an object of this name exists (409)
│       ├── InvalidError        the object failed validation (422)
│       └── TooManyRequestsError    the server sheds load, or a budget forbids the eviction (429)
├── TransportError              no usable answer: refused, reset, cut, timed out
│   ├── IdleTimeoutError        an open connection was silent for too long
│   └── DamagedError            bytes were changed on their way
├── VeryShortWatchError         a watch ended at once, without an event
├── ConfigError                 kubeconfig, in-cluster files or arguments cannot work
│   ├── ClientClosedError       a request through a closed client
│   └── AmbiguousEditError      an edited list does not say which of its items was changed
├── SelectorError               a label selector cannot be parsed
├── DecodeError                 bytes or a value do not fit the object type
├── RejectedObjectError         one object was rejected; the others of the call were accepted
│   ├── KeyFuncError            the key function raised
│   ├── TransformError          the transformer raised
│   └── IndexFuncError          an index function raised (the object is stored, not in that index)
├── FIFOClosedError             pop from a queue that is closed and empty
├── QueueHeldError              a process function called its own queue
├── RequeueError                raised *by* a process function: put the item back
├── UnknownIndexError           no index of this name
├── IndexerConflictError        an index of this name exists
├── NotFoundError               no such object in a cache, or on the server
├── WorkQueueError              done() for an item that the work queue has not handed out
│   └── QueueShutDownError      get from a work queue that is shut down and empty
├── AlreadyOwnedError           an object exists that another owner controls, or that others made
├── ReconcileError              a reconciler failed
│   ├── TerminalError           raised *by* a reconciler: do not retry
│   │   ├── UndecodableError    the object to reconcile does not fit its type; also a DecodeError
│   │   └── OwnerError          an object cannot have this owner; also a ConfigError
│   ├── InvalidResultError      the reconciler did not return a Result
│   └── ReconcileTimeout        the reconciler took too long
├── Denied                      raised *by* a webhook: refuse the request
├── UntilError                  until() ended before its conditions were met
│   ├── WatchClosedError        the events ended
│   └── UntilTimeout            the timeout passed
├── LeadershipLostError         another instance may lead by now
├── SlowSubscriberError         a subscriber of a ChangeFeed is behind its history
├── CacheMutatedError           an object in the cache was changed in place
├── WrongEventLoopError         used from another event loop or thread, or without one
│   └── ForkedError             started before this process was forked
└── InformerError               lifecycle
    ├── AlreadyStartedError
    ├── StoppedError
    └── SyncTimeout             not synced after the timeout
        └── VersionTimeout      not at a version after the timeout
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._core.difference import difference
from ._core.texts import valid_text

__all__ = [
    "AioInformerError",
    "AlreadyExistsError",
    "AlreadyOwnedError",
    "AlreadyStartedError",
    "AmbiguousEditError",
    "ApiError",
    "CacheMutatedError",
    "ClientClosedError",
    "ConfigError",
    "ConflictError",
    "DamagedError",
    "DecodeError",
    "Denied",
    "FIFOClosedError",
    "ForbiddenError",
    "ForkedError",
    "IdleTimeoutError",
    "IndexFuncError",
    "IndexerConflictError",
    "InformerError",
    "InvalidError",
    "InvalidResultError",
    "KeyFuncError",
    "LeadershipLostError",
    "SlowSubscriberError",
    "NotFoundError",
    "ObjectNotFoundError",
    "OwnerError",
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
    "UndecodableError",
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
"""Seconds. The longest wait that a server can ask for; longer ones are cut to this."""

KNOWN_REASONS = frozenset({
    "AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError", "Invalid",
    "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge", "ServerTimeout",
    "ServiceUnavailable", "StorageReadError", "Timeout", "TooManyRequests", "Unauthorized",
    "UnsupportedMediaType",
})  # fmt: skip
"""Reasons that take precedence over the status code (apierrors ``knownReasons``)."""

LONGEST_TEXT = 2000
"""Characters of a server's message in ``str(error)``. ``error.message`` has all of it."""


class AioInformerError(Exception):
    """Base class of all errors of this package."""


class StatusCause(NamedTuple):
    """One of a Status' causes.

    Attributes:
        field: The field, such as ``"spec.containers[0].image"``; ``""`` for none.
        reason: For machines, such as ``"FieldValueRequired"``.
        message: For people.
    """

    field: str
    reason: str
    message: str


class ApiError(AioInformerError):
    """The API server answered with a failure Status (k8s.io/apimachinery, ``metav1.Status``).

    Args:
        status: The HTTP status code, or the Status' ``code``; 0 for an ERROR event without one.
        reason: The machine-readable reason, such as ``"Expired"`` or ``"Forbidden"``.
        message: The server's message, for people.
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
        """The request, such as ``"list pods in default"``. The caller of the API sets it."""

    def __str__(self) -> str:
        asked = f"{self.context}: " if self.context else ""
        said = f"{self.reason or 'Unknown'}: {self.message or 'no message'}"
        status = f"{self.status} " if self.status else ""
        return f"{asked}{status}{said if len(said) <= LONGEST_TEXT else said[:LONGEST_TEXT] + '…'}"

    @classmethod
    def from_status(cls, status: Any) -> ApiError:
        """Return the error of a Status dict, such as an ERROR event's object. Missing and mistyped parts are empty."""
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
        """The server's causes, one for each field."""
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
        """Whether the resourceVersion is ahead of the server (``IsTooLargeResourceVersion``; also before 1.18.5)."""
        if any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes):
            return True
        in_words = "Too large resource version"
        return self._has_reason("Timeout", 504) and (
            any(cause.message == in_words for cause in self.causes)
            or (in_words in self.message and bool(self.details))
        )

    @property
    def is_too_many_requests(self) -> bool:
        """Whether the server sheds load (429)."""
        return self.status == 429 or self.reason == "TooManyRequests"

    @property
    def is_missing_resource(self) -> bool:
        """Whether the resource is missing (a 404 that names no object), rather than one object."""
        return self.status == 404 and not self.details.get("name")

    @property
    def is_internal_error(self) -> bool:
        """Whether the server failed internally (``IsInternalError``)."""
        return self._has_reason("InternalError", 500)

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, at most LONGEST_RETRY_AFTER; None if the server names none."""
        seconds = self.details.get("retryAfterSeconds")
        if not isinstance(seconds, (int, float)) or not seconds > 0:
            return None
        return float(min(seconds, LONGEST_RETRY_AFTER))

    def _has_reason(self, reason: str, status: int) -> bool:
        """Whether the reason is this one, or is unknown and the status code is this one."""
        return self.reason == reason or (self.status == status and self.reason not in KNOWN_REASONS)


class RefusedError(ApiError):
    """The API server refused a Resource's request: any 4xx answer except 401.

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
    """The request is not permitted (403): no right, a quota, a namespace that is terminating."""


class ConflictError(RefusedError):
    """The object has changed since it was read, or another manager owns a field (409).

    Read the object again and decide again.
    """


class AlreadyExistsError(RefusedError):
    """An object of this name exists (409)."""


class InvalidError(RefusedError):
    """The object failed validation, or a ``test`` of a JSON patch failed (422)."""


class TooManyRequestsError(RefusedError):
    """The server sheds load, or a disruption budget forbids an eviction (429). Retry after ``retry_after``."""


class TransportError(AioInformerError):
    """No usable answer: the connection was refused, reset or cut, or the request timed out."""


class IdleTimeoutError(TransportError):
    """A connection stayed open and silent past its deadline, such as a half-open one."""


class DamagedError(TransportError):
    """TLS found that bytes were changed on their way."""


class VeryShortWatchError(AioInformerError):
    """A watch ended as soon as it was open, without an event or an error."""


class ConfigError(AioInformerError):
    """The configuration is invalid: a kubeconfig, context, in-cluster file or argument."""


class ClientClosedError(ConfigError):
    """The client was closed. Reflectors and others that use it do not retry: they end with this error."""


class AmbiguousEditError(ConfigError):
    """An edited list does not say which of its items was changed, and its class lacks some of their fields.

    Nothing was written: these fields would have been lost, or got by another item.

    Args:
        field: The list, such as ``"spec.rules"``.
        message: Why, and what to do.

    Attributes:
        request: The request that was not sent; ``""`` in a webhook.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message
        self.request = ""

    def __str__(self) -> str:
        return (
            f"{self.request}: {self.field}: {self.message}"
            if self.request
            else f"{self.field}: {self.message}"
        )


class SelectorError(AioInformerError):
    """A label selector cannot be parsed."""


class DecodeError(AioInformerError):
    """Bytes or a value do not fit the object type.

    Args:
        *args: The message.
        field: The field that does not fit, such as ``"spec.host"``; ``""`` if it is unknown.
        problem: What is wrong with it, such as ``"is required"``, without its value; ``""`` if it is unknown.
    """

    def __init__(self, *args: object, field: str = "", problem: str = "") -> None:
        super().__init__(*args)
        self.field = field
        self.problem = problem


class RejectedObjectError(AioInformerError):
    """One object was rejected. ``others`` has further rejections of the call; the remaining objects were accepted."""

    others: tuple[RejectedObjectError, ...] = ()

    def all(self) -> tuple[RejectedObjectError, ...]:
        """Return this rejection and the others of the same call."""
        return (self, *self.others)

    @staticmethod
    def raise_first(rejected: list[RejectedObjectError]) -> None:
        """Raise the first error, with the rest in ``others``, and empty the list. Does nothing for an empty list."""
        if not rejected:
            return
        first, *others = rejected
        first.others = tuple(others)
        # An error and a frame that refer to each other would keep the objects until garbage collection.
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
        return f"no key for {type(self.obj).__name__} {outline(self.obj)}: {self.cause}"


class TransformError(RejectedObjectError):
    """A transformer raised for an object, or returned no object, or one with another key."""

    def __init__(self, key: str, resource_version: str, cause: BaseException) -> None:
        super().__init__(key, resource_version, cause)
        self.key = key
        self.resource_version = resource_version
        self.cause = cause

    def __str__(self) -> str:
        return f"transforming {self.key} at {self.resource_version or 'no version'} failed: {self.cause!r}"


class IndexFuncError(RejectedObjectError):
    """An index function raised for an object. The object is stored, but not in that index."""

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

    A call in another task that the process function awaits, as with ``asyncio.gather``, deadlocks instead.
    """


class RequeueError(AioInformerError):
    """Raised by a process function: put the item back unless something newer is queued for its key.

    Args:
        cause: The error that ``pop`` raises after it has put the item back; None for none.
    """

    def __init__(self, cause: BaseException | None = None) -> None:
        super().__init__(cause)
        self.cause = cause


class UnknownIndexError(AioInformerError):
    """No index has this name."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(name, self.known)

    def __str__(self) -> str:
        return f"no index named {self.name!r}; there are: {', '.join(self.known) or 'none'}"


class IndexerConflictError(AioInformerError):
    """An index of this name exists."""


class NotFoundError(AioInformerError):
    """The object is not in the cache, or (ObjectNotFoundError) not on the server."""

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
    """``done()`` was called for an item that the work queue has not handed out."""


class QueueShutDownError(WorkQueueError):
    """The work queue is shut down and has handed out all its items."""


class AlreadyOwnedError(AioInformerError):
    """An object exists that another owner controls, or that others made (controllerutil ``AlreadyOwnedError``).

    Args:
        key: The object's key.
        kind: Its kind.
        controller: The owner that controls it; None if it has no controller.
        advice: What to do.
    """

    def __init__(self, key: str, kind: str, controller: Any, advice: str) -> None:
        super().__init__(key, kind, controller, advice)
        self.key = key
        self.kind = kind
        self.controller = controller
        self.advice = advice

    def __str__(self) -> str:
        owner = self.controller
        state = "exists without a controller"
        if owner is not None:
            state = f"is controlled by {owner.kind} {owner.name} (uid {owner.uid})"
        return f"{self.kind} {self.key} {state}; {self.advice}"


class ReconcileError(AioInformerError):
    """A reconciler failed."""


class TerminalError(ReconcileError):
    """Raised by a reconciler: do not retry before something changes (controller-runtime)."""


class UndecodableError(TerminalError, DecodeError):
    """The object to reconcile does not fit its type. It is reconciled again when it changes."""


class OwnerError(TerminalError, ConfigError):
    """An object cannot have this owner: it is in another namespace, or cluster-scoped and its owner is not."""


class InvalidResultError(ReconcileError):
    """A reconciler returned something other than a Result or None."""


class ReconcileTimeout(ReconcileError, TimeoutError):  # noqa: N818 - as SyncTimeout
    """A reconciler took longer than its timeout and was cancelled."""


class Denied(AioInformerError):  # noqa: N818 - it is an answer, not a failure
    """Raised by a webhook: refuse the request.

    Args:
        message: Why, for the user.
        field: The field that is wrong, such as ``"spec.host"``.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.message = valid_text(str(message))  # it goes into an answer
        self.field = valid_text(field)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), {"field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class UntilError(AioInformerError):
    """``until`` ended before its conditions were met.

    Args:
        message: The informer or watch, and the condition that was not met.
        event: The last event; None if there was none.
    """

    def __init__(self, message: str, event: Any = None) -> None:
        super().__init__(message, event)
        self.message = message
        self.event = event

    def __str__(self) -> str:
        return self.message


class WatchClosedError(UntilError):
    """The events ended before the conditions were met (client-go ``ErrWatchClosed``)."""


class UntilTimeout(UntilError, TimeoutError):  # noqa: N818 - as SyncTimeout
    """The timeout passed before the conditions were met."""


class SlowSubscriberError(AioInformerError):
    """A subscriber of a ChangeFeed with ``slow="close"`` is behind the changes that the feed still has.

    Args:
        feed: The feed's name.
        behind: How many changes the subscriber had not read.
        history: How many the feed keeps.
    """

    def __init__(self, feed: str, behind: int, history: int) -> None:
        super().__init__(feed, behind, history)
        self.feed = feed
        self.behind = behind
        self.history = history

    def __str__(self) -> str:
        return (
            f"{self.feed}: the subscriber is {self.behind} changes behind, and {self.history} are kept: subscribe "
            "again, read faster, or keep more with history="
        )


class LeadershipLostError(AioInformerError):
    """Leadership is lost: another instance may lead by now. The body of ``async with elector`` was cancelled.

    Args:
        lease: The Lease's key.
        identity: The identity that led.
        why: Why leadership is lost.
    """

    def __init__(self, lease: str, identity: str, why: str) -> None:
        super().__init__(lease, identity, why)
        self.lease = lease
        self.identity = identity
        self.why = why

    def __str__(self) -> str:
        return f"{self.identity} has no leadership by the lease {self.lease}: {self.why}"


class CacheMutatedError(AioInformerError):
    """An object in the cache was changed in place, which all its readers see."""

    def __init__(self, name: str, key: str, before: Any, after: Any) -> None:
        super().__init__(name, key, before, after)
        self.name = name
        self.key = key
        self.before = before
        self.after = after

    def __str__(self) -> str:
        path, was, now = difference(self.before, self.after) or ("", self.before, self.after)
        where = f" at {path}" if path else ""
        return f"{self.name}: cached object {self.key} was modified{where}: was {shorten(was)}, is {shorten(now)}"


class WrongEventLoopError(AioInformerError):
    """An object was used from another event loop or thread than its own, or where no event loop runs."""


class ForkedError(WrongEventLoopError):
    """An object was started before this process was forked: it runs in the parent process only."""


class InformerError(AioInformerError):
    """An informer was used in a state that does not allow it."""


class AlreadyStartedError(InformerError):
    """It was started twice, or a call that must come before the start came after it."""


class StoppedError(InformerError):
    """The informer has stopped. Informers cannot be restarted: make a new one."""


class SyncTimeout(InformerError, TimeoutError):  # noqa: N818 - the name of the public contract
    """A cache or a handler is not synced after the timeout. The message says what the informer is doing.

    Args:
        *args: The message.
        informer: The informer's name; None after a wait for several informers.
        handler: The handler's name; None after a wait for a cache alone.
        key: The key that the handler is processing, or that was waited for; None for none.
    """

    def __init__(
        self, *args: object, informer: str | None = None, handler: str | None = None, key: str | None = None
    ) -> None:
        super().__init__(*args)
        self.informer = informer
        self.handler = handler
        self.key = key


class VersionTimeout(SyncTimeout):
    """A cache has not reached a version after the timeout.

    Args:
        name: The informer's name.
        wanted: The version; ``""`` for the object's deletion.
        reached: The version that the cache has reached.
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
        hint = "While nothing changes, the server sends its current version only every minute or two"
        if self.wanted and not self.wanted.isdecimal():
            hint = (
                "That version is not a number, so the cache may be past it already: read the object from the server "
                "(Resource.get)"
            )
        return (
            f"{self.name}: not {what} after {self.timeout:g} s: reached {self.reached}; {self.state}. {hint}"
        )


def message_of(error: BaseException) -> str:
    """Return an error's message for logs, after the type's name unless it is an error of this package. Never raises.

    An exception group's has those of its first three errors. It is valid in JSON, whatever the error says.
    """
    name = type(error).__name__
    try:
        text = str(error)
        if not text:
            return valid_text(repr(error))
        if isinstance(error, BaseExceptionGroup):
            text += ": " + "; ".join(map(message_of, error.exceptions[:3]))
    except Exception:
        return name
    return valid_text(text if isinstance(error, AioInformerError) else f"{name}: {text}")


def traceback_of(error: BaseException) -> BaseException | None:
    """Return a log's ``exc_info``: the error, or None for an error of this package, whose message says enough."""
    return None if isinstance(error, AioInformerError) else error


def outline(obj: Any) -> str:
    """Return a repr of an object for messages, without its values, which may be secret. Never raises."""
    if obj is None or isinstance(obj, (str, int, float)):
        return shorten(obj)
    if isinstance(obj, dict):
        return shorten(dict.fromkeys(obj, ...)).replace("Ellipsis", "…")
    key, version = getattr(obj, "key", None), getattr(obj, "resource_version", None)
    shown = f" {key}{f' at {version}' if version else ''}" if isinstance(key, str) else ""
    return f"<{type(obj).__name__}{shown}>"


def shorten(value: Any, limit: int = 120) -> str:
    """Return a repr for messages, valid in JSON and shortened to ``limit`` characters. Never raises."""
    try:
        text = valid_text(repr(value))
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}…"
