"""Read a share of a collection: the server selects the slots if it can, and the client drops what is left."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator
from dataclasses import replace
from typing import Any, cast

import anyio

from ..errors import DecodeError
from ..listwatch.list_watch import ResourceListWatch
from ..objects.keys import resource_version_of
from ..objects.kube_object import KubeObject
from ..objects.meta import ADDED, BOOKMARK, DELETED, MODIFIED, ListOptions, ListResult, WatchEvent
from ..objects.versions import number_of
from ..protocols import WatchStream
from .placement import Grouping, Placement
from .share import Share
from .slots import selector_of

logger = logging.getLogger(__name__)

Watch = AsyncGenerator[list[WatchEvent], None]
"""A watch of an API server: it always sends lists, and can be closed."""

BATCH = 256
"""Events in one batch, as in a watch."""

HEARTBEAT = 30.0
"""Seconds between empty batches while this replica owns no slot: the reflector takes longer silences for a lost
connection."""


class ShardedListWatch(ResourceListWatch):
    """Lists and watches the objects of the slots that this replica owns.

    - A list asks for all slots. So the reflector replaces its store as always.
    - When slots move while a watch is open, the stream itself lists the slots that came, as ADDED events, and sends
      DELETED events for objects of the slots that went. Then it watches on. Other slots are not listed.
    - Each object's slot is checked here too, so a server without shards makes no difference but in bytes.

    Args:
        collection: The reader of the whole collection.
        share: The slots.
        grouping: What decides about an object's slot.
        shard_by: The grouping's name.

    Attributes:
        placement: The slots of the objects that were handed on.
        is_filtered_by_server: Whether the server selected the slots in the last list; None if that is not known.
    """

    def __init__(
        self, collection: ResourceListWatch, share: Share, grouping: Grouping, shard_by: str
    ) -> None:
        super().__init__(collection.client, collection.resource, collection._longest_object)
        self.description = collection.description
        self.shard_by = shard_by
        self._share = share
        self._grouping = grouping
        self._covered: frozenset[int] = frozenset()
        self._listing: frozenset[int] = frozenset()
        self._listed = Placement(grouping, share.count)
        self._store: Any = None
        self.placement = Placement(grouping, share.count)
        self.is_filtered_by_server: bool | None = None
        self._has_warned = False

    @property
    def can_be_selected(self) -> bool:
        """Whether servers that know shards can select the slots."""
        return self._grouping.is_selected

    @property
    def watch_list_semantics(self) -> bool:
        """Never: only lists show whether the server selects the slots."""
        return False

    def attach(self, store: Any) -> None:
        """Let objects that leave be looked up in their store: handlers get the last state."""
        self._store = store

    # -- lists ---------------------------------------------------------------------------------------------

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        """Yield the objects of this replica's slots. Without slots it sends no request. Raises as ``list``."""
        if not options.continue_token:
            self._listing = self._share.slots
            self._listed = Placement(self._grouping, self._share.count)
        if not self._listing:
            self._cover(self._listing, self._listed)
            yield ListResult(())
            return
        piece = ListResult(())
        async for piece in self._list_slots(self._listing, options, self._listed):
            yield piece
        if not piece.continue_token:
            self._cover(self._listing, self._listed)

    def _cover(self, slots: frozenset[int], listed: Placement) -> None:
        self.placement.replace(listed, slots)
        self._covered = slots

    async def _list_slots(
        self, slots: Collection[int], options: ListOptions, placement: Placement
    ) -> AsyncIterator[ListResult]:
        """Yield the objects of some slots as KubeObjects, and place them.

        Not every server that selects says so, in ``shardInfo``: not of custom resources. What it sends shows it.
        """
        selector = self._selector(slots)
        read = dropped = 0
        is_confirmed = False
        options = replace(options, shard_selector=selector, read_item=KubeObject.from_bytes)
        async for piece in super().list_chunks(options):
            kept = []
            for item in piece.items:
                obj = _head_of(item, piece)
                if obj is None:
                    kept.append(item)  # the reflector reports it
                elif (slot := placement.slot_for(obj)) in slots:
                    placement.put(obj.key, slot)
                    kept.append(obj)
                else:
                    dropped += 1
                    if obj.key in self.placement and not self._grouping.is_selected:
                        placement.moved.add(obj.key)
            read += len(piece.items)
            is_confirmed = is_confirmed or piece.shard_selector == selector
            yield replace(piece, items=kept)
        if selector and (read or is_confirmed):
            self._record_filter(is_by_server=not dropped)

    def _selector(self, slots: Collection[int]) -> str:
        return selector_of(slots, self._share.count) if self._grouping.is_selected else ""

    def _record_filter(self, *, is_by_server: bool) -> None:
        if self.is_filtered_by_server == is_by_server:
            return
        self.is_filtered_by_server = is_by_server
        if not is_by_server:
            logger.info(
                "%s: the server does not select shards (its feature gate ShardedListAndWatch is off), so this replica "
                "reads everything and drops what other replicas own: that saves memory, but no network",
                self.description,
            )

    # -- watches -------------------------------------------------------------------------------------------

    async def watch(self, options: ListOptions) -> WatchStream:
        """Open a watch of this replica's slots: a stream of lists of events. Close it with ``aclose``."""
        slots = self._share.slots
        opened = None
        if slots and slots == self._covered:  # else the stream has to move slots first
            opened = await self._watch_slots(slots, options, options.resource_version)
        return self._events(options, opened)

    async def _watch_slots(self, slots: Collection[int], options: ListOptions, version: str) -> Watch:
        options = replace(options, resource_version=version, shard_selector=self._selector(slots))
        return cast(Watch, await super().watch(options))

    async def _events(self, options: ListOptions, opened: Watch | None) -> AsyncIterator[list[WatchEvent]]:
        version = options.resource_version
        floors: dict[int, int] = {}
        watched = self._covered
        try:
            while True:
                slots = self._share.slots
                self._covered &= slots
                for batch in self._leave(slots, version):
                    yield batch
                if gained := slots - self._covered:
                    newest = version
                    async for listed, batch in self._gain(gained, version):
                        newest = listed
                        yield batch
                    version = version or newest
                    floors |= dict.fromkeys(gained, number_of(newest) if newest.isdigit() else 0)
                    self._covered |= gained
                if slots != self._share.slots:
                    continue
                if not slots:
                    with anyio.move_on_after(HEARTBEAT), self._share.until_changed():
                        await anyio.sleep_forever()
                    yield []
                    continue
                if opened is None or watched != slots:
                    if opened is not None:
                        await opened.aclose()
                    opened, watched = None, slots
                    opened = await self._watch_slots(slots, options, version)
                arrived: list[list[WatchEvent]] = []
                with self._share.until_changed():
                    try:
                        arrived.append(await anext(opened))
                    except StopAsyncIteration:
                        return
                for batch in arrived:  # none if the slots have changed meanwhile
                    events, version = self._select(batch, slots, floors, version)
                    yield events
        finally:
            if opened is not None:
                await opened.aclose()

    def _select(
        self, batch: list[WatchEvent], slots: Collection[int], floors: dict[int, int], version: str
    ) -> tuple[list[WatchEvent], str]:
        """Return the events of a batch about objects of some slots, and the version after the batch.

        Args:
            batch: The events.
            slots: The slots.
            floors: The version of the list that a slot came with: older events are part of that.
            version: The version before the batch.
        """
        placement = self.placement
        kept = []
        has_moved = False
        for event in batch:
            if event.type not in (ADDED, MODIFIED, DELETED):
                if event.type == BOOKMARK:
                    bookmark = _head_of(event.object)
                    version = version if bookmark is None else resource_version_of(bookmark) or version
                kept.append(event)
                continue
            obj = _head_of(event.object)
            if obj is None:
                kept.append(event)
                continue
            version = obj.resource_version or version
            slot, key = placement.slot_for(obj), obj.key
            if obj.resource_version.isdigit():
                # The object may have had another uid or owner in a list that came with a slot.
                known_in = placement.get(key)
                floor = max(floors.get(slot, 0), 0 if known_in is None else floors.get(known_in, 0))
                if number_of(version) <= floor:
                    continue
            if slot not in slots:
                if key in placement:  # it belongs to another group now
                    kept.append(WatchEvent(DELETED, self._last_state(key)))
                    placement.remove(key, is_deleted=False)
                    self._warn_of_move(key)
                    has_moved = True
                continue
            if event.type == DELETED:
                placement.remove(key, is_deleted=True)
            else:
                placement.put(key, slot)
            kept.append(WatchEvent(event.type, obj))
        if has_moved:
            kept.append(_bookmark(version))
        return kept, version

    def _warn_of_move(self, key: str) -> None:
        if self.shard_by == "uid" and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s: the text by which %s is grouped has changed, so another replica has it now, maybe before the work "
                "here has ended; keep the text of an object the same (said once)",
                self.description,
                key,
            )

    def _leave(self, slots: Collection[int], version: str) -> Iterator[list[WatchEvent]]:
        """Yield DELETED events for the objects outside these slots, also for those of a stream that broke off."""
        keys = list(self.placement.keys_outside(slots))
        for begin in range(0, len(keys), BATCH):
            batch = []
            for key in keys[begin : begin + BATCH]:
                batch.append(WatchEvent(DELETED, self._last_state(key)))
                self.placement.remove(key, is_deleted=False)
            yield [*batch, _bookmark(version)]

    async def _gain(
        self, gained: frozenset[int], version: str
    ) -> AsyncIterator[tuple[str, list[WatchEvent]]]:
        """List the slots that came. Yields ADDED events, each batch with the version of the list as far as known.

        An earlier list of these slots may have broken off: DELETED events follow for its objects that are gone.
        """
        newest = ""
        options = ListOptions(
            resource_version=version, resource_version_match="NotOlderThan" if version else ""
        )
        listed = Placement(self._grouping, self._share.count)
        async for piece in self._list_slots(gained, options, listed):
            newest = piece.resource_version or newest
            items = list(piece.items)
            for begin in range(0, len(items) or 1, BATCH):
                batch = [WatchEvent(ADDED, item) for item in items[begin : begin + BATCH]]
                for event in batch:
                    if isinstance(event.object, KubeObject):
                        key = event.object.key
                        self.placement.put(key, listed[key])
                if version:
                    batch.append(_bookmark(version))
                yield newest, batch
        gone = [key for key in self.placement.keys_in(gained) if key not in listed]
        deleted = [WatchEvent(DELETED, self._last_state(key)) for key in gone]
        for key in gone:
            self.placement.remove(key, is_deleted=key not in listed.moved)
        yield newest, [*deleted, _bookmark(version or newest)]

    def _last_state(self, key: str) -> Any:
        """Return an object from the store; of one that is not there only its key is known."""
        obj = None if self._store is None else self._store.find_any(key)
        if obj is not None:
            return obj
        namespace, _, name = key.rpartition("/")
        return KubeObject.from_dict({"metadata": {"namespace": namespace, "name": name}})


def _head_of(value: Any, piece: ListResult | None = None) -> KubeObject | None:
    """Return an item or an event's object as a KubeObject; None if it cannot be read."""
    if isinstance(value, KubeObject):
        return value
    try:
        return KubeObject.from_bytes(value, None if piece is None else piece.type_meta)
    except (DecodeError, TypeError):
        return None


def _bookmark(version: str) -> WatchEvent:
    """Return the event that takes the reflector back to the version up to which it has everything."""
    return WatchEvent(BOOKMARK, {"metadata": {"resourceVersion": version}})
