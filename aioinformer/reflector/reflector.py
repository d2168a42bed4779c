"""The reflector: list, watch, relist (client-go ``tools/cache/reflector.go``).

``run`` repeats ``list_and_watch`` with backoff in between. ``list_and_watch`` reads the initial state, by a list or a
stream, and then watches until it has to list again. The rules are in other files: see the package's docstring.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import SystemRandom
from typing import Any, Generic, TypeGuard, TypeVar, Unpack, assert_never

from .._core.cancellation import CALL_ERRORS, failure_of, maybe_await
from .._core.checks import require_seconds
from .._core.coop import run_in_slices
from .._core.tasks import Running, run_until_first
from ..errors import (
    ApiError,
    ClientClosedError,
    DecodeError,
    IdleTimeoutError,
    RejectedObjectError,
    TransportError,
    WrongEventLoopError,
)
from ..listwatch.pager import Listed, Pager
from ..objects.meta import NOT_OLDER_THAN, ListOptions, ListResult, WatchEvent
from ..objects.versions import number_of
from ..protocols import ListerWatcher, ReflectorStore
from .backoff import Backoff
from .event_decoder import EventDecoder
from .initial import AfterStream, InitialEvents, Streaming
from .list_versions import ListVersions, refuses_version
from .lister_watcher import lister_watcher_of
from .next_step import InternalErrorRetries, Next, Relists, ShortWatchBudget, after_end, after_failed_start
from .options import ANSWER_TIMEOUT, MIN_WATCH_TIMEOUT, ReflectorOptions, check_options, watch_timeout
from .retry import Retry, is_hopeless
from .scope import codec_of_collection
from .state import Phase, ReflectorState
from .stats import ReflectorStats
from .store_writer import StoreWriter
from .watch import OpenWatch, Pulse, max_silence, open_watch

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Reflector(Running, Generic[T]):
    """Keeps a store or queue equal to a collection of the API server: lists, then watches.

    An async context manager. Works without an informer, with a plain Store or a bare queue. A queue without known
    objects loses the deletions between two lists, because it cannot compare the lists.

    Args:
        list_watch: Where to read.
        object_type: Type of the objects; None passes on what ``list_watch`` returns.
        store: Where to write; its verbs may be plain or async.
        resync_period: Seconds between resyncs of the store; 0 for none.
        should_resync: A plain function, called each resync period: whether to resync. None always resyncs.
        pack: Packs (such as compresses) an object of a list while it waits for the rest of the list. None keeps it as
            it is.
        **options: See ReflectorOptions.

    Guarantees:
        - ``last_sync_resource_version`` is never ahead of what the store has.
        - An object that does not fit the object type reaches the store as an UndecodableObject, so that the store never
          keeps an older state. One that cannot be read or stored at all is dropped. Both are counted and logged (the
          first 20 after each list). The other objects are processed.
        - Errors are retried forever, with backoff. The store keeps what it has.
        - Cancelling ends it at once and closes everything.
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
        self._lister_watcher = lister_watcher_of(list_watch)
        self._store = StoreWriter(store, self._record_rejected)
        check_options(options, Reflector)
        require_seconds("resync_period", resync_period)
        self.name = options.get("name") or getattr(list_watch, "description", "") or "reflector"
        codec = codec_of_collection(
            object_type,
            list_watch,
            self._store.key_of,
            drop_managed_fields=options.get("drop_managed_fields") or False,
        )
        self._decoder = EventDecoder(
            codec,
            self._store.key_of,
            self._store.takes_bookmarks,
            self._record_rejected,
            pack,
            self._record_undecodable,
        )
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._watch_error_handler = options.get("watch_error_handler")
        self._random = options.get("random") or SystemRandom()
        self._min_watch_timeout = options.get("min_watch_timeout") or MIN_WATCH_TIMEOUT
        self._initial_events_timeout = options.get("initial_events_timeout") or 10.0
        use_watch_list = options.get("use_watch_list")
        self._streaming = Streaming(
            getattr(self._lister_watcher, "watch_list_semantics", False)
            if use_watch_list is None
            else use_watch_list
        )
        self._answer_timeout = options.get("list_timeout") or ANSWER_TIMEOUT
        self._pager = Pager(self._lister_watcher, self._decode_piece, self._answer_timeout, codec.read_item)
        self._versions = ListVersions(options.get("page_size") or 0)
        self._short_watches = ShortWatchBudget()
        self._is_optional = options.get("optional") or False
        self._absences = 0  # answers in a row that the server does not have the collection
        self._pulse = Pulse(options.get("max_silence") or max_silence(self._random))
        self._internal_error_duration = options.get("max_internal_error_retry_duration") or 0.0
        self._retry = Retry(Backoff(self._random), getattr(list_watch, "health", None))
        self._last_version = ""
        self._next_resync = 0.0  # loop time; 0 before the first list
        self._stats = ReflectorStats(self.name)
        self._relists = Relists(self._min_watch_timeout)
        self._refused = asyncio.Event()  # set while the first list has failed with an is_hopeless() error
        self.restores = 0
        """How many lists had a lower version than before, as after a restore of etcd."""
        self.on_progress: Callable[[], None] | None = None
        """Called after ``last_sync_resource_version`` may have changed; must not raise."""

    def __repr__(self) -> str:
        return f"<Reflector {self.name}>"

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the store has everything; ``""`` before the first list."""
        return self._last_version

    @property
    def state(self) -> ReflectorState:
        """A snapshot: what the reflector does, and the last error."""
        retry = self._retry
        state = self._stats.state(self._last_version, retry.at, retry.waiting_for, retry.probe_error)
        return replace(state, phase=Phase.STOPPED) if self.is_forked else state

    def record_unprocessed(self, error: RejectedObjectError) -> None:
        """Log objects that could not be processed; after the first 20 since the last list they are not logged."""
        self._stats.log_unprocessed(error)

    async def run(self) -> None:
        """List and watch until cancelled, with backoff between the attempts.

        Raises:
            AlreadyStartedError: It is already running.
            ClientClosedError: The client was closed.
            WrongEventLoopError: The reflector or its client was used in another event loop before.
        """
        with self.in_one_run():
            try:
                while True:
                    self._refused.clear()
                    try:
                        await self.list_and_watch()
                    except (ClientClosedError, WrongEventLoopError) as error:  # retrying cannot help
                        await self._record_error(error)
                        raise
                    except CALL_ERRORS as error:  # users' stores and list functions raise anything
                        if self._stats.is_absent and self._is_absence(error):
                            self._retry.record_failure(error)
                        else:
                            await self._record_error(failure_of(error))
                        if not self._relists.has_listed and is_hopeless(error):
                            self._refused.set()
                    if not self._relists.take_at_once():
                        await self._back_off()
            finally:
                self._refused.clear()
                self._stats.enter(Phase.STOPPED)

    async def wait_refused(self) -> None:
        """Wait until the first list fails with an error that a retry cannot fix, and raise that error.

        Raises:
            ApiError: The answer was 400, 401, 403, 404 or 405.
            ConfigError: The client's configuration cannot work.
        """
        await self._refused.wait()
        refusal = self.state.last_error
        assert refusal is not None
        raise refusal

    async def list_and_watch(self) -> None:
        """List once, then watch until a new list is needed; resync meanwhile.

        Returns when the end of the watch requires a list: see ``next_step``.

        Raises:
            ApiError, TransportError: The list failed, or a watch could not be opened.
        """
        self.require_own_loop()
        self._next_resync = self._next_resync or _now() + self._resync_period
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
                await watch.aclose()  # also if _watch has not started

    # -- the initial state ---------------------------------------------------------------------------------

    async def _list(self) -> None:
        self._stats.enter(Phase.LISTING)
        self._record_list_begun()
        self._streaming.list_tried()
        version = self._versions.relist_version(self._last_version)
        try:
            listed = await self._list_at(version)
        except ApiError as error:
            if self._is_absence(error):
                await self._record_absence()
                raise
            if not refuses_version(error, version):
                raise
            # The server refused the version, not the list: ask for the most recent state at once.
            self._versions.unavailable = True
            version = self._versions.relist_version(self._last_version)
            listed = await self._list_at(version)
        self._versions.record_success(version, listed.paginated)
        self._streaming.list_succeeded()
        self._record_served()
        await self._replace(listed)

    def _is_absence(self, error: BaseException) -> TypeGuard[ApiError]:
        return self._is_optional and isinstance(error, ApiError) and error.is_missing_resource

    async def _record_absence(self) -> None:
        """Empty the store, because the server does not have the collection.

        After a list has succeeded it takes two such answers in a row: a server that has just started may not know all
        definitions yet.
        """
        self._absences += 1
        if self._absences > 1 or not self._relists.has_listed:
            if not self._stats.is_absent:
                await self._replace(Listed([], ""))
            self._stats.record_absent()

    def _record_served(self) -> None:
        self._absences = 0
        self._stats.record_served()

    async def _list_at(self, version: str) -> Listed:
        return await self._pager.list(
            version, self._versions.page_size(version), self._versions.match(version)
        )

    async def _stream_initial_state(self) -> OpenWatch | None:
        """Read the initial state from a watch (WatchList, KEP-3157) and return that watch; None: list instead."""
        self._streaming.begin()
        while self._streaming.is_due(_now()):
            self._stats.enter(Phase.LISTING)
            try:
                return await self._watch_list()
            except Exception as error:
                if self._is_absence(error):
                    await self._record_absence()
                    raise
                step = self._streaming.after(error, _now())
                if step is AfterStream.FAIL:
                    raise
                if isinstance(error, ApiError) and refuses_version(error):
                    self._versions.unavailable = True
                # A server that refuses to stream is no fault; one that sends no closing bookmark is.
                if step is not AfterStream.LIST_FOR_A_WHILE or not isinstance(error, ApiError):
                    await self._record_error(error)
                if step is AfterStream.LIST_FOR_A_WHILE:
                    logger.info(
                        "%s: the server has no streaming lists (%s); using lists for the next %g s",
                        self.name, error, self._streaming.pause,
                    )  # fmt: skip
                match step:
                    case AfterStream.LIST | AfterStream.LIST_FOR_A_WHILE:
                        return None
                    case AfterStream.STREAM_AT_ONCE:
                        pass
                    case AfterStream.BACK_OFF_AND_STREAM:
                        await self._back_off()
                    case _:
                        assert_never(step)
        return None

    async def _watch_list(self) -> OpenWatch:
        self._record_list_begun()
        version = self._versions.rewatch_version(self._last_version)
        watch = await self._open(version, send_initial_events=True)
        logger.debug("%s: reading the list as a stream", self.name)
        initial = InitialEvents(self._initial_events_timeout, self._store.key_of)
        try:
            while not initial.is_complete:
                batch = await watch.next_batch(initial.deadline())
                if batch is None:
                    raise TransportError("the stream ended before its closing bookmark")
                rest = await initial.add(batch, self._decoder.object_of)
                self._stats.record_answer(len(batch) - len(rest))
                watch.events += len(batch) - len(rest)
                watch.put_back(rest)  # events after the bookmark belong to the watch
                if self._decoder.missed:
                    raise DecodeError("an event of the streamed list cannot be read, and neither can its key")
                self._stats.listed = len(initial)
            logger.debug(
                "%s: streamed %d objects at %s in %.1f s",
                self.name, len(initial), initial.resource_version, _now() - watch.started,
            )  # fmt: skip
            self._streaming.record_success()
            self._versions.record_success(version, paginated=False)
            self._record_served()
            await self._replace(Listed(initial.take_all(), initial.resource_version))
        except BaseException:
            initial.take_all()  # the error keeps this frame alive
            await watch.aclose()
            raise
        return watch

    def _record_list_begun(self) -> None:
        self._stats.list_begun()
        self._decoder.missed = False  # set again if the list itself misses something

    async def _replace(self, listed: Listed) -> None:
        self._stats.listed = listed.count  # objects of expired pages do not count
        await self._store.replace(listed.objects, listed.resource_version)
        if number_of(listed.resource_version) < number_of(self._last_version):
            self.restores += 1
            if listed.resource_version:
                self._stats.went_back(listed.resource_version, self._last_version)
        self._last_version = listed.resource_version
        now = _now()
        if (
            not self._relists.has_listed and self._next_resync <= now
        ):  # the first list has just brought everything
            self._next_resync = now + self._resync_period
        self._relists.record_list(now)
        self._retry.record_success()
        if self.on_progress is not None:
            self.on_progress()
        await run_in_slices(listed.release())

    async def _decode_piece(self, piece: ListResult) -> list[Any]:
        self._stats.record_answer()
        objects = await self._decoder.objects_of(piece)
        self._stats.listed += len(objects)
        return objects

    # -- watching ------------------------------------------------------------------------------------------

    async def _watch(self, watch: OpenWatch | None) -> None:
        """Watch, and watch again after each end, until a list is needed."""
        internal_errors = InternalErrorRetries(self._internal_error_duration)
        tries = 0
        while True:
            tries += 1
            if watch is None:
                try:
                    watch = await self._open(self._last_version)
                except Exception as error:
                    if after_failed_start(error) is Next.RELIST:
                        self._stats.watch_failed_after_list(error, self._last_version)
                        raise
                    await self._record_error(error)
                    await self._back_off()
                    continue
            logger.debug("%s: watching from %s", self.name, self._last_version)
            ended = await self._follow(watch)
            if ended is not None:
                await self._record_error(ended, from_stream=True)
            step = self._after(watch, ended, internal_errors)
            if step is Next.RELIST:
                self._relists.watch_ended(ended, _now(), is_first=tries == 1)
                return
            if step is Next.BACK_OFF_AND_REWATCH:
                await self._back_off()
            watch = ended = None  # the error keeps the last batch alive

    async def _open(self, version: str, send_initial_events: bool | None = None) -> OpenWatch:
        self._stats.watch_begun()
        options = ListOptions(
            resource_version=version,
            resource_version_match=NOT_OLDER_THAN if send_initial_events else "",
            allow_watch_bookmarks=True,
            send_initial_events=send_initial_events,
            timeout_seconds=watch_timeout(self._min_watch_timeout, self._random),
        )
        watch = await open_watch(self._lister_watcher, options, self._answer_timeout, self._pulse)
        self._retry.record_watch()
        return watch

    async def _follow(self, watch: OpenWatch) -> Exception | None:
        """Store what a watch brings until it ends; return the error that ended it, or None."""
        self._stats.record_watch(watch.healthy_from)
        watch.start_reading()  # another task may have read the initial state
        is_refused = False
        try:
            while (batch := await watch.next_batch()) is not None:
                await self._apply(batch, watch)
                if watch.must_pause:
                    await asyncio.sleep(0)
                if self._decoder.missed and self._relists.may_make_up(_now()):
                    break
            else:
                return watch.very_short_end(_now())
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
        retry_internal_error = (
            isinstance(ended, ApiError) and ended.is_internal_error and internal_errors.allow(now)
        )
        step = after_end(
            ended,
            lived,
            watch.events,
            healthy=healthy,
            retry_internal_error=retry_internal_error,
            budget=self._short_watches,
        )
        if self._decoder.missed and self._relists.may_make_up(now):
            logger.info(
                "%s: relisting, because an event could not be read, and neither could its key", self.name
            )
            step = Next.RELIST
        if watch.events:
            self._stats.watch_works()
        elif step is Next.RELIST and ended is not None and not healthy:
            self._stats.watch_failed_after_list(ended, self._last_version)
        logger.debug(
            "%s: the watch ended after %.1f s and %d events: %s", self.name, lived, watch.events, step.value
        )
        return step

    async def _apply(self, batch: list[WatchEvent], watch: OpenWatch) -> None:
        """Write a batch's changes to the store, then advance the version. Raise the batch's ERROR, if it has one."""
        changes = self._decoder.changes_of(batch, watch.from_any)
        self._stats.record_answer(len(batch), is_progress=changes.failure is None or changes.taken > 0)
        watch.events += changes.taken
        watch.from_any = changes.from_any
        if changes.bookmarked:
            watch.record_bookmark(_now())
        if changes.deltas:
            try:
                await self._store.apply(changes.deltas)
            except RejectedObjectError as error:
                self._record_rejected(error)
        if changes.version:
            self._last_version = changes.version
            if self._store.update_version is not None:
                await maybe_await(self._store.update_version(changes.version))
        if self.on_progress is not None:
            self.on_progress()
        if changes.failure is not None:
            raise changes.failure

    # -- resync, backoff, bookkeeping ----------------------------------------------------------------------

    async def _resync_periodically(self) -> None:
        """Resync each period, until a resync fails. Lists do not delay resyncs."""
        while True:
            await asyncio.sleep(self._next_resync - _now())
            try:
                if self._should_resync is None or self._should_resync():
                    await self._store.resync()
            except Exception as error:
                await self._record_error(error, from_store=True)
                return
            finally:
                self._next_resync = _now() + self._resync_period

    async def _back_off(self) -> None:
        self._stats.enter(Phase.BACKING_OFF)
        await self._retry.wait()

    async def _record_error(
        self, error: Exception, *, from_stream: bool = False, from_store: bool = False
    ) -> None:
        if not from_store:
            self._stats.request_failed(error)
        is_new = self._retry.record_failure(error, from_stream=from_stream)
        is_new = self._stats.record_failure(error) and is_new
        if self._watch_error_handler is None:
            self._stats.log_failure(error, self._last_version, is_new=is_new)
            return
        try:
            await maybe_await(self._watch_error_handler(self, error))
        except Exception:
            logger.exception("%s: the watch error handler raised an exception for: %s", self.name, error)

    def _record_rejected(self, error: RejectedObjectError | DecodeError) -> None:
        self._stats.record_rejected(error, self._last_version)

    def _record_undecodable(self, error: DecodeError) -> None:
        self._stats.undecodable(error, self._last_version)


def _now() -> float:
    return asyncio.get_running_loop().time()
