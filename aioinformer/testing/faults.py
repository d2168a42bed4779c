"""Fault injection: failures between a client and the embedded API server, on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from aioinformer._core.callables import require_plain, require_sync_function
from aioinformer.testing.access.impersonation import RESOURCES as IMPERSONATED
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.errors import MatchingError, StatusError, UnknownNameError
from aioinformer.testing.http.listener import Listener
from aioinformer.testing.http.watches import OpenWatch
from aioinformer.testing.requests import VERBS, Request

_F = TypeVar("_F", bound="Fault")


@dataclass(slots=True, eq=False)
class Fault:
    """A fault that affects matching requests.

    Attributes:
        times: How many more requests it affects; None for all.
        hits: How many requests it has affected.
    """

    verb: str | None = None
    resource: str | None = None
    matching: Callable[[Request], bool] | None = None
    times: int | None = None
    hits: int = 0
    _rules: list[Any] = field(default_factory=list, repr=False)

    @property
    def is_active(self) -> bool:
        """Whether it affects further requests."""
        return self in self._rules

    def remove(self) -> None:
        """Remove the fault."""
        if self in self._rules:
            self._rules.remove(self)

    def meets(self, request: Request) -> bool:
        """Return whether the fault matches a request."""
        return (
            self.verb in (None, request.verb)
            and request.about(self.resource)
            and (self.matching is None or self.matching(request))
        )

    def use(self, request: Request) -> bool:
        """Return whether the fault affects a request; count it, and remove the fault after the last time."""
        if not self.meets(request):
            return False
        self.hits += 1
        if self.times is not None:
            self.times -= 1
            if self.times <= 0:
                self.remove()
        return True


@dataclass(slots=True, eq=False)
class Failure(Fault):
    """Answers requests with an error."""

    error: StatusError = field(default_factory=lambda: StatusError(500))
    in_stream: bool = False


@dataclass(slots=True, eq=False)
class Delay(Fault):
    """Delays answers."""

    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Freeze(Fault):
    """Keeps connections open but silent until it is removed."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    _held: dict[int, Request] = field(default_factory=dict, repr=False)

    def holds(self, request: Request) -> bool:
        """Return whether a request has to wait; count each request once."""
        if not self.meets(request):
            return False
        self._held[id(request)] = request
        self.hits = len(self._held)
        return True

    def remove(self) -> None:
        """Remove the fault and let the requests continue."""
        Fault.remove(self)
        self.over.set()


@dataclass(slots=True, eq=False)
class Truncation(Fault):
    """Resets the connection in the middle of a list's body."""

    fraction: float = 0.5


@dataclass(slots=True, eq=False)
class Lag(Fault):
    """Answers lists from a stale replica."""

    changes: int = 0


class Faults:
    """The faults of a server; `server.faults`.

    `verb`, `resource` and `matching` select the affected requests, which must match all of them. `verb` is `"list"`,
    `"watch"`, `"get"`, `"create"` and so on. `resource` is a plural name such as `"pods"` or `"deployments.apps"`.
    `matching` is a sync function of the `Request` that returns a bool. Faults for future requests return a `Fault`
    with the number of `hits` and a `remove()`.

    - An unknown verb or resource raises `UnknownNameError`; define a custom resource before its faults.
    - If `matching` raises, the fault does not affect the request, and the server's `stop` raises `MatchingError`.
    - In another event loop or thread than the server's, the methods raise `WrongEventLoopError`.

    Attributes:
        expired_as_status: Answer a watch from an expired version with HTTP status 410. By default the server opens
            the stream and sends 410 as an ERROR event, as the real server does.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        watches: Callable[[], Iterable[OpenWatch]],
        listener: Callable[[], Listener],
        accept: Callable[[], Awaitable[None]],
        require_owner: Callable[[], None],
    ) -> None:
        self.expired_as_status = False
        self._cluster = cluster
        self._watches = watches
        self._listener = listener
        self._accept = accept
        self._require_owner = require_owner
        self._failures: list[Failure] = []
        self._delays: list[Delay] = []
        self._freezes: list[Freeze] = []
        self._pauses: list[Freeze] = []
        self._truncations: list[Truncation] = []
        self._lags: list[Lag] = []
        self._lost_bookmarks: list[Fault] = []
        self._lost_closing_bookmarks: list[Fault] = []
        self._raised: Exception | None = None

    # Open watches

    def drop_watches(self, resource: str | None = None, *, mid_line: bool = False) -> int:
        """End the open watches.

        Args:
            resource: Only the watches of this resource.
            mid_line: Reset the connections in the middle of a line. Otherwise each stream sends its due lines and ends
                cleanly.

        Returns:
            The number of watches.
        """
        watches = self._open(resource)
        for watch in watches:
            if mid_line:
                watch.cut()
            else:
                watch.end()
        return len(watches)

    def watch_error(
        self,
        status: dict[str, Any] | None = None,
        resource: str | None = None,
        *,
        code: int = 410,
        reason: str | None = None,
        message: str | None = None,
        retry_after: int | None = None,
        end: bool = True,
    ) -> int:
        """Send an ERROR event into the open watches.

        Args:
            status: The event's `Status` object; by default it is built from the other arguments.
            resource: Only the watches of this resource.
            code: The status code; 410 has the reason Expired by default.
            reason: The reason; by default the code's usual one.
            message: The message.
            retry_after: `details.retryAfterSeconds`.
            end: End the streams afterwards, as the real server does.

        Returns:
            The number of watches.

        Raises:
            TypeError: The status is no object.
            MarshalError: A watch uses protobuf and the status has a value of the wrong type.
        """
        if status is None:
            status = _error(code, reason, message, retry_after).status
        elif not isinstance(status, dict):
            raise TypeError(
                f"status must be a Status object, not {status!r}: pass a code as watch_error(code=...)"
            )
        return self._send(lambda watch: watch.send_error(status), resource, end=end)

    def send_raw(self, data: bytes, resource: str | None = None, *, end: bool = False) -> int:
        """Send raw bytes into the open watches, such as a line of invalid JSON.

        Returns:
            The number of watches.
        """
        return self._send(lambda watch: watch.send(data), resource, end=end)

    # Future requests

    def fail(
        self,
        status: int = 500,
        *,
        times: int | None = 1,
        retry_after: int | None = None,
        reason: str | None = None,
        message: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        matching: Callable[[Request], bool] | None = None,
        in_stream: bool = False,
    ) -> Fault:
        """Answer requests with an error.

        Args:
            status: The HTTP status code, 400 or above.
            times: How many requests; None for all until the fault is removed.
            retry_after: Seconds for the Retry-After header and `details.retryAfterSeconds`.
            reason: The status's reason; by default the code's usual one.
            message: The status's message.
            verb: Only requests of this verb.
            resource: Only requests for this resource.
            matching: Only requests for which this returns True; `lambda request: request.is_continue` matches the
                further pages of lists.
            in_stream: For watches: open the stream with status 200 and send the error as its first event.

        Raises:
            ValueError: The status is below 400.
        """
        if status < 400:
            raise ValueError(f"fail() needs an error status of 400 or above, not {status}")
        error = _error(status, reason, message, retry_after)
        failure = Failure(verb, resource, matching, times, error=error, in_stream=in_stream)
        return self.add(failure, self._failures)

    def delay(
        self,
        seconds: float,
        *,
        times: int | None = None,
        verb: str | None = None,
        resource: str | None = None,
        matching: Callable[[Request], bool] | None = None,
    ) -> Fault:
        """Delay the answers to requests."""
        return self.add(Delay(verb, resource, matching, times, seconds=seconds), self._delays)

    def freeze(
        self,
        *,
        verb: str | None = None,
        resource: str | None = None,
        matching: Callable[[Request], bool] | None = None,
    ) -> Fault:
        """Keep connections open but silent: open watches get no more bytes, new requests no answer.

        This lasts until `thaw` or the fault's `remove`. Then everything continues where it stopped, as after a network
        pause.
        """
        return self.add(Freeze(verb, resource, matching), self._freezes)

    def half_open(self, resource: str | None = None) -> Fault:
        """Freeze the open watches alone, as a network does that lost the connection: new requests are answered.

        Args:
            resource: Only the watches of this resource.
        """
        held = {id(watch.request): watch.request for watch in self._open(resource)}
        return self.freeze(verb="watch", matching=lambda request: id(request) in held)

    def thaw(self) -> None:
        """End every freeze."""
        self._require_owner()
        for freeze in list(self._freezes):
            freeze.remove()

    def truncate(
        self,
        *,
        times: int | None = 1,
        fraction: float = 0.5,
        resource: str | None = None,
        matching: Callable[[Request], bool] | None = None,
    ) -> Fault:
        """Reset the connection after a fraction of a list's objects, as if the server died in the middle of a page."""
        return self.add(Truncation("list", resource, matching, times, fraction=fraction), self._truncations)

    def lag(self, changes: int, *, times: int | None = 1, resource: str | None = None) -> Fault:
        """Answer lists from a replica that lags by this many changes.

        This does not affect lists of the most recent state and further pages, which do not use a replica's cache. A
        list at a version that the replica has not reached fails with "Too large resource version".
        """
        return self.add(Lag("list", resource, _from_cache, times, changes=changes), self._lags)

    def lose_bookmarks(self, resource: str | None = None, *, times: int | None = None) -> Fault:
        """Send no bookmarks, except the closing bookmark of a WatchList."""
        return self.add(Fault("watch", resource, None, times), self._lost_bookmarks)

    def lose_closing_bookmark(self, times: int | None = 1, resource: str | None = None) -> Fault:
        """Omit the bookmark that ends the initial events of a WatchList."""
        return self.add(Fault("watch", resource, None, times), self._lost_closing_bookmarks)

    # The server as a whole

    def expire_history(self, *, step: bool = True) -> int:
        """Expire every resourceVersion and continue token issued so far.

        Open watches continue; a new watch from an older version gets 410.

        Args:
            step: Advance the server's version by one, so that up-to-date clients have to relist, too.

        Returns:
            The oldest version from which a watch can start.
        """
        self._require_owner()
        return self._cluster.storage.expire_history(step)

    def cut_connections(self) -> int:
        """Reset every connection immediately.

        Returns:
            The number of connections.
        """
        self._require_owner()
        return self._listener().cut()

    def refuse(self, *, cut: bool = False) -> None:
        """Refuse new connections; the port stays reserved.

        Args:
            cut: Also reset the open connections, as when a server dies.
        """
        self._require_owner()
        self._listener().refuse()
        if cut:
            self.cut_connections()

    async def accept(self) -> None:
        """Accept connections again."""
        self._require_owner()
        await self._accept()

    def clear(self) -> None:
        """Remove every fault for future requests and every freeze."""
        self.thaw()
        for rules in (
            self._failures,
            self._delays,
            self._truncations,
            self._lags,
            self._lost_bookmarks,
            self._lost_closing_bookmarks,
        ):
            rules.clear()

    # Used by the server

    def pause(self) -> None:
        """Freeze everything, as the server's `pause` does."""
        if not self._pauses:
            self.add(Freeze(), self._pauses)

    def resume(self) -> None:
        """End the pause; `thaw` and `clear` do not end it."""
        self._require_owner()
        for pause in list(self._pauses):
            pause.remove()

    def failure_for(self, request: Request) -> Failure | None:
        """Return the failure for a request, or None."""
        return next((failure for failure in list(self._failures) if failure.use(request)), None)

    def truncation_for(self, request: Request) -> Truncation | None:
        """Return the truncation for a request, or None."""
        return next((truncation for truncation in list(self._truncations) if truncation.use(request)), None)

    def replica_version(self, request: Request, current: int, oldest: int) -> int:
        """Return the version of the replica that answers a list, at least the oldest version of its cache."""
        behind = max((lag.changes for lag in list(self._lags) if lag.use(request)), default=0)
        return max(current - behind, min(oldest, current))

    def delay_for(self, request: Request) -> float:
        """Return the delay of a request in seconds."""
        return sum(delay.seconds for delay in list(self._delays) if delay.use(request))

    def thaw_event(self, request: Request) -> asyncio.Event | None:
        """Return the event that ends the freeze of a request, or None if it is not frozen."""
        freezes = (*self._pauses, *self._freezes)
        return next((freeze.over for freeze in freezes if freeze.holds(request)), None)

    def keep_bookmark(self, request: Request, closing: bool) -> bool:
        """Return whether to send a bookmark."""
        rules = self._lost_closing_bookmarks if closing else self._lost_bookmarks
        return not any(rule.use(request) for rule in list(rules))

    def check(self, verb: str | None, resource: str | None) -> None:
        """Check the names of a fault: with a misspelt name it would never match and the test would pass wrongly.

        Raises:
            UnknownNameError: There is no such verb or resource.
            WrongEventLoopError: The server runs in another event loop.
        """
        self._require_owner()
        if verb is not None and verb not in VERBS:
            raise UnknownNameError("verb", verb, VERBS)
        known = self._cluster.registry.names() | (IMPERSONATED if verb in (None, "impersonate") else set())
        if resource is not None and resource not in known:
            raise UnknownNameError("resource", resource, known)

    def add(self, fault: _F, rules: list[_F]) -> _F:
        """Activate a fault.

        Raises:
            UnknownNameError: There is no such verb or resource.
            ConfigError: `matching` is async.
        """
        self.check(fault.verb, fault.resource)
        if (matching := fault.matching) is not None:
            require_plain("matching", matching)
            fault.matching = lambda request: self._matches(matching, request)
        fault._rules = rules
        rules.append(fault)
        return fault

    def raise_first(self) -> None:
        """Raise the first error of a `matching` function since the last call.

        Raises:
            MatchingError: A `matching` function raised; the test has a bug.
        """
        raised, self._raised = self._raised, None
        if raised is not None:
            raise MatchingError(raised, (known.name for known in fields(Request))) from raised

    def _matches(self, matching: Callable[[Request], bool], request: Request) -> bool:
        try:
            return require_sync_function("matching", matching(request))
        except Exception as error:
            self._raised = self._raised or error
            return False

    def _open(self, resource: str | None) -> list[OpenWatch]:
        self.check(None, resource)
        return [watch for watch in self._watches() if watch.request.about(resource)]

    def _send(self, send: Callable[[OpenWatch], None], resource: str | None, *, end: bool) -> int:
        watches = self._open(resource)
        for watch in watches:
            send(watch)
            if end:
                watch.end()
        return len(watches)


def _from_cache(request: Request) -> bool:
    """Return whether the real server answers a list from its watch cache."""
    version = request.query.get("resourceVersion", "")
    exact = request.query.get("resourceVersionMatch") == "Exact" or (
        request.query.get("limit") and version != "0"
    )
    return bool(version) and not exact and not request.is_continue


def _error(code: int, reason: str | None, message: str | None, retry_after: int | None) -> StatusError:
    details = None if retry_after is None else {"retryAfterSeconds": retry_after}
    return StatusError(code, reason, message, details=details)
