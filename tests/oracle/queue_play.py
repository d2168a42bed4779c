"""Play a script with our queue, and derive the script and the expected trace for client-go.

Both sides get the same script and must leave the same trace, except for the differences in differences.py. Each
difference is handled here in one place: either client-go gets another operation, or another trace is expected.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from aioinformer import DeletedFinalStateUnknown, DeltaFIFO, ListOptions, ListWatch
from aioinformer.cache import Config, Controller, Delta, DeltaType
from aioinformer.protocols import Process

from .differences import Difference
from .queue_objects import fails_to_transform, is_keyless, key_of, show, show_deltas
from .queue_rules import StoreVersion, Synced
from .queue_script import Op, QueueScript
from .queue_subject import Call, FedFIFO, Subject, Work

NOTHING: Op = ["nothing"]


class Play:
    """A played script.

    Attributes:
        script: The script that our side played.
        upstream: The script for client-go.
        lines: Our trace.
        expected: The start of the trace that client-go must leave.
        differences: The known differences that were met.
    """

    def __init__(self, script: QueueScript, version: str) -> None:
        """``version`` is client-go's: ``"v030"`` or ``"v036"``."""
        self.script = script
        self.lines: list[str] = []
        self.expected: list[str] = []
        self.differences: set[Difference] = set()
        self.subject = Subject(script, self.some)
        self._version = version
        self._ops = list(reversed(script.ops))
        self._upstream_ops: list[Op] = []
        self._synced = Synced()
        self._store_version = StoreVersion(self.subject)
        self._has_ended = False
        self._left_out = 0  # objects for which only our transformer was called

    @property
    def upstream(self) -> QueueScript:
        return msgspec.structs.replace(self.script, ops=self._upstream_ops)

    async def run(self) -> None:
        """Play the whole script."""
        try:
            if self.script.controller:
                await self._run_controller()
            else:
                await self.some(len(self._ops))
            self._finish()
        except Exception:  # reported like any other difference
            self.lines.append(traceback.format_exc())
            self.expected.append("no crash")

    async def some(self, count: int) -> None:
        """Play a number of the next operations."""
        while count and self._ops and not self._has_ended:
            op = self._ops.pop()
            if op[0] == "drain":
                await self._drain(op)
            elif op[0].startswith("pop"):
                await self._pop(op)
            else:
                await self.change(op)
            count -= 1

    async def change(self, op: Op) -> None:
        """Play an operation that does not pop."""
        asked, wanted, said = self._translate(op)
        outcome = await self.subject.do(op)
        self._upstream_ops.append(asked)
        self._synced.record_change(self.subject, op, outcome)
        # The known difference is `wanted` here and `said` in client-go; everything else must be equal.
        self._note(outcome, said if outcome == wanted else outcome)

    async def _pop(self, op: Op) -> None:
        if (reason := self.subject.cannot_pop()) is not None:
            self._upstream_ops.append(op)
            self._note(reason, reason)
            return
        at = len(self._upstream_ops)
        self._upstream_ops.append(op)
        outcome, work = await self.subject.pop(op)
        if work.is_put_back and self.script.delta is False and work.deltas:
            self._upstream_ops[at] = NOTHING
            self.differences.add(Difference.PUT_BACK)
            self._note(outcome, "ok")
            return
        self.record_pop(outcome, work)

    async def _run_controller(self) -> None:
        """Let a Controller pop; play the operations before each pop just before it."""
        fifo = self.subject.delta
        assert isinstance(fifo, FedFIFO)
        work = Work(self.subject, "drop")

        async def feed(process: Process) -> None:
            nonlocal work
            work = Work(self.subject, "drop")
            while self._ops:
                op = self._ops.pop()
                if not op[0].startswith("pop"):
                    await self.change(op)
                    continue
                self._upstream_ops.append(op)
                if len(fifo):
                    work = Work(self.subject, op[1])
                    break
            else:
                fifo.close()
            await fifo.pop(process)
            self.record_pop("pop", work)

        def process(deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
            return work.process(deltas, is_in_initial_list)

        fifo.feed = feed
        config = Config(
            fifo,
            ListWatch(_never, _never),
            process,
            None,
            retry_on_error=self.script.retry,
        )
        await Controller(config).process_loop()

    async def _drain(self, op: Op) -> None:
        self._upstream_ops.append(op)
        if self.subject.cannot_pop() == "is processing":
            self._note("is processing", "is processing")
            return
        work: Work | None = None

        def process(deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
            nonlocal work
            if work is not None:
                self.subject.taken = deltas
                self.record_pop("ok", work)
                self.subject.taken = []
            work = Work(self.subject, op[1])
            return work.process(deltas, is_in_initial_list)

        while len(self.subject.fifo):
            await self.subject.fifo.pop_batch(process)
        if work is not None:
            self.record_pop("ok", work)

    def record_pop(self, outcome: str, work: Work) -> None:
        """Record a pop."""
        if not work.deltas:
            self._note(outcome, outcome)
            return
        if work.applies:
            self._store_version.record_applied(work)
        batch = " batch" if work.is_batch else ""
        deltas = show_deltas(work.deltas)
        ours = [entry.text for entry in work.calls]
        initial = work.is_in_initial_list
        upstream_initial = self._synced.record_pop(self.subject, work)
        theirs = self._calls_of_upstream(work, upstream_initial)
        self._note(
            f"{outcome}{batch} {'*' if initial else ''}{deltas} -> {', '.join(ours)}",
            f"{outcome}{batch} {'*' if upstream_initial else ''}{deltas} -> {', '.join(theirs)}",
        )

    def _note(self, ours: str, theirs: str) -> None:
        """End an operation: record our result, the result expected of client-go, and the state."""
        queued = "; ".join(self.subject.list_queued())
        synced = self.subject.describe_synced()
        upstream_synced = synced
        if self._synced.differs:
            self.differences.add(Difference.SYNCED)
            upstream_synced = self._synced.upstream(synced)
        self.lines.append(f"{ours} | {queued} | {synced}")
        if not self._has_ended:
            self.expected.append(f"{theirs} | {queued} | {upstream_synced}")

    def _finish(self) -> None:
        store = " ".join([show(self.subject.store.get_by_key(key)) for key in self.subject.store.list_keys()])
        ours = theirs = store
        if self._version == "v036":
            version = self.subject.store.last_store_sync_resource_version
            upstream_version = self._store_version.upstream(version)
            if version != upstream_version:
                self.differences.add(Difference.STORE_VERSION)
            ours = f"{store} | {self.subject.transformer.calls} | {version}"
            theirs = f"{store} | {self.subject.transformer.calls - self._left_out} | {upstream_version}"
        self.lines.append(ours)
        if not self._has_ended:
            self.expected.append(theirs)

    def _translate(self, op: Op) -> tuple[Op, str, str]:
        """Return the operation for client-go; and its result where ours is ``what``."""
        name, *args = op
        if name in ("add", "update", "delete") and is_keyless(args[0]):
            return self._translate_refused(op)
        if name == "delete":
            return self._translate_delete(args[0])
        if name == "replace" and any(is_keyless(text) or self._fails(text) for text in args[1:]):
            return self._translate_list(args[0], args[1:])
        return op, "ok", "ok"

    def _translate_refused(self, op: Op) -> tuple[Op, str, str]:
        """After an add without a key, client-go's queue counts as one without an initial list."""
        if self._synced.is_populated or (op[0] == "delete" and self.script.delta):
            return op, "key", "key"
        self.differences.add(Difference.REFUSED)
        return NOTHING, "key", "ok"

    def _translate_delete(self, text: str) -> tuple[Op, str, str]:
        if self.script.transform and self._fails(text):
            self.differences.add(Difference.TRANSFORMER)
            return ["delete-as-it-is", text], "transform", "ok"
        if text.startswith("?") and "=" not in text and self.subject.delta is not None:
            last = self._last_state(self.subject.delta, text[1:])
            if last is not None:
                self.differences.add(Difference.TOMBSTONE)
                return ["delete", f"{text}={show(last)}"], "ok", "ok"
        return ["delete", text], "ok", "ok"

    def _translate_list(self, version: str, texts: Sequence[str]) -> tuple[Op, str, str]:
        """Leave rejected objects out of the list for client-go.

        If such an object was known before, client-go would consider it deleted, and the rest could not be compared.
        """
        bad = [text for text in texts if is_keyless(text) or self._fails(text)]
        good = [text for text in texts if text not in bad]
        failing = {key_of(text) for text in bad if not is_keyless(text)} - {key_of(text) for text in good}
        self._left_out += sum(not is_keyless(text) for text in bad)
        if failing:
            self.differences.add(Difference.TRANSFORMER)
        if any(is_keyless(text) for text in bad):
            self.differences.add(Difference.BAD_OBJECT)
        there = set(self.subject.known.list_keys() if self.subject.known else ())
        there.update(text.partition(" ")[0] for text in self._queued_keys())
        is_left_out = any(not is_keyless(text) for text in bad)
        if failing & there or (is_left_out and self.script.atomic):
            self._has_ended = True
        return ["replace", version, *good], "key" if is_keyless(bad[0]) else "transform", "ok"

    def _fails(self, text: str) -> bool:
        return self.script.transform and fails_to_transform(text)

    def _queued_keys(self) -> list[str]:
        if self.subject.delta is not None:
            return self.subject.delta.list_keys()
        assert self.subject.real is not None
        return [
            self.subject.real.key_of(delta.object)
            for delta in self.subject.real.queued
            if not self.script.atomic
        ]

    def _last_state(self, fifo: DeltaFIFO, key: str) -> Any:
        """Return the last known state of a deleted object: the newest queued one, or the stored one."""
        if (deltas := fifo.get_by_key(key)) is not None:
            newest = deltas[-1].object
            return newest.obj if isinstance(newest, DeletedFinalStateUnknown) else newest
        if self.subject.known is None or key in self.script.unreadable:
            return None
        return self.subject.known.get_by_key(key)

    def _calls_of_upstream(self, work: Work, is_in_initial_list: bool) -> list[str]:
        """Return client-go's handler calls where ours are these."""
        texts: list[str] = []
        listed: dict[str | None, Call] = {}
        for call in work.calls:
            if call.delta is None and call.verb != "delete":
                first = listed.setdefault(key_of(call.new), call)
                if first is not call and work.deltas[0].type is DeltaType.REPLACED_ALL:
                    self.differences.add(Difference.LISTED_TWICE)  # it reads the stored object first
                    call = call._replace(verb=first.verb, old=first.old)
            obj = None if call.delta is None else call.delta.object
            if isinstance(obj, DeletedFinalStateUnknown) and obj.obj is None and "=" in call.new:
                self.differences.add(Difference.TOMBSTONE)  # its program prints the stored object
                call = call._replace(new=call.new.replace("=", " stored ", 1))
            if call.verb == "add*" and not is_in_initial_list:
                call = call._replace(verb="add")
            texts.append(call.text)
        return texts


async def _never(options: ListOptions) -> Any:
    raise AssertionError("only the queue is at work")
