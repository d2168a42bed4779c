"""Every error that aioinformer raises.

AioInformerError
├── ApiError                    the API server answered with a failure Status
│   └── RefusedError            it refused what was asked of an object, or a collection
│       ├── ForbiddenError      who asks may not (403)
│       ├── ObjectNotFoundError there is no such object (404); a NotFoundError too
│       ├── ConflictError       it was changed meanwhile, or belongs to another field manager (409)
│       ├── AlreadyExistsError  there is one of this name (409)
│       ├── InvalidError        fields that it cannot have (422)
│       └── TooManyRequestsError    not now (429); an eviction that a budget forbids
├── TransportError              no usable answer: refused, reset, cut, timed out
│   ├── IdleTimeoutError        a connection that stayed open and silent for too long
│   └── DamagedError            what arrived is not what was sent
├── VeryShortWatchError         a watch that was over as soon as it was open, without an event
├── ConfigError                 kubeconfig, in-cluster files or arguments that cannot work
│   └── ClientClosedError       a request through a client that was closed
├── SelectorError               a label selector that cannot be parsed
├── DecodeError                 bytes or a value that cannot become the asked-for object
├── RejectedObjectError         one object that could not be taken; the others were
│   ├── KeyFuncError            its key function raised
│   ├── TransformError          its transformer raised
│   └── IndexFuncError          an index function raised (the object is stored, not in that index)
├── FIFOClosedError             pop on a queue that is closed and empty
├── QueueHeldError              adding to a queue from inside its own process function
├── RequeueError                raised *by* a process function: put the item back
├── UnknownIndexError           reading an index that was never added
├── IndexerConflictError        adding an index whose name is taken
├── NotFoundError               there is no such object: in a cache, or on the server
├── WorkQueueError              done() for what a work queue has not handed out
│   └── QueueShutDownError      get on a work queue that is shut down and empty
├── ReconcileError              a reconciler has failed
│   ├── TerminalError           raised *by* a reconciler: trying again would not help
│   ├── InvalidResultError      it returned what is no Result
│   └── ReconcileTimeout        it took longer than it may
├── UntilError                  what until() waited for has not come
│   ├── WatchClosedError        the events ended before
│   └── UntilTimeout            not in the given time
├── LeadershipLostError         another one may lead by now
├── CacheMutatedError           somebody changed an object of the cache in place
├── WrongEventLoopError         used from another event loop or thread than the one that it runs in
└── InformerError               lifecycle
    ├── AlreadyStartedError
    ├── StoppedError
    └── SyncTimeout             still not synced after the given time
        └── VersionTimeout      still not at a version after the given time
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
"""Seconds: a server that asks for more is asked again after this."""

KNOWN_REASONS = frozenset({
    "AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError", "Invalid",
    "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge", "ServerTimeout",
    "ServiceUnavailable", "StorageReadError", "Timeout", "TooManyRequests", "Unauthorized",
    "UnsupportedMediaType",
})  # fmt: skip
"""The reasons that say more than the status code does (apierrors ``knownReasons``)."""

LONGEST_TEXT = 2000
"""Characters of a server's message that are repeated to people; ``message`` has all of it."""


class AioInformerError(Exception):
    """Root of every error raised here."""


class StatusCause(NamedTuple):
    """One of the reasons that a Status gives.

    Attributes:
        field: Which field it is about, such as ``"spec.containers[0].image"``; ``""`` for none.
        reason: For machines, such as ``"FieldValueRequired"``.
        message: For people.
    """

    field: str
    reason: str
    message: str


class ApiError(AioInformerError):
    """The API server answered with a failure Status (k8s.io/apimachinery, ``metav1.Status``).

    Args:
        status: The HTTP status code, which is also the Status' ``code``; 0 of an ERROR event that says none.
        reason: The machine-readable reason, such as ``"Expired"`` or ``"Forbidden"``.
        message: What the server says to people.
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
        """What was asked for, set by who asked: ``"list pods in default"``."""

    def __str__(self) -> str:
        asked = f"{self.context}: " if self.context else ""
        said = f"{self.reason or 'Unknown'}: {self.message or 'no message'}"
        status = f"{self.status} " if self.status else ""
        return f"{asked}{status}{said if len(said) <= LONGEST_TEXT else said[:LONGEST_TEXT] + '…'}"

    @classmethod
    def from_status(cls, status: Any) -> ApiError:
        """The error that a Status stands for, a dict such as an ERROR event's object; parts that are missing or
        mistyped are left empty."""
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
        """The reasons that the server gives, one for each field."""
        given = self.details.get("causes")
        return tuple(
            StatusCause(*(str(cause.get(name) or "") for name in ("field", "reason", "message")))
            for cause in (given if isinstance(given, list) else ())
            if isinstance(cause, Mapping)
        )

    @property
    def is_expired(self) -> bool:
        """The resourceVersion or continue token is too old (410; apierrors ``IsResourceExpired``, ``IsGone``)."""
        return self.reason == "Expired" or self._says("Gone", 410)

    @property
    def is_too_large_resource_version(self) -> bool:
        """The resourceVersion is ahead of the server (``IsTooLargeResourceVersion``, and its form before 1.18.5)."""
        if any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes):
            return True
        in_words = "Too large resource version"
        return self._says("Timeout", 504) and (
            any(cause.message == in_words for cause in self.causes)
            or (in_words in self.message and bool(self.details))
        )

    @property
    def is_too_many_requests(self) -> bool:
        """The server sheds load (429)."""
        return self.status == 429 or self.reason == "TooManyRequests"

    @property
    def is_missing_resource(self) -> bool:
        """There is no such resource (404 that names no object), rather than no such object of it."""
        return self.status == 404 and not self.details.get("name")

    @property
    def is_internal_error(self) -> bool:
        """The server failed inside (``IsInternalError``)."""
        return self._says("InternalError", 500)

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks to wait before the next try, at most LONGEST_RETRY_AFTER; or None."""
        seconds = self.details.get("retryAfterSeconds")
        if not isinstance(seconds, (int, float)) or not seconds > 0:
            return None
        return float(min(seconds, LONGEST_RETRY_AFTER))

    def _says(self, reason: str, status: int) -> bool:
        """Whether this is the reason, or the status code of one that names none of Kubernetes' reasons."""
        return self.reason == reason or (self.status == status and self.reason not in KNOWN_REASONS)


class RefusedError(ApiError):
    """The API server refused what a Resource asked for: any answer of 4xx but 401.

    Attributes:
        key: The object's key; ``""`` of a list.
        resource: The name of its collection, such as ``"deployments.apps"``; of a list with namespace and selectors.
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
    """Who asks may not, or nobody may now (403): no right, a quota, a namespace that is going."""


class ConflictError(RefusedError):
    """The object is no longer what was written or deleted, or a field belongs to another manager (409).

    Read it again, and decide again.
    """


class AlreadyExistsError(RefusedError):
    """There is an object of this name (409)."""


class InvalidError(RefusedError):
    """The object would have fields that it cannot have (422); or a ``test`` of a JSON patch failed."""


class TooManyRequestsError(RefusedError):
    """Not now (429), but perhaps after ``retry_after``; or an eviction that a disruption budget forbids."""


class TransportError(AioInformerError):
    """No usable answer came: the connection was refused, reset, cut in the middle, or timed out."""


class IdleTimeoutError(TransportError):
    """A connection stayed open and silent past its deadline (half-open connections end here)."""


class DamagedError(TransportError):
    """What arrived on a connection is not what was sent: TLS has found bytes that were changed on their way."""


class VeryShortWatchError(AioInformerError):
    """A watch was over as soon as it was open, without an event or an error."""


class ConfigError(AioInformerError):
    """The configuration cannot work: a kubeconfig, context, in-cluster file or argument."""


class ClientClosedError(ConfigError):
    """The client was closed. It is not tried again: what asks through it ends with this error."""


class SelectorError(AioInformerError):
    """A label selector cannot be parsed."""


class DecodeError(AioInformerError):
    """Bytes or a value could not be turned into the object type that was asked for."""


class RejectedObjectError(AioInformerError):
    """One object could not be taken. The others of the same call were; ``others`` are further rejections."""

    others: tuple[RejectedObjectError, ...] = ()

    def all(self) -> tuple[RejectedObjectError, ...]:
        """This rejection and the others of the same call."""
        return (self, *self.others)

    @staticmethod
    def raise_first(rejected: list[RejectedObjectError]) -> None:
        """Raise the first error with the rest in ``others``, and empty the list; an empty one raises nothing."""
        if not rejected:
            return
        first, *others = rejected
        first.others = tuple(others)
        # Frames that hold the error that holds them would keep a whole list until garbage is collected.
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
    """A transformer raised for an object, or returned what is none, or has another key."""

    def __init__(self, key: str, resource_version: str, cause: BaseException) -> None:
        super().__init__(key, resource_version, cause)
        self.key = key
        self.resource_version = resource_version
        self.cause = cause

    def __str__(self) -> str:
        return f"transforming {self.key} at {self.resource_version or 'no version'} failed: {self.cause!r}"


class IndexFuncError(RejectedObjectError):
    """An index function raised for an object. The object is stored; that index does not list it."""

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
    """A process function called back into its own queue, which is held until the function returns. By way of a task
    that it awaits, as ``asyncio.gather`` makes, this is not raised: it waits for ever."""


class RequeueError(AioInformerError):
    """Raised by a process function: put the item back unless something newer is queued for its key.

    Args:
        cause: Raised on by ``pop`` once the item is back; None if the pop is to count as a success.
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
    """An index of this name exists already."""


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
    """Something was said to be done that the work queue has not handed out."""


class QueueShutDownError(WorkQueueError):
    """The work queue is shut down, and all that was in it has been handed out."""


class ReconcileError(AioInformerError):
    """A reconciler has failed."""


class TerminalError(ReconcileError):
    """Raised by a reconciler: trying again would not help, before something has changed (controller-runtime)."""


class InvalidResultError(ReconcileError):
    """A reconciler returned what is no Result."""


class ReconcileTimeout(ReconcileError, TimeoutError):  # noqa: N818 - as SyncTimeout
    """A reconciler took longer than it may, and was cancelled."""


class UntilError(AioInformerError):
    """What ``until`` waited for has not come.

    Args:
        message: On whom it waited, and for what.
        event: The last event; None if there was none.
    """

    def __init__(self, message: str, event: Any = None) -> None:
        super().__init__(message, event)
        self.message = message
        self.event = event

    def __str__(self) -> str:
        return self.message


class WatchClosedError(UntilError):
    """The events ended before (client-go ``ErrWatchClosed``)."""


class UntilTimeout(UntilError, TimeoutError):  # noqa: N818 - as SyncTimeout
    """It has not come in the given time."""


class LeadershipLostError(AioInformerError):
    """Another one may lead by now, so that what was done under a leadership was cancelled.

    Args:
        lease: The Lease's key.
        identity: Who led.
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
    """An object of the cache was changed in place, which every other reader of it sees."""

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
    """Something was used from another event loop, or thread, than the one that it runs in."""


class InformerError(AioInformerError):
    """An informer was used in a state that does not allow it."""


class AlreadyStartedError(InformerError):
    """What must be set up before the start came after it, or it was started twice."""


class StoppedError(InformerError):
    """The informer has stopped; informers do not start again."""


class SyncTimeout(InformerError, TimeoutError):  # noqa: N818 - the name of the public contract
    """The cache, or a handler, is still not synced. The message says who and what it is waiting for.

    Args:
        *args: The message.
        informer: Its name, or its registration's; None where several were waited for.
        handler: The handler's; None where only the cache was waited for.
        key: What the handler is at, or was waited for; None where there is nothing.
    """

    def __init__(
        self, *args: object, informer: str | None = None, handler: str | None = None, key: str | None = None
    ) -> None:
        super().__init__(*args)
        self.informer = informer
        self.handler = handler
        self.key = key


class VersionTimeout(SyncTimeout):
    """The cache has still not reached a version.

    Args:
        name: The informer's.
        wanted: The version; ``""`` for the object's deletion.
        reached: The version that was read so far.
        key: The object that was waited for; None for the collection as a whole.
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
    """What an error says, for logs, and of which type it is unless it is one of these; never an error of its own."""
    name = type(error).__name__
    try:
        text = str(error)
        if not text:
            return repr(error)
    except Exception:
        return name
    return text if isinstance(error, AioInformerError) else f"{name}: {text}"


def traceback_of(error: BaseException) -> BaseException | None:
    """The ``exc_info`` of a log: the error, or None for one of these, which ``said`` tells all of."""
    return None if isinstance(error, AioInformerError) else error


def shortened(value: Any, limit: int = 120) -> str:
    """A repr for messages: not too long, and never an error of its own."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}…"
