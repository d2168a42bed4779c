"""The reflector's coroutines (client-go ``tools/cache/reflector.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Generic, TypeVar, Unpack

from .._core.checks import require_callable, require_methods, require_seconds
from .._core.coop import yielding
from .._core.tasks import (
    Running,
    is_cancelled,
    is_own_cancellation,
    maybe_await,
    run_until_first,
)
from ..deltas import BOOKMARK as BOOKMARK_DELTA
from ..deltas import Delta, DeltaType
from ..errors import (
    ApiError,
    ClientClosedError,
    DecodeError,
    IdleTimeoutError,
    RejectedObjectError,
    TransportError,
    WrongEventLoopError,
)
from ..handlers import require_plain
from ..objects.keys import keyed_by, meta_namespace_key_func
from ..objects.meta import (
    NOT_OLDER_THAN,
    ListOptions,
    ListResult,
    WatchEvent,
)
from ..objects.versions import number_of
from ..protocols import ListerWatcher, ReflectorStore, batched
from .backoff import CAP
from .event_decoder import EventDecoder
from .initial import InitialEvents, Streaming, lacks_watch_list
from .lister_watcher import lister_watcher_of
from .listing import Listed, ListVersions, Pager, refuses_version
from .options import ANSWER_TIMEOUT, MIN_WATCH_TIMEOUT, ReflectorOptions, check_options, watch_timeout
from .retry import REFUSALS, Retry, is_hopeless
from .scope import codec_of_collection
from .state import Phase, ReflectorState
from .stats import ReflectorStats
from .watch import (
    Allowance,
    InternalErrorRetries,
    Next,
    OpenWatch,
    Pulse,
    after_end,
    after_failed_start,
    max_silence,
    open_watch,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

STREAM_TRIES = 3
"""Initial streams that may break off in a row before one attempt is made by a list."""


class Reflector(Running, Generic[T]):
    """Keeps a store or queue equal to a collection of the API server: list, then watch.

    An async context manager.

    Usable alone, with a plain Store or a bare queue. Without known objects a queue cannot tell from a new list
    what was deleted meanwhile: those deletions are lost.

    Args:
        list_watch: Where to read.
        object_type: What an object is; None passes on whatever ``list_watch`` gives.
        store: Where to write; its verbs may be plain or async.
        resync_period: Seconds between resyncs of the store; 0 for none.
        should_resync: A plain function, asked each resync period whether to resync; None always does.
        pack: Gives an object of a list the form in which it waits for the rest of the list, such as compressed; None
            keeps it as it is.
        **options: See ReflectorOptions.

    Guarantees:
        ``last_sync_resource_version`` never runs ahead of what the store was given. An object that cannot be
        taken is dropped and counted, and stops no other; the first 20 after each list are logged. Errors are
        retried for ever, with backoff; what was stored stays. Cancelling ends it at once and leaves nothing open.
    """

    def __init__(
        self,
        list_watch: ListerWatcher,
        object_type: type[T] | None,
        store: ReflectorStore,
        resync_period: float = 0.0,
        *,
        should_resync: Callable[[], bool] | None = None,
        pack: Callable[[Any], Any] | None = None,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        source = lister_watcher_of(list_watch)
        replace = "replace_in_turns" if batched(store, "replace_in_turns", "replace") else "replace"
        require_methods("store", store, ("add", replace), "Store() or DeltaFIFO()")
        check_options(options)
        require_seconds("resync_period", resync_period)
        if should_resync is not None:
            require_plain("should_resync", should_resync)
        if pack is not None:
            require_callable("pack", pack)
        self.name = options.get("name") or getattr(list_watch, "description", "") or "reflector"
        self._source = source
        self._store = store
        self._replace_all: Callable[[Sequence[Any], str], Awaitable[None] | None] = getattr(store, replace)
        self._apply_all: Callable[[Sequence[Delta]], Awaitable[None]] | None = (
            getattr(store, "apply", None) if batched(store, "apply", "add", "update", "delete") else None
        )
        # As the store sees it, so that what cannot be decoded is recognised there.
        self._key_of = keyed_by(getattr(store, "key_of", meta_namespace_key_func))
        codec = codec_of_collection(
            object_type,
            list_watch,
            self._key_of,
            drop_managed_fields=options.get("drop_managed_fields") or False,
        )
        # Not by isinstance, which from Python 3.12 on overlooks what a wrapper such as a Tracer's passes on.
        self._update_version = getattr(store, "update_resource_version", None)
        self._bookmark = getattr(store, "bookmark", None)
        self._decoder = EventDecoder(
            codec, self._key_of, self._bookmark is not None, self._record_rejected, pack
        )
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._watch_error_handler = options.get("watch_error_handler")
        self._random = options.get("random") or Random()
        self._min_watch_timeout = options.get("min_watch_timeout") or MIN_WATCH_TIMEOUT
        self._initial_events_timeout = options.get("initial_events_timeout") or 10.0
        use_watch_list = options.get("use_watch_list")
        self._streaming = Streaming(
            getattr(source, "watch_list_semantics", False) if use_watch_list is None else use_watch_list
        )
        self._answer_timeout = options.get("list_timeout") or ANSWER_TIMEOUT
        self._pager = Pager(source, self._turn_in, self._answer_timeout, codec.read_item)
        self._versions = ListVersions(options.get("page_size") or 0)
        self._allowance = Allowance()
        self._pulse = Pulse(options.get("max_silence") or max_silence(self._random))
        self._ride_out = options.get("max_internal_error_retry_duration") or 0.0
        self._retry = Retry(self._random, getattr(list_watch, "health", None))
        self._last_version = ""
        self._next_resync: float | None = None
        self._stats = ReflectorStats(self.name)
        self._has_listed = False
        self._list_at_once = False
        self._hurried_at = -CAP  # when that was true last
        self._listed_at = 0.0
        self._refused = asyncio.Event()  # the first list, by what is_hopeless; until the next try
        self.restores = 0
        """How often a list has gone back to a lower version, as after a restore of etcd."""
        self.on_progress: Callable[[], None] | None = None
        """Called after ``last_sync_resource_version`` may have moved; must not raise."""

    def __repr__(self) -> str:
        return f"<Reflector {self.name}>"

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the store has been given everything; ``""`` before the first list."""
        return self._last_version

    @property
    def state(self) -> ReflectorState:
        """What it is doing, and what went wrong last."""
        retry = self._retry
        return self._stats.state(self._last_version, retry.at, retry.waiting_for, retry.probe_error)

    def record_unprocessed(self, error: RejectedObjectError) -> None:
        """Tell of objects that could not be processed, as of those that are dropped: many are not told one by one."""
        self._stats.unprocessed(error)

    async def run(self) -> None:
        """List and watch until cancelled, with backoff between the tries.

        Raises:
            AlreadyStartedError: It is running already.
            ClientClosedError: The client was closed.
            WrongEventLoopError: This, or the client, was used in another event loop before.
        """
        with self.in_one_run():
            try:
                while True:
                    await self._list_and_watch_or_back_off()
            finally:
                self._refused.clear()
                self._stats.enter(Phase.STOPPED)

    async def _list_and_watch_or_back_off(self) -> None:
        self._list_at_once = False
        self._refused.clear()
        try:
            await self.list_and_watch()
        except (ClientClosedError, WrongEventLoopError) as error:  # which do not heal
            await self._record_error(error)
            raise
        except Exception as error:  # user-written list functions raise anything
            await self._record_error(error)
            if not self._has_listed and is_hopeless(error):
                self._refused.set()
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            await self._record_error(TransportError(f"cancelled from within: {error!r}"))
        if not self._list_at_once:
            await self._back_off()

    async def wait_refused(self) -> None:
        """Wait until the first list is refused for what trying again does not mend, and raise that.

        Raises:
            ApiError: The answer was 400, 401, 403, 404 or 405.
            ConfigError: The client's configuration cannot work.
        """
        await self._refused.wait()
        refusal = self.state.last_error
        assert refusal is not None
        raise refusal

    async def list_and_watch(self) -> None:
        """List once, then watch until a new list is needed. Resyncs run meanwhile.

        Returns when the watch has ended in a way that calls for a list.

        Raises:
            ApiError, TransportError: The list failed, or a watch could not be opened.
        """
        self.require_own_loop()
        watch = await self._stream_initial_state()
        try:
            if watch is None:
                await self._list()
            if self._resync_period > 0:
                await run_until_first(partial(self._watch, watch), self._resync_periodically)
            else:
                await self._watch(watch)
        finally:
            if watch is not None:
                await watch.aclose()  # also where nobody has begun to follow it

    # -- the initial state ---------------------------------------------------------------------------------

    async def _list(self) -> None:
        self._stats.enter(Phase.LISTING)
        self._record_list_begun()
        self._streaming.list_tried()
        version = self._versions.relist_version(self._last_version)
        try:
            listed = await self._list_at(version)
        except ApiError as error:
            if not refuses_version(error, version):
                raise
            # The version is refused, not the list: ask for the most recent state at once.
            self._versions.unavailable = True
            version = self._versions.relist_version(self._last_version)
            listed = await self._list_at(version)
        self._versions.succeeded(version, listed.paginated)
        self._streaming.list_succeeded()
        await self._replace(listed)

    async def _list_at(self, version: str) -> Listed:
        return await self._pager.list(
            version, self._versions.page_size(version), self._versions.match(version)
        )

    async def _stream_initial_state(self) -> OpenWatch | None:
        """Read the initial state from a watch (WatchList, KEP-3157), which then goes on; None to list instead."""
        refused_versions = broken = 0
        while self._streaming.is_due(_now()):
            self._stats.enter(Phase.LISTING)
            try:
                return await self._watch_list()
            except (ClientClosedError, WrongEventLoopError):
                raise
            except Exception as error:
                if lacks_watch_list(error):
                    if not isinstance(
                        error, ApiError
                    ):  # a refusal is an answer; a missing bookmark is a fault
                        await self._record_error(error)
                    pause = self._streaming.failed(_now())
                    logger.info(
                        "%s: no streaming lists here (%s); listing for the next %g s", self.name, error, pause
                    )
                    return None
                if isinstance(error, ApiError) and error.status in REFUSALS:
                    self._streaming.refused()
                    raise
                await self._record_error(error)
                if isinstance(error, ApiError) and (error.is_expired or error.is_too_large_resource_version):
                    self._versions.unavailable = True
                    refused_versions += 1
                    if refused_versions == 1:
                        continue
                elif isinstance(error, TransportError):
                    broken += 1
                    if broken == STREAM_TRIES:
                        return None
                elif not (isinstance(error, ApiError) and error.is_too_many_requests):
                    return None
                await self._back_off()
        return None

    async def _watch_list(self) -> OpenWatch:
        self._record_list_begun()
        version = self._versions.rewatch_version(self._last_version)
        watch = await self._open(version, send_initial_events=True)
        logger.debug("%s: the list comes as a stream", self.name)
        initial = InitialEvents(self._initial_events_timeout, self._key_of)
        try:
            while not initial.is_complete:
                batch = await watch.next_batch(initial.deadline())
                if batch is None:
                    raise TransportError("the stream ended before its closing bookmark")
                rest = await initial.take(batch, self._decoder.object_of)
                self._stats.received(len(batch) - len(rest))
                watch.events += len(batch) - len(rest)
                watch.give_back(rest)  # what follows the bookmark is the watch's
                if self._decoder.missed:
                    raise DecodeError("an object of the streamed list cannot be read, and nobody knows which")
                self._stats.listed = len(initial)
            logger.debug(
                "%s: streamed %d objects at %s in %.1f s",
                self.name, len(initial), initial.resource_version, _now() - watch.started,
            )  # fmt: skip
            self._streaming.succeeded()
            self._versions.succeeded(version, paginated=False)
            await self._replace(Listed(initial.give_up(), initial.resource_version))
        except BaseException:
            initial.give_up()  # whoever keeps the error keeps its frames
            await watch.aclose()
            raise
        return watch

    def _record_list_begun(self) -> None:
        self._stats.list_begun()
        self._decoder.missed = False  # before it; what it lacks itself is still to come

    async def _replace(self, listed: Listed) -> None:
        self._stats.listed = listed.count  # without those of pages that have expired
        try:
            await maybe_await(self._replace_all(listed.objects, listed.resource_version))
        except RejectedObjectError as error:
            self._record_rejected(error)
        if number_of(listed.resource_version) < number_of(self._last_version):
            self.restores += 1
            if listed.resource_version:
                self._stats.went_back(listed.resource_version, self._last_version)
        self._last_version = listed.resource_version
        self._has_listed = True
        self._listed_at = _now()
        self._retry.succeeded()
        if self.on_progress is not None:
            self.on_progress()
        await yielding(listed.let_go())

    async def _turn_in(self, piece: ListResult) -> list[Any]:
        self._stats.received()
        objects = await self._decoder.objects_of(piece)
        self._stats.listed += len(objects)
        return objects

    # -- watching ------------------------------------------------------------------------------------------

    async def _watch(self, watch: OpenWatch | None) -> None:
        """Watch, again and again, until a list is needed."""
        internal_errors = InternalErrorRetries(self._ride_out)
        tries = 0
        while True:
            tries += 1
            if watch is None:
                try:
                    watch = await self._open(self._last_version)
                except Exception as error:
                    if after_failed_start(error) is Next.RELIST:
                        self._stats.cannot_watch(error, self._last_version)
                        raise
                    await self._record_error(error)
                    await self._back_off()
                    continue
            logger.debug("%s: watching from %s", self.name, self._last_version)
            ended = await self._follow(watch)
            if ended is not None:
                await self._record_error(ended, asked=False)
            step = self._after(watch, ended, internal_errors)
            if step is Next.RELIST:
                # History that has expired while the server was away is no reason to wait for longer still. If it
                # has on the very first watch after its list, it would again; so it may where that was just now.
                expired = tries > 1 and isinstance(ended, ApiError) and ended.is_expired
                self._list_at_once = expired and _now() - self._hurried_at >= CAP
                if self._list_at_once:
                    self._hurried_at = _now()
                return
            if step is Next.BACK_OFF_AND_REWATCH:
                await self._back_off()
            watch = ended = None  # an error keeps what was read as it was raised

    async def _open(self, version: str, send_initial_events: bool | None = None) -> OpenWatch:
        self._stats.watch_begun()
        options = ListOptions(
            resource_version=version,
            resource_version_match=NOT_OLDER_THAN if send_initial_events else "",
            allow_watch_bookmarks=True,
            send_initial_events=send_initial_events,
            timeout_seconds=watch_timeout(self._min_watch_timeout, self._random),
        )
        watch = await open_watch(self._source, options, self._answer_timeout, self._pulse)
        self._retry.watching()
        return watch

    async def _follow(self, watch: OpenWatch) -> Exception | None:
        """Pass on what a watch brings until it ends; what ended it."""
        self._stats.watching(watch.healthy_from)
        is_refused = False
        try:
            while (batch := await watch.next_batch()) is not None:
                await self._apply(batch, watch)
                await asyncio.sleep(0)  # whom this concerns comes first; what follows can wait
                if self._decoder.missed and self._owes_list():
                    break
            else:
                return watch.ended_at_once(_now())
        except Exception as error:
            is_refused = isinstance(error, ApiError)
            return error
        finally:
            self._stats.watch_ended(is_refused=is_refused)
            await watch.aclose()
        return None

    def _after(
        self, watch: OpenWatch, ended: Exception | None, internal_errors: InternalErrorRetries
    ) -> Next:
        now = _now()
        lived = now - watch.started
        healthy = watch.is_healthy(now)
        if healthy and not isinstance(ended, IdleTimeoutError):
            self._retry.reset()
        ride_out = isinstance(ended, ApiError) and ended.is_internal_error and internal_errors.allow(now)
        step = after_end(
            ended,
            lived,
            watch.events,
            healthy=healthy,
            retry_internal_error=ride_out,
            allowance=self._allowance,
        )
        if self._owes_list():
            logger.info("%s: listing again, for what could not be read", self.name)
            step = Next.RELIST
        if watch.events:
            self._stats.can_watch()
        elif step is Next.RELIST and ended is not None and not healthy:
            self._stats.cannot_watch(ended, self._last_version)
        logger.debug(
            "%s: the watch ended after %.1f s and %d events: %s", self.name, lived, watch.events, step.value
        )
        return step

    def _owes_list(self) -> bool:
        """Whether the store may lack what could not be read, and the last list is old enough for another."""
        return self._decoder.missed and _now() - self._listed_at >= self._min_watch_timeout

    async def _apply(self, batch: list[WatchEvent], watch: OpenWatch) -> None:
        """Give a batch's changes to the store, then move the version on. Raises the batch's ERROR, if any."""
        changes = self._decoder.changes_of(batch, watch.from_any)
        self._stats.received(len(batch), is_news=changes.failure is None or changes.taken > 0)
        watch.events += changes.taken
        watch.from_any = changes.from_any
        if changes.bookmarked:
            watch.bookmark_came(_now())
        if changes.deltas:
            await self._store_deltas(changes.deltas)
        if changes.version:
            self._last_version = changes.version
            if self._update_version is not None:
                await maybe_await(self._update_version(changes.version))
        if self.on_progress is not None:
            self.on_progress()
        if changes.failure is not None:
            raise changes.failure

    async def _store_deltas(self, deltas: list[Delta]) -> None:
        if self._apply_all is not None:
            try:
                await self._apply_all(deltas)
            except RejectedObjectError as error:
                self._record_rejected(error)
            return
        verbs = {
            DeltaType.ADDED: self._store.add,
            DeltaType.UPDATED: self._store.update,
            DeltaType.DELETED: self._store.delete,
        }
        for delta_type, obj in deltas:
            try:
                if delta_type is BOOKMARK_DELTA:
                    assert self._bookmark is not None
                    await maybe_await(self._bookmark(obj.resource_version))
                else:
                    await maybe_await(verbs[delta_type](obj))
            except RejectedObjectError as error:
                self._record_rejected(error)

    # -- resync, backoff, bookkeeping ----------------------------------------------------------------------

    async def _resync_periodically(self) -> None:
        """Resync each period; ends with the first resync that fails. New lists do not put a resync off."""
        if self._next_resync is None:
            self._next_resync = _now() + self._resync_period
        while True:
            await asyncio.sleep(self._next_resync - _now())
            try:
                if self._should_resync is None or self._should_resync():
                    await maybe_await(self._store.resync())
            except Exception as error:
                await self._record_error(error, is_request=False)
                return
            finally:
                self._next_resync = _now() + self._resync_period

    async def _back_off(self) -> None:
        self._stats.enter(Phase.BACKING_OFF)
        await self._retry.wait()

    async def _record_error(self, error: Exception, *, asked: bool = True, is_request: bool = True) -> None:
        if is_request:
            self._stats.request_failed(error)
        is_news = self._retry.failed(error, asked=asked)
        is_news = self._stats.failed(error) and is_news
        if self._watch_error_handler is None:
            self._stats.log_failure(error, self._last_version, is_news=is_news)
            return
        try:
            await maybe_await(self._watch_error_handler(self, error))
        except (Exception, asyncio.CancelledError) as failure:
            if is_own_cancellation(failure):
                raise
            logger.exception("%s: the watch error handler failed on: %s", self.name, error)

    def _record_rejected(self, error: RejectedObjectError | DecodeError) -> None:
        self._stats.rejected(error, self._last_version)


def _now() -> float:
    return asyncio.get_running_loop().time()
