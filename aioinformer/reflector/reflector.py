"""The reflector's coroutines (client-go ``tools/cache/reflector.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Any, Generic, TypeVar, Unpack

from ..api import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    NO_EVENT,
    NOT_OLDER_THAN,
    ListOptions,
    ListResult,
    WatchEvent,
)
from ..checks import require_seconds
from ..codec import codec_for
from ..deltas import BOOKMARK as BOOKMARK_DELTA
from ..deltas import BookmarkInfo, DeletedFinalStateUnknown, Delta, DeltaType
from ..errors import (
    AioInformerError,
    ApiError,
    ClientClosedError,
    DecodeError,
    IdleTimeoutError,
    KeyFuncError,
    RejectedObjectError,
    TransportError,
    WrongEventLoopError,
    said,
)
from ..keys import ExplicitKey, KeyFunc, keyed_by, meta_namespace_key_func, resource_version_of
from ..objects import KubeObject
from ..protocols import ListerWatcher, ReflectorBookmarkStore, ReflectorStore
from ..tasks import Running, first_of, is_cancelled, settle
from ..turns import Turn
from .initial import InitialEvents, Streaming, lacks_watch_list, no_event, status_error
from .listing import Listed, ListVersions, Pager, refuses_version
from .options import ReflectorOptions, check_options
from .retry import Retry
from .scope import codec_of_collection
from .state import Phase, ReflectorState
from .watch import InternalErrorRetries, Next, OpenWatch, after_end, after_failed_start

logger = logging.getLogger(__name__)

T = TypeVar("T")

STREAM_TRIES = 3
"""Initial streams that may break off in a row before one attempt is made by a list."""

REJECTIONS_LOGGED = 20
"""Dropped objects that are logged from one list to the next: a wrong object type must not flood the log."""

DELTA_TYPES = {ADDED: DeltaType.ADDED, MODIFIED: DeltaType.UPDATED, DELETED: DeltaType.DELETED}


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
        **options: See ReflectorOptions.

    Guarantees:
        ``last_sync_resource_version`` never runs ahead of what the store was given. An object that cannot be
        taken is dropped with a log line and counted, and stops no other. Errors are retried for ever, with
        backoff; what was stored stays. Cancelling ends it at once and leaves nothing open.
    """

    def __init__(
        self,
        list_watch: ListerWatcher,
        object_type: type[T] | None,
        store: ReflectorStore,
        resync_period: float = 0.0,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        check_options(options)
        require_seconds("resync_period", resync_period)
        self.name = options.get("name") or getattr(list_watch, "description", "") or "reflector"
        self._list_watch = list_watch
        self._store = store
        self._takes_bookmarks = isinstance(store, ReflectorBookmarkStore)
        # As the store sees it, so that what cannot be decoded is recognised there.
        self._key_of = keyed_by(getattr(store, "key_of", meta_namespace_key_func))
        self._codec = codec_of_collection(object_type, list_watch, self._key_of)
        self._resync_period = resync_period
        self._should_resync = options.get("should_resync")
        self._watch_error_handler = options.get("watch_error_handler")
        self._random = options.get("random") or Random()
        self._min_watch_timeout = options.get("min_watch_timeout") or 300.0
        self._initial_events_timeout = options.get("initial_events_timeout") or 10.0
        use_watch_list = options.get("use_watch_list")
        self._streaming = Streaming(
            list_watch.watch_list_semantics if use_watch_list is None else use_watch_list
        )
        self._answer_timeout = options.get("list_timeout") or 60.0
        self._pager = Pager(list_watch, self._turn_in, self._answer_timeout)
        self._versions = ListVersions(options.get("page_size") or 0)
        self._internal_errors = InternalErrorRetries(options.get("max_internal_error_retry_duration") or 0.0)
        self._retry = Retry(self._random, getattr(list_watch, "health", None))
        self._last_version = ""
        self._next_resync: float | None = None
        self._phase = Phase.NEW
        self._phase_since: float | None = None
        self._loop_ahead = 0.0  # of the monotonic clock, in seconds
        self._last_activity: float | None = None
        self._last_error: Exception | None = None
        self._logged: set[tuple[Any, ...]] = set()  # kinds of errors since things were well
        self._list_at_once = False
        self._listed_at = 0.0
        self._missed = False  # something came since then that could not be read: the store may lack it
        self._listed = 0
        self.on_progress: Callable[[], None] | None = None
        """Called after ``last_sync_resource_version`` may have moved; must not raise."""
        self._lists = self._watches = self._events = self._rejected = self._rejected_since_list = 0

    def __repr__(self) -> str:
        return f"<Reflector {self.name}>"

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the store has been given everything; ``""`` before the first list."""
        return self._last_version

    @property
    def state(self) -> ReflectorState:
        """What it is doing, and what went wrong last."""
        now, retry_at = self._now_anywhere(), self._retry.at
        return ReflectorState(
            name=self.name,
            phase=self._phase,
            phase_seconds=0.0 if self._phase_since is None else now - self._phase_since,
            resource_version=self._last_version,
            idle_seconds=None if self._last_activity is None else now - self._last_activity,
            last_error=self._last_error,
            retry_seconds=None if retry_at is None else max(0.0, retry_at - now),
            waiting_for=self._retry.waiting_for,
            listed=self._listed,
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            rejected=self._rejected,
        )

    async def run(self) -> None:
        """List and watch until cancelled, with backoff between the tries.

        Raises:
            ClientClosedError: The client was closed.
            WrongEventLoopError: This, or the client, was used in another event loop before.
        """
        self.require_own_loop()
        try:
            while True:
                self._list_at_once = False
                try:
                    await self.list_and_watch()
                except (ClientClosedError, WrongEventLoopError) as error:  # which do not heal
                    await self._note_error(error)
                    raise
                except Exception as error:  # user-written list functions raise anything
                    await self._note_error(error)
                except asyncio.CancelledError as error:
                    if is_cancelled():
                        raise
                    await self._note_error(TransportError(f"cancelled from within: {error!r}"))
                if not self._list_at_once:
                    await self._back_off()
        finally:
            self._enter(Phase.STOPPED)

    async def list_and_watch(self) -> None:
        """List once, then watch until a new list is needed. Resyncs run meanwhile.

        Returns when the watch has ended in a way that calls for a list.

        Raises:
            ApiError, TransportError: The list failed, or a watch could not be opened.
        """
        self.require_own_loop()
        watch = await self._stream_initial_state()
        if watch is None:
            await self._list()
        if self._resync_period > 0:
            await first_of(self._watch(watch), self._resync_periodically())
        else:
            await self._watch(watch)

    # -- the initial state ---------------------------------------------------------------------------------

    async def _list(self) -> None:
        self._enter(Phase.LISTING)
        self._lists += 1
        self._listed = self._rejected_since_list = 0
        version = self._versions.relist_version(self._last_version)
        try:
            listed = await self._pager.list(version, self._versions.page_size(version))
        except ApiError as error:
            if not refuses_version(error, version):
                raise
            # The version is refused, not the list: ask for the most recent state at once.
            self._versions.unavailable = True
            version = self._versions.relist_version(self._last_version)
            listed = await self._pager.list(version, self._versions.page_size(version))
        self._versions.succeeded(version, listed.paginated)
        await self._replace(listed)

    async def _stream_initial_state(self) -> OpenWatch | None:
        """Read the initial state from a watch (WatchList, KEP-3157), which then goes on; None to list instead."""
        refused_versions = broken = 0
        while self._streaming.is_due(_now()):
            self._enter(Phase.LISTING)
            try:
                return await self._watch_list()
            except (ApiError, TransportError, DecodeError) as error:
                if lacks_watch_list(error):
                    if not isinstance(
                        error, ApiError
                    ):  # a refusal is an answer; a missing bookmark is a fault
                        await self._note_error(error)
                    pause = self._streaming.failed(_now())
                    logger.info(
                        "%s: no streaming lists here (%s); listing for the next %g s", self.name, error, pause
                    )
                    return None
                await self._note_error(error)
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
        self._lists += 1
        self._listed = self._rejected_since_list = 0
        version = self._versions.rewatch_version(self._last_version)
        watch = await self._open(version, send_initial_events=True)
        try:
            initial = InitialEvents(self._initial_events_timeout, self._key_of)
            self._missed = False
            while not initial.is_complete:
                batch = await watch.next_batch(initial.deadline())
                if batch is None:
                    raise TransportError("the stream ended before its closing bookmark")
                rest = initial.take(batch, self._object_of)
                self._note_activity(len(batch) - len(rest))
                watch.events += len(batch) - len(rest)
                watch.give_back(rest)  # what follows the bookmark is the watch's
                if self._missed:
                    raise DecodeError("an object of the streamed list cannot be read, and nobody knows which")
                self._listed = len(initial)
            self._streaming.succeeded()
            self._versions.succeeded(version, paginated=False)
            await self._replace(Listed(initial.objects(), initial.resource_version))
        except BaseException:
            await watch.aclose()
            raise
        return watch

    async def _replace(self, listed: Listed) -> None:
        try:
            await settle(self._store.replace(listed.objects, listed.resource_version))
        except RejectedObjectError as error:
            self._note_rejected(error)
        self._last_version = listed.resource_version
        self._listed_at = _now()
        self._missed = False
        self._retry.succeeded()
        if self.on_progress is not None:
            self.on_progress()

    async def _turn_in(self, piece: ListResult) -> list[Any]:
        """The objects of a list's piece. One that cannot be decoded leaves its key, so that it is not deleted."""
        self._note_activity(0)
        objects: list[Any] = []
        turn = Turn()
        for item in piece.items:
            try:
                objects.append(self._codec.decode(item, piece.type_meta))
            except DecodeError as error:
                self._note_rejected(error)
                if (key := _key_of_bad_item(self._key_of, item)) is not None:
                    objects.append(key)
            if turn.is_over():
                await turn.pause()
        self._listed += len(objects)
        return objects

    # -- watching ------------------------------------------------------------------------------------------

    async def _watch(self, watch: OpenWatch | None) -> None:
        """Watch, again and again, until a list is needed."""
        tries = 0
        while True:
            tries += 1
            if watch is None:
                try:
                    watch = await self._open(self._last_version)
                except Exception as error:
                    if after_failed_start(error) is Next.RELIST:
                        raise
                    await self._note_error(error)
                    await self._back_off()
                    continue
            self._enter(Phase.WATCHING)
            ended = await self._follow(watch)
            if watch.is_healthy(_now()):
                self._note_well()
            if ended is not None:
                await self._note_error(ended)
            step = self._after(watch, ended)
            watch = None
            if step is Next.RELIST:
                # History that has expired while the server was away is no reason to wait for longer still. If it
                # has on the very first watch after its list, it would again.
                self._list_at_once = tries > 1 and isinstance(ended, ApiError) and ended.is_expired
                return
            if step is Next.BACK_OFF_AND_REWATCH:
                await self._back_off()

    async def _open(self, version: str, send_initial_events: bool | None = None) -> OpenWatch:
        timeout = max(1, int(self._min_watch_timeout * (1.0 + self._random.random())))
        started = _now()
        self._watches += 1
        options = ListOptions(
            resource_version=version,
            resource_version_match=NOT_OLDER_THAN if send_initial_events else "",
            allow_watch_bookmarks=True,
            send_initial_events=send_initial_events,
            timeout_seconds=timeout,
        )
        deadline = asyncio.timeout(self._answer_timeout)
        try:
            async with deadline:
                stream = await self._list_watch.watch(options)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise TransportError(f"no answer to a watch for {self._answer_timeout:g} s") from error
        from_any = not send_initial_events and version in ("", "0")
        return OpenWatch(stream, started, timeout, from_any)

    async def _follow(self, watch: OpenWatch) -> Exception | None:
        """Pass on what a watch brings until it ends; what ended it."""
        try:
            while (batch := await watch.next_batch()) is not None:
                self._note_activity(len(batch))
                if self._last_error is not None and watch.is_healthy(_now()):
                    self._note_well()
                await self._apply(batch, watch)
                if self._missed and self._owes_list():
                    break
        except Exception as error:
            return error
        finally:
            await watch.aclose()
        return None

    def _after(self, watch: OpenWatch, ended: Exception | None) -> Next:
        now = _now()
        lived = now - watch.started
        healthy = watch.is_healthy(now)
        if healthy and not isinstance(ended, IdleTimeoutError):
            self._retry.reset()
        ride_out = (
            isinstance(ended, ApiError) and ended.is_internal_error and self._internal_errors.allow(now)
        )
        step = after_end(ended, lived, watch.events, healthy=healthy, retry_internal_error=ride_out)
        if self._owes_list():
            logger.info("%s: listing again, for what could not be read", self.name)
            step = Next.RELIST
        logger.debug(
            "%s: the watch ended after %.1f s and %d events: %s", self.name, lived, watch.events, step
        )
        return step

    def _owes_list(self) -> bool:
        """Whether the store may lack what could not be read, and the last list is old enough for another."""
        return self._missed and _now() - self._listed_at >= self._min_watch_timeout

    async def _apply(self, batch: list[WatchEvent], watch: OpenWatch) -> None:
        """Give a batch's changes to the store, then move the version on. Raises the batch's ERROR, if any."""
        deltas: list[Delta] = []
        newest: Any = None
        failure: ApiError | None = None
        from_any = watch.from_any
        taken = 0
        decode = self._codec.decode
        obj: Any
        for event in batch:
            kind = event.type
            delta_type = DELTA_TYPES.get(kind)
            if delta_type is not None:
                try:
                    obj = decode(event.object)
                except DecodeError as error:
                    obj = self._what_is_left_of(event, error)
                    if not isinstance(obj, DeletedFinalStateUnknown):
                        continue
                deltas.append(Delta(delta_type, obj))
            elif kind == BOOKMARK:
                try:
                    obj = codec_for(KubeObject).decode(event.object)
                except DecodeError as error:
                    self._note_rejected(error)
                    continue
                if self._takes_bookmarks and obj.resource_version:
                    deltas.append(Delta(BOOKMARK_DELTA, BookmarkInfo(obj.resource_version)))
            elif kind == ERROR:
                failure = status_error(event.object)
                break
            else:
                self._note_unknown(event)
                continue
            taken += 1
            if from_any and kind != ADDED:
                from_any = False
            if not from_any:
                newest = obj
        watch.events += taken
        watch.from_any = from_any
        if deltas:
            await self._store_deltas(deltas)
        self._last_version = resource_version_of(newest) or self._last_version
        if self.on_progress is not None:
            self.on_progress()
        if failure is not None:
            raise failure

    async def _store_deltas(self, deltas: list[Delta]) -> None:
        apply: Callable[[Sequence[Delta]], Awaitable[None]] | None = getattr(self._store, "apply", None)
        if apply is not None:
            try:
                await apply(deltas)
            except RejectedObjectError as error:
                self._note_rejected(error)
            return
        verbs = {
            DeltaType.ADDED: self._store.add,
            DeltaType.UPDATED: self._store.update,
            DeltaType.DELETED: self._store.delete,
        }
        for delta_type, obj in deltas:
            try:
                if delta_type is BOOKMARK_DELTA:
                    assert isinstance(self._store, ReflectorBookmarkStore)
                    await settle(self._store.bookmark(obj.resource_version))
                else:
                    await settle(verbs[delta_type](obj))
            except RejectedObjectError as error:
                self._note_rejected(error)

    def _object_of(self, event: WatchEvent) -> Any:
        """An event's object; of one that cannot be decoded what is left of it."""
        if event.type not in DELTA_TYPES:
            self._note_unknown(event)
            return None
        try:
            return self._codec.decode(event.object)
        except DecodeError as error:
            return self._what_is_left_of(event, error)

    def _what_is_left_of(self, event: WatchEvent, error: DecodeError) -> Any:
        """The key of an event's object that cannot be decoded, as a tombstone if it was deleted, or None."""
        self._note_rejected(error)
        key = _key_of_bad_item(self._key_of, event.object)
        self._missed = self._missed or key is None
        return key if key is None or event.type != DELETED else DeletedFinalStateUnknown(str(key), None)

    def _note_unknown(self, event: WatchEvent) -> None:
        if event.type == NO_EVENT:
            self._missed = True
            self._note_rejected(no_event(event.object))
        else:
            self._note_rejected(DecodeError(f"a watch event of unknown type {event.type!r:.80}"))

    # -- resync, backoff, bookkeeping ----------------------------------------------------------------------

    async def _resync_periodically(self) -> None:
        """Resync each period; ends with the first resync that fails. New lists do not put a resync off."""
        if self._next_resync is None:
            self._next_resync = _now() + self._resync_period
        while True:
            await asyncio.sleep(self._next_resync - _now())
            if self._should_resync is None or self._should_resync():
                try:
                    await settle(self._store.resync())
                except Exception as error:
                    await self._note_error(error)
                    return
            self._next_resync = _now() + self._resync_period

    async def _back_off(self) -> None:
        self._enter(Phase.BACKING_OFF)
        await self._retry.wait()

    async def _note_error(self, error: Exception) -> None:
        what = (type(error), error.status, error.reason) if isinstance(error, ApiError) else (type(error),)
        is_news = self._retry.failed(error)
        repeated = what in self._logged or not is_news
        self._logged.add(what)
        self._last_error = error
        if self._watch_error_handler is not None:
            try:
                await settle(self._watch_error_handler(self, error))
            except Exception:
                logger.exception("%s: the watch error handler failed on: %s", self.name, error)
            return
        expected = isinstance(error, ApiError) and error.is_expired
        level = logging.DEBUG if repeated else logging.INFO if expected else logging.WARNING
        unknown = not isinstance(error, AioInformerError)
        logger.log(
            level, "%s at %s: %s", self.name, self._last_version or "no version", said(error),
            exc_info=error if unknown and not repeated else None,
        )  # fmt: skip

    def _note_well(self) -> None:
        self._last_error = None
        self._logged.clear()

    def _note_rejected(self, error: RejectedObjectError | DecodeError) -> None:
        errors = error.all() if isinstance(error, RejectedObjectError) else (error,)
        self._rejected += len(errors)
        for each in errors:
            self._rejected_since_list += 1
            if self._rejected_since_list <= REJECTIONS_LOGGED:
                logger.error(
                    "%s at %s: dropped an object: %s", self.name, self._last_version or "no version", each
                )
            elif self._rejected_since_list == REJECTIONS_LOGGED + 1:
                logger.error("%s: further dropped objects are only counted, until the next list", self.name)

    def _note_activity(self, events: int) -> None:
        self._last_activity = _now()
        self._events += events

    def _now_anywhere(self) -> float:
        """Loop time, also for who asks from another thread, or after the end."""
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                return _now()
        return max(monotonic() + self._loop_ahead, self._phase_since or 0.0, self._last_activity or 0.0)

    def _enter(self, phase: Phase) -> None:
        if phase is not self._phase:
            self._phase = phase
            self._phase_since = _now()
            self._loop_ahead = self._phase_since - monotonic()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _key_of_bad_item(key_of: KeyFunc, item: Any) -> ExplicitKey | None:
    try:
        return ExplicitKey(key_of(codec_for(KubeObject).decode(item)))
    except (DecodeError, KeyFuncError):
        return None
