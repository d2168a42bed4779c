"""Bugs that are planted to see whether the simulation finds them: a piece of the package each, and what to put there.

What stands there changes now and then; a mutant that does not apply any more is called stale by the run.
"""

from __future__ import annotations

from typing import NamedTuple


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


MUTANTS = [
    Mutant(
        "lost tombstone (delta)",
        "fifo/delta_fifo.py",
        "for missing in self._missing(listed):",
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
        "part = None if len(self._list_watches) == 1 else _Namespace(self._indexer, namespace)",
        "part = None",
    ),
    Mutant(
        "missed notify: a late handler is not told what is there",
        "informer/shared_informer.py",
        "listener.add_all(AddNotification(obj, True) for obj in self._indexer.list())",
        "pass",
    ),
    Mutant(
        "a late handler is told of the middle of a list twice",
        "informer/distributor.py",
        "self._processor.distribute_among(listeners, notification, is_sync)",
        "self._processor.distribute(notification, is_sync)",
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
        "            if syncing or not is_sync:",
        "            if syncing or True:",
    ),
    Mutant(
        "synced before the first list was worked off (delta)",
        "fifo/delta_fifo.py",
        "return self.populated and not self.initial_population",
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
        "        finally:\n            self._note_end()\n            await finish(processor)",
        "        finally:\n            self._note_end()\n            # await finish(processor)",
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
        "        finally:\n            await watch.aclose()\n        return None",
        "        finally:\n            pass\n        return None",
        "LeakError",
    ),
    Mutant(
        "leaked stream after a WatchList that failed",
        "reflector/reflector.py",
        "        except BaseException:\n            await watch.aclose()\n            raise\n        return watch",
        "        except BaseException:\n            raise\n        return watch",
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
        "        watch.from_any = from_any\n",
        "        watch.from_any = from_any\n"
        "        self._last_version = resource_version_of(newest) or self._last_version\n",
    ),
    Mutant(
        "version ahead of the store after a list",
        "reflector/reflector.py",
        "        try:\n            await settle(self._store.replace(listed.objects, listed.resource_version))",
        "        self._last_version = listed.resource_version\n"
        "        try:\n            await settle(self._store.replace(listed.objects, listed.resource_version))",
    ),
    Mutant(
        "a bookmark is an update",
        "reflector/reflector.py",
        "            delta_type = DELTA_TYPES.get(kind)",
        "            delta_type = DELTA_TYPES.get(kind, DeltaType.UPDATED if kind == BOOKMARK else None)",
    ),
    Mutant(
        "bookmarks move no version",
        "reflector/reflector.py",
        "            if not from_any:\n                newest = obj",
        "            if not from_any and kind != BOOKMARK:\n                newest = obj",
        "",
        "It costs lists, and loses nothing: the rest is told as before.",
    ),
    Mutant(
        "any bookmark ends the initial events",
        "reflector/initial.py",
        'if bookmark.metadata.annotations.get(INITIAL_EVENTS_END) != "true":',
        "if False:",
        "",
        "No server sends another bookmark before the closing one.",
    ),
    Mutant(
        "no list after 410 in the stream",
        "reflector/watch.py",
        "        if error.is_too_many_requests or (error.is_internal_error and retry_internal_error):",
        "        if error.is_too_many_requests or not error.is_internal_error or retry_internal_error:",
    ),
    Mutant(
        "events behind the closing bookmark are lost",
        "reflector/reflector.py",
        "watch.give_back(rest)",
        "pass",
    ),
    Mutant(
        "deletions among the initial events are overlooked",
        "reflector/initial.py",
        "            self._objects.pop(key, None)",
        "            pass",
    ),
    Mutant(
        "a refused version is asked for again",
        "reflector/reflector.py",
        "            # The version is refused, not the list: ask for the most recent state at once.\n"
        "            self._versions.unavailable = True",
        "            # The version is refused, not the list: ask for the most recent state at once.",
    ),
    Mutant(
        "half-open watches are not noticed",
        "reflector/watch.py",
        "self._idle_timeout = timeout + IDLE_GRACE",
        "self._idle_timeout = 1e9",
    ),
    Mutant(
        "lists that are never answered are waited for",
        "reflector/listing.py",
        "timeout = asyncio.timeout(self._timeout)",
        "timeout = asyncio.timeout(None)",
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
        "                objects += await self._turn_in(piece)",
        "                objects += await self._turn_in(piece) if not options.continue_token else []",
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
        "except Exception as error:\n                        self._note_failure(notification, error)\n",
        "except Exception as error:\n                        raise\n",
    ),
    Mutant(
        "one waiter is woken, not all",
        "fifo/queue.py",
        "                self._note_synced()\n                self._changed.notify_all()",
        "                self._note_synced()\n                self._changed.notify()",
        "",
        "In an informer one task alone waits for items.",
    ),
    Mutant(
        "nobody is woken by what is queued",
        "fifo/queue.py",
        "                self._note_synced()\n                self._changed.notify_all()",
        "                self._note_synced()",
    ),
    Mutant(
        "a deletion swallows what came before it is processed (delta)",
        "fifo/delta_fifo.py",
        "    if not deltas or deltas[-1].type is not DELETED or delta.type is not DELETED:",
        "    if not deltas or deltas[-1].type is not DELETED:",
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
        "            if self._limit is not None and self.depth < self._limit:\n                self._room.set()",
        "            pass",
    ),
    Mutant(
        "a line torn between two chunks is lost",
        "listwatch/lines.py",
        "        self.size = 0\n        return data",
        '        self.size = 0\n        return b""',
    ),
]
