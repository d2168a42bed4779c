"""Trouble on command: what can go wrong between a client and an API server, when a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from aioinformer.handlers import require_at_once, require_plain
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.errors import MatchingError, StatusError, UnknownNameError
from aioinformer.testing.listener import Listener
from aioinformer.testing.requests import VERBS, Request
from aioinformer.testing.watches import OpenWatch

_F = TypeVar("_F", bound="Fault")


@dataclass(slots=True, eq=False)
class Fault:
    """A fault that waits for requests to meet it.

    Attributes:
        times: How many more requests it meets; None for all.
        hits: How many it has met.
    """

    verb: str | None = None
    resource: str | None = None
    matching: Callable[[Request], bool] | None = None
    times: int | None = None
    hits: int = 0
    _rules: list[Any] = field(default_factory=list, repr=False)

    def remove(self) -> None:
        """End it."""
        if self in self._rules:
            self._rules.remove(self)

    def meets(self, request: Request) -> bool:
        """Whether it is about a request."""
        return (
            self.verb in (None, request.verb)
            and request.about(self.resource)
            and (self.matching is None or self.matching(request))
        )

    def use(self, request: Request) -> bool:
        """Meet a request, if it is about it; counts, and ends after the last time."""
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
    """Answers with a status instead of doing what is asked."""

    error: StatusError = field(default_factory=lambda: StatusError(500))
    in_stream: bool = False


@dataclass(slots=True, eq=False)
class Delay(Fault):
    """Makes requests wait."""

    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Freeze(Fault):
    """Keeps connections open and silent until it is removed."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    _held: dict[int, Request] = field(default_factory=dict, repr=False)

    def holds(self, request: Request) -> bool:
        """Whether a request has to wait; counts each once, however often it is asked for."""
        if not self.meets(request):
            return False
        self._held[id(request)] = request
        self.hits = len(self._held)
        return True

    def remove(self) -> None:
        """Let everything go on."""
        Fault.remove(self)
        self.over.set()


@dataclass(slots=True, eq=False)
class Truncation(Fault):
    """Cuts the connection in the middle of a list's body."""

    fraction: float = 0.5


@dataclass(slots=True, eq=False)
class Lag(Fault):
    """Lets a replica answer that has not seen the latest changes."""

    changes: int = 0


class Faults:
    """The faults of a server; `server.faults`.

    Whatever takes `verb`, `resource` and `matching` is about the requests that meet all of them:
    `verb` is `"list"`, `"watch"`, `"get"`, `"create"` and so on, `resource` a plural name as `"pods"` or
    `"deployments.apps"`, `matching` any plain function of the `Request`. What waits for requests returns a `Fault`,
    with the number of `hits` and a `remove()`. A verb or resource that the server does not have raises
    `UnknownNameError`; define a custom resource before its faults. Where `matching` raises, the fault is not met, and
    the server's `stop` raises `MatchingError`. In another event loop or thread than the server's they raise
    `WrongEventLoopError`.

    Attributes:
        expired_as_status: Answer a watch from an expired version with HTTP status 410. The real server
            opens the stream and sends 410 as an ERROR event, which is the default here too.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        watches: Callable[[], Iterable[OpenWatch]],
        listener: Callable[[], Listener],
        accept: Callable[[], Awaitable[None]],
        require_home: Callable[[], None],
    ) -> None:
        self.expired_as_status = False
        self._cluster = cluster
        self._watches = watches
        self._listener = listener
        self._accept = accept
        self._require_home = require_home
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
            resource: Only those of this resource.
            mid_line: Cut the connections in the middle of a line. Otherwise each stream gets the lines that
                are due and ends cleanly.

        Returns:
            How many there were.
        """
        found = self._open(resource)
        for watch in found:
            if mid_line:
                watch.cut()
            else:
                watch.end()
        return len(found)

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
            status: The event's `Status` object; without one it is made of the other arguments.
            resource: Only into the watches of this resource.
            code: The status code; 410 has the reason Expired by default.
            reason: The reason, if not the code's usual one.
            message: The message.
            retry_after: `details.retryAfterSeconds`.
            end: End the streams after it, as the real server does.

        Returns:
            How many watches got it.

        Raises:
            TypeError: The status is no object.
            MarshalError: A watch is in protobuf, and the status has a value of the wrong type.
        """
        if status is None:
            status = _error(code, reason, message, retry_after).status
        elif not isinstance(status, dict):
            raise TypeError(
                f"a status is a Status object, not {status!r}: a code alone is watch_error(code=...)"
            )
        return self._send(lambda watch: watch.send_error(status), resource, end=end)

    def send_raw(self, data: bytes, resource: str | None = None, *, end: bool = False) -> int:
        """Send bytes of any kind into the open watches, such as a line that is no JSON.

        Returns:
            How many watches got them.
        """
        return self._send(lambda watch: watch.send(data), resource, end=end)

    # Requests to come

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
            status: The HTTP status code, of 400 and above.
            times: How many requests; None for all until the fault is removed.
            retry_after: Seconds for the Retry-After header and `details.retryAfterSeconds`.
            reason: The status's reason, if not the code's usual one.
            message: The status's message.
            verb: Only requests of this verb.
            resource: Only requests about this resource.
            matching: Only requests for which this is true; `lambda request: request.is_continue` is for the
                further pages of lists.
            in_stream: For watches: open the stream with status 200 and send the error as its first event.

        Raises:
            ValueError: The status is that of no error.
        """
        if status < 400:
            raise ValueError(f"{status} is the status of no error: fail takes 400 and above")
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
        """Let requests wait before they are answered."""
        return self.add(Delay(verb, resource, matching, times, seconds=seconds), self._delays)

    def freeze(
        self,
        *,
        verb: str | None = None,
        resource: str | None = None,
        matching: Callable[[Request], bool] | None = None,
    ) -> Fault:
        """Keep connections open and silent: open watches get no byte more, new requests no answer.

        It lasts until `thaw` or the fault's `remove`. Then everything goes on where it stood, as after a pause of
        the network.
        """
        return self.add(Freeze(verb, resource, matching), self._freezes)

    def thaw(self) -> None:
        """End every freeze."""
        self._require_home()
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
        """Cut the connection after a fraction of a list's objects: the server goes away in the middle of a page."""
        return self.add(Truncation("list", resource, matching, times, fraction=fraction), self._truncations)

    def lag(self, changes: int, *, times: int | None = 1, resource: str | None = None) -> Fault:
        """Answer lists from a replica that lies so many of the server's changes behind.

        Lists of the most recent state, and further pages, do not come from a replica's cache. One at a version that
        the replica has not reached is refused: "Too large resource version".
        """
        return self.add(Lag("list", resource, _from_cache, times, changes=changes), self._lags)

    def lose_bookmarks(self, resource: str | None = None, *, times: int | None = None) -> Fault:
        """Send no bookmarks; the closing one of a WatchList is not meant."""
        return self.add(Fault("watch", resource, None, times), self._lost_bookmarks)

    def lose_closing_bookmark(self, times: int | None = 1, resource: str | None = None) -> Fault:
        """Do not send the bookmark that ends the initial events of a WatchList."""
        return self.add(Fault("watch", resource, None, times), self._lost_closing_bookmarks)

    # The server as a whole

    def expire_history(self, *, step: bool = True) -> int:
        """Empty the history: every resourceVersion and continue token handed out so far is expired.

        Watches that are open go on; who comes with an older version gets 410.

        Args:
            step: Let the server's version take one step, so that this includes whoever has seen everything.

        Returns:
            The version from which watches can begin again.
        """
        self._require_home()
        return self._cluster.storage.expire_history(step)

    def cut_connections(self) -> int:
        """Cut every connection at once, whatever goes on in it.

        Returns:
            How many there were.
        """
        self._require_home()
        return self._listener().cut()

    def refuse(self, *, cut: bool = False) -> None:
        """Refuse new connections; the port stays reserved.

        Args:
            cut: Cut the connections that are there too, as when a server dies.
        """
        self._require_home()
        self._listener().refuse()
        if cut:
            self.cut_connections()

    async def accept(self) -> None:
        """Take connections again."""
        self._require_home()
        await self._accept()

    def clear(self) -> None:
        """Remove every fault that waits for requests, and thaw."""
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

    # For the server

    def pause(self) -> None:
        """Freeze everything, as the server's `pause` does."""
        if not self._pauses:
            self.add(Freeze(), self._pauses)

    def resume(self) -> None:
        """End that, which neither `thaw` nor `clear` does."""
        self._require_home()
        for pause in list(self._pauses):
            pause.remove()

    def failure_for(self, request: Request) -> Failure | None:
        """The failure that a request meets, if any."""
        return next((failure for failure in list(self._failures) if failure.use(request)), None)

    def truncation_for(self, request: Request) -> Truncation | None:
        """The truncation that a request meets, if any."""
        return next((found for found in list(self._truncations) if found.use(request)), None)

    def replica_version(self, request: Request, current: int, oldest: int) -> int:
        """The version of the replica that answers a list; not older than its cache can show."""
        behind = max((lag.changes for lag in list(self._lags) if lag.use(request)), default=0)
        return max(current - behind, min(oldest, current))

    def delay_for(self, request: Request) -> float:
        """How long a request has to wait."""
        return sum(delay.seconds for delay in list(self._delays) if delay.use(request))

    def thawed(self, request: Request) -> asyncio.Event | None:
        """What a frozen request has to wait for; None if it is not frozen."""
        freezes = (*self._pauses, *self._freezes)
        return next((freeze.over for freeze in freezes if freeze.holds(request)), None)

    def keep_bookmark(self, request: Request, closing: bool) -> bool:
        """Whether a bookmark is to be sent."""
        rules = self._lost_closing_bookmarks if closing else self._lost_bookmarks
        return not any(rule.use(request) for rule in list(rules))

    def check(self, verb: str | None, resource: str | None) -> None:
        """Find a misspelt name out: a fault about it would never be met, and the test pass for nothing.

        Raises:
            UnknownNameError: There is no such verb or resource.
            WrongEventLoopError: The server runs in another event loop.
        """
        self._require_home()
        if verb is not None and verb not in VERBS:
            raise UnknownNameError("verb", verb, VERBS)
        if resource is not None and resource not in (known := self._cluster.registry.names()):
            raise UnknownNameError("resource", resource, known)

    def add(self, fault: _F, rules: list[_F]) -> _F:
        """Let a fault wait for requests among others of its kind.

        Raises:
            UnknownNameError: There is no such verb or resource.
            ConfigError: `matching` is no plain function.
        """
        self.check(fault.verb, fault.resource)
        if (matching := fault.matching) is not None:
            require_plain("matching", matching)
            fault.matching = lambda request: self._matches(matching, request)
        fault._rules = rules
        rules.append(fault)
        return fault

    def raise_first(self) -> None:
        """Raise what `matching` raised first, if any did since this was asked last: the test is at fault.

        Raises:
            MatchingError: One did.
        """
        raised, self._raised = self._raised, None
        if raised is not None:
            raise MatchingError(raised, (known.name for known in fields(Request))) from raised

    def _matches(self, matching: Callable[[Request], bool], request: Request) -> bool:
        try:
            return require_at_once("matching", matching(request))
        except Exception as error:
            self._raised = self._raised or error
            return False

    def _open(self, resource: str | None) -> list[OpenWatch]:
        self.check(None, resource)
        return [watch for watch in self._watches() if watch.request.about(resource)]

    def _send(self, send: Callable[[OpenWatch], None], resource: str | None, *, end: bool) -> int:
        found = self._open(resource)
        for watch in found:
            send(watch)
            if end:
                watch.end()
        return len(found)


def _from_cache(request: Request) -> bool:
    """Whether the real server answers a list out of its cache."""
    version = request.query.get("resourceVersion", "")
    exact = request.query.get("resourceVersionMatch") == "Exact" or (
        request.query.get("limit") and version != "0"
    )
    return bool(version) and not exact and not request.is_continue


def _error(code: int, reason: str | None, message: str | None, retry_after: int | None) -> StatusError:
    details = None if retry_after is None else {"retryAfterSeconds": retry_after}
    return StatusError(code, reason, message, details=details)
