"""Bugs that are planted to see whether the simulation finds them: a piece of the package each, and what to put there.

What stands there changes now and then. A mutant whose place is not there, or not once, is stale: the run then begins
with none, and `test_mutants.py` fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class StaleMutantError(LookupError):
    """The piece of code that a mutant changes is not there, or more than once."""


class Mutant(NamedTuple):
    """A bug.

    Attributes:
        name: What is wrong.
        file: Where, in the package.
        code: What stands there, once.
        instead: What the bug has there.
        caught: By which error; "" where it survives.
        why: Why it survives.
    """

    name: str
    file: str
    code: str
    instead: str
    caught: str = "AssertionError"
    why: str = ""

    def plant(self, package: Path) -> str:
        """The file's text with the bug in it.

        Args:
            package: Where `aioinformer` is.

        Raises:
            StaleMutantError: The piece of code is not there once.
        """
        text = (package / self.file).read_text()
        if (times := text.count(self.code)) != 1:
            raise StaleMutantError(f"{self.name}: {self.file} has it {times} times, not once:\n{self.code}")
        return text.replace(self.code, self.instead)


MUTANTS = [
    Mutant(
        "lost tombstone (delta)",
        "fifo/delta_fifo.py",
        "for missing in self._missing(staged.items, unstaged):",
        "for missing in ():",
    ),
    Mutant(
        "lost tombstone (real)",
        "controller/deltas.py",
        "            gone[key] = DeleteNotification(",
        "            pass\n            _ = DeleteNotification(",
    ),
    Mutant(
        "replace deletes other namespaces' objects",
        "informer/shared_informer.py",
        "part = None if len(self.list_watches) == 1 else _Namespace(self._indexer, namespace)",
        "part = None",
    ),
    Mutant(
        "missed notify: a late handler is not told what is there",
        "informer/shared_informer.py",
        "listener.add_all([AddNotification(obj, True) for obj in self._indexer.list()])",
        "pass",
    ),
    Mutant(
        "a late handler is told of the middle of a list twice",
        "informer/distributor.py",
        "            self._tell(notifications, listeners)\n",
        "            self._tell(notifications)\n",
        caught="",
        why="Few histories add a handler between two turns of one list. tests/informer/test_real_queue.py does.",
    ),
    Mutant(
        "a handler has never synced, where an initial add waited with a change",
        "processor/backlog.py",
        "AddNotification(then.obj, first.is_in_initial_list)",
        "AddNotification(then.obj, False)",
    ),
    Mutant(
        "a handler that raises CancelledError ends its listener",
        "processor/listener.py",
        "is_last = task.cancelling() > 0 and self._is_to_end()",
        "is_last = isinstance(error, asyncio.CancelledError)",
    ),
    Mutant(
        "a removed handler is still told",
        "processor/listener.py",
        "            self._stopping = True\n",
        "",
    ),
    Mutant(
        "stale resync (delta)",
        "fifo/delta_fifo.py",
        "if key not in self.items and (obj := self._known.state(key)) is not None:\n                staged",
        "if (obj := self._known.state(key)) is not None:\n                staged",
    ),
    Mutant(
        "a resync is told to all",
        "processor/processor.py",
        "            listener.add_all(notifications if self._syncing.get(listener) else news)",
        "            listener.add_all(notifications)",
    ),
    Mutant(
        "synced before the first list was worked off (delta)",
        "fifo/delta_fifo.py",
        "return self.populated and not self.initial_waiting and not self.initial_popped",
        "return self.populated",
    ),
    Mutant(
        "synced before the first list was worked off (real)",
        "fifo/real_fifo.py",
        "return self.populated and self._done >= self._initial_end",
        "return self.populated",
    ),
    Mutant(
        "synced once the first namespace has",
        "informer/shared_informer.py",
        "all(controller.has_synced() for controller in self._controllers)",
        "any(controller.has_synced() for controller in self._controllers)",
    ),
    Mutant(
        "a handler has synced before it was told",
        "processor/listener.py",
        "return self._upstream_synced() and not self._left_early and self._initial_pending == 0",
        "return self._upstream_synced()",
    ),
    Mutant(
        "leaked task: the processor outlives the informer",
        "informer/shared_informer.py",
        "        finally:\n            self._record_end()\n            await self._end_handlers(processor)",
        "        finally:\n            self._record_end()\n            # await self._end_handlers(processor)",
        "LeakError",
    ),
    Mutant(
        "leaked task: what first_of began goes on",
        "tasks.py",
        "        try:\n            await finish(*tasks)\n        finally:",
        "        try:\n            pass\n        finally:",
        "LeakError",
    ),
    Mutant(
        "leaked stream after a watch",
        "reflector/reflector.py",
        "            await watch.aclose()\n        return None",
        "        return None",
        "LeakError",
    ),
    Mutant(
        "leaked stream after a WatchList that failed",
        "reflector/reflector.py",
        "            await watch.aclose()\n            raise\n        return watch",
        "            raise\n        return watch",
        "LeakError",
    ),
    Mutant(
        "leaked list that broke off",
        "reflector/listing.py",
        "            if close is not None:\n                await close()",
        "            pass",
        "",
        "It is collected, and the loop closes it.",
    ),
    Mutant(
        "version ahead of the store",
        "reflector/reflector.py",
        "        watch.from_any = changes.from_any\n",
        "        watch.from_any = changes.from_any\n"
        "        self._last_version = changes.version or self._last_version\n",
    ),
    Mutant(
        "version ahead of the store after a list",
        "reflector/reflector.py",
        "    async def _replace(self, listed: Listed) -> None:\n",
        "    async def _replace(self, listed: Listed) -> None:\n        self._last_version = listed.resource_version\n",
    ),
    Mutant(
        "a bookmark is an update",
        "reflector/event_decoder.py",
        "            delta_type = DELTA_TYPES.get(kind)",
        "            delta_type = DELTA_TYPES.get(kind, DeltaType.UPDATED if kind == BOOKMARK else None)",
    ),
    Mutant(
        "bookmarks move no version",
        "reflector/event_decoder.py",
        "            if not from_any:\n                newest, newest_raw = obj, event.object",
        "            if not from_any and kind != BOOKMARK:\n                newest, newest_raw = obj, event.object",
        "",
        "It costs lists, and loses nothing: the rest is told as before.",
    ),
    Mutant(
        "any bookmark ends the initial events",
        "reflector/initial.py",
        'if annotations.get(INITIAL_EVENTS_END) != "true":',
        "if False:",
        "",
        "Any bookmark says that all up to it was sent, so what was gathered is as good as at the closing one.",
    ),
    Mutant(
        "no list after 410 in the stream",
        "reflector/next_step.py",
        "        if error.is_too_many_requests or (error.is_internal_error and retry_internal_error):",
        "        if error.is_too_many_requests or not error.is_internal_error or retry_internal_error:",
    ),
    Mutant(
        "events behind the closing bookmark are lost",
        "reflector/reflector.py",
        "watch.put_back(rest)",
        "pass",
    ),
    Mutant(
        "deletions among the initial events are overlooked",
        "reflector/initial.py",
        "            part.pop(key, None)",
        "            pass",
    ),
    Mutant(
        "a refused version is asked for again",
        "reflector/reflector.py",
        "            # The server refused the version, not the list: ask for the most recent state at once.\n"
        "            self._versions.unavailable = True",
        "            # The server refused the version, not the list: ask for the most recent state at once.",
        "",
        "Lists are streamed, whose refusal says so first. tests/reflector/test_reflector.py lists at such versions.",
    ),
    Mutant(
        "half-open watches are not noticed",
        "reflector/watch.py",
        "        until = min(end, quiet if deadline is None else deadline)\n",
        "        until = now + 1e9\n",
    ),
    Mutant(
        "lists that are never answered are waited for",
        "reflector/listing.py",
        "                seconds, lambda: IdleTimeoutError(",
        "                None, lambda: IdleTimeoutError(",
        "",
        "The Client has a timeout of its own.",
    ),
    Mutant(
        "a watch begins anywhere",
        "reflector/reflector.py",
        "watch = await self._open(self._last_version)",
        'watch = await self._open("")',
    ),
    Mutant(
        "pages after the first are lost",
        "reflector/listing.py",
        "                pieces.append(tuple(await self._decode(piece)))",
        "                pieces.append(tuple(await self._decode(piece)) if not options.continue_token else ())",
    ),
    Mutant(
        "an expired continue token ends the list",
        "reflector/listing.py",
        "                listed = await self.list(resource_version, 0)",
        "                listed.resource_version = listed.resource_version or resource_version",
    ),
    Mutant(
        "an update shows the new object as the old one",
        "controller/deltas.py",
        "            yield AddNotification(obj, is_in_initial_list) if old is None else UpdateNotification(old, obj)\n"
        "            continue\n        last",
        "            yield AddNotification(obj, is_in_initial_list) if old is None else UpdateNotification(obj, obj)\n"
        "            continue\n        last",
    ),
    Mutant(
        "a handler that raises ends its listener",
        "processor/listener.py",
        "is_last = task.cancelling() > 0 and self._is_to_end()",
        "is_last = isinstance(error, Exception)",
    ),
    Mutant(
        "one waiter is woken, not all",
        "fifo/queue.py",
        "        if depth or self._held_up or self._closed:\n            self._changed.notify_all()",
        "        if depth or self._held_up or self._closed:\n            self._changed.notify()",
        "",
        "In an informer one task alone waits for items.",
    ),
    Mutant(
        "nobody is woken by what is queued",
        "fifo/queue.py",
        "        if depth or self._held_up or self._closed:\n            self._changed.notify_all()",
        "",
    ),
    Mutant(
        "what is worked off in the step that adds it is never over",
        "fifo/queue.py",
        "            self._record_worked_off()\n\n    async def _work_off(",
        "            pass\n\n    async def _work_off(",
    ),
    Mutant(
        "a deletion swallows what came before it is processed (delta)",
        "fifo/delta_fifo.py",
        "    if not deltas or deltas[-1].type != DELETED or delta.type != DELETED:",
        "    if not deltas or deltas[-1].type != DELETED:",
    ),
    Mutant(
        "no back-off",
        "reflector/reflector.py",
        "        await self._retry.wait()",
        "        await asyncio.sleep(0)",
    ),
    Mutant(
        "a coalesced deletion is forgotten",
        "processor/backlog.py",
        "        case UpdateNotification(), DeleteNotification():\n            return (then,)",
        "        case UpdateNotification(), DeleteNotification():\n            return (first,)",
    ),
    Mutant(
        "a full handler blocks for ever",
        "processor/listener.py",
        "        if self._limit is not None and not self.is_full:\n            self._room.set()",
        "",
    ),
    Mutant(
        "a line torn between two chunks is lost",
        "listwatch/lines.py",
        "        return taken + data if data else taken",
        "        return data",
    ),
    Mutant(
        "the store forgets what it replaces (updates become adds)",
        "store/store.py",
        "        old = part.get(key)\n",
        "        old = None\n",
    ),
    Mutant(
        "the store keeps what was deleted",
        "store/store.py",
        "        old = part.pop(key, None)\n",
        "        old = part.get(key)\n",
    ),
    Mutant(
        "the store keeps what it has, once it has it",
        "store/store.py",
        "        part[key] = kept",
        "        part.setdefault(key, kept)",
    ),
    Mutant(
        "a list of one namespace replaces all",
        "store/store.py",
        "        if instead_of is None:\n",
        "        if True:\n",
    ),
    Mutant(
        "a list of one namespace leaves what is gone",
        "store/store.py",
        "            for key in instead_of:\n                self._forget(key)\n",
        "",
    ),
    Mutant(
        "an index keeps what was deleted",
        "store/indexer.py",
        "            index.remove(key)\n",
        "            pass\n",
    ),
    Mutant(
        "an index lists nothing that comes",
        "store/indexer.py",
        "        for index in self._indexes.values():\n            index.put(key, obj, rejected)\n",
        "",
    ),
    Mutant(
        "an index stays as it was when all is replaced",
        "store/indexer.py",
        "            index.take_over(fresh._indexes[name], instead_of)\n",
        "            pass\n",
    ),
    Mutant(
        "a batch goes past the end of the first list (delta)",
        "fifo/delta_fifo.py",
        "                if not left:\n                    break\n",
        "",
        "",
        "A change would have to be queued between the first list and its being worked off, which follows at once.",
    ),
    Mutant(
        "a batch goes past the end of the first list (real)",
        "fifo/real_fifo.py",
        "        if self._taken < self._initial_end:\n            most = ",
        "        if False:\n            most = ",
        "",
        "In an informer the first list is one delta, which is a batch by itself.",
    ),
    Mutant(
        "two changes of one object in a batch change places",
        "fifo/real_fifo.py",
        "        item = Item(deltas, not self.has_synced())\n        self._taken",
        "        item = Item(deltas[::-1], not self.has_synced())\n        self._taken",
        "",
        "A batch has each object once, and between objects only the order of what handlers are told changes, "
        "which the oracle's scripts compare.",
    ),
    Mutant(
        "a batch loses its last delta",
        "fifo/delta_fifo.py",
        "            deltas += of_key\n",
        "            deltas += of_key[:1]\n",
    ),
    Mutant(
        "what is queued for a key is replaced, not added to (delta)",
        "fifo/delta_fifo.py",
        "self.items[key] = _appended(deltas, delta)",
        "self.items[key] = (delta,)",
    ),
    Mutant(
        "a deletion of what is known is dropped (delta)",
        "fifo/delta_fifo.py",
        "if is_deletion and deltas is None and not self._known.has(key):",
        "if is_deletion and deltas is None:",
    ),
    Mutant(
        "missed notify: of many notifications the last is lost",
        "processor/listener.py",
        "        self._pending.extend(news)\n",
        "        self._pending.extend(news[:-1] or news)\n",
    ),
    Mutant(
        "missed notify: a listener that sleeps is not woken",
        "processor/listener.py",
        "        if not self._pending:\n            self._wake.set()\n",
        "",
    ),
    Mutant(
        "a listener tells the newest first",
        "processor/listener.py",
        "notification, started = pending.popleft(), now",
        "notification, started = getattr(pending, 'pop', pending.popleft)(), now",
    ),
    Mutant(
        "a plain handler is told before what waits for it",
        "processor/listener.py",
        "self.context) or self._pending or self._stopping:",
        "self.context) or self._stopping:",
    ),
    Mutant(
        "a plain handler is told while its call runs",
        "processor/listener.py",
        "        self._is_idle = False\n        started",
        "        started",
        "",
        "Only a handler's own call can tell it of something meanwhile. tests/processor/test_telling.py does.",
    ),
    Mutant(
        "a plain handler that raises ends its informer",
        "processor/listener.py",
        "            self._record_failure(notification, error)\n        self._is_cancelled",
        "            raise\n        self._is_cancelled",
    ),
    Mutant(
        "stale resync: whoever comes late is told of resyncs that are not theirs",
        "processor/processor.py",
        "            listener.add_all(notifications if self._syncing.get(listener) else news)",
        "            listener.add_all(notifications if any(self._syncing.values()) else news)",
    ),
    Mutant(
        "a handler's resync is due for ever",
        "processor/processor.py",
        "            due = self._syncing[listener] = listener.should_resync(now)\n",
        "            due = self._syncing[listener] = self._syncing[listener] or listener.should_resync(now)\n",
        "",
        "It costs calls: who resyncs may be told at any time of what has not changed. "
        "tests/informer/test_resync.py counts them.",
    ),
    Mutant(
        "has_synced waits for a handler that blocks",
        "informer/distributor.py",
        "        await apply_in_turns(self._indexer, delta, is_in_initial_list, tell, known)\n",
        "        await apply_in_turns(self._indexer, delta, is_in_initial_list, tell, known)\n"
        "        if (room := self._processor.room()) is not None:\n            await room\n",
        "",
        "It comes late, by as long as one call takes, and a history does not say how soon it must.",
    ),
    Mutant(
        "nobody waits for a handler that blocks",
        "informer/distributor.py",
        "            room = self._processor.room()\n            return (",
        "            room = None\n            return (",
        "",
        "What waits is not bounded then, and nothing is lost: "
        "tests/informer/test_real_queue.py looks at how much waits.",
    ),
    Mutant(
        "a listener that has ended takes what comes",
        "processor/listener.py",
        "        finally:\n            self.stop()\n            begun",
        "        finally:\n            begun",
        "",
        "Its tasks have ended all the same, and what comes later is thrown away with it.",
    ),
]
