"""Play scripts with our SharedIndexInformer, as ``v030/informer/run_test.go`` does with client-go's."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

from aioinformer import (
    ApiError,
    DeletedFinalStateUnknown,
    KubeObject,
    Registration,
    SharedIndexInformer,
    StoppedError,
    TransportError,
)
from aioinformer._core.tasks import finish
from aioinformer.errors import IndexerConflictError
from aioinformer.store import IndexFunc

from ..samples import SMALL
from .informer_script import (
    SETTLING,
    Call,
    Point,
    Script,
    Step,
    Trace,
    WatchError,
)
from .informer_server import ScriptedServer, error_of, event_of, list_of

A_MOMENT = 1e-9
"""Seconds of a step; virtual time passes only when no task is ready."""

NEVER = 1e9
"""Seconds of timeouts, long enough that none of them ends a script's request."""


async def play(script: Script, queue: Literal["delta", "real"]) -> Trace:
    """Play a script; the running loop's time is virtual."""
    return await _Run(script, queue).play()


class _Run:
    def __init__(self, script: Script, queue: Any) -> None:
        self._script = script
        self._loop = asyncio.get_running_loop()
        self._begin = self._loop.time()
        self._server = ScriptedServer(script.watch_list)
        self._informer: SharedIndexInformer[KubeObject] = SharedIndexInformer(
            self._server,
            KubeObject,
            script.resync,
            {name: self._index_func(name) for name in script.indexes},
            queue=queue,
            compress=SMALL if len(script.steps) % 2 else False,  # must not change the trace
            min_watch_timeout=NEVER,
            list_timeout=NEVER,
            initial_events_timeout=NEVER,
            max_silence=NEVER,
        )
        self._informer.set_watch_error_handler(lambda _, error: self._failures.append(_error_text(error)))
        if script.transform:
            self._informer.set_transform(_transform)
        self._handlers: dict[int, _Handler] = {}
        self._task: asyncio.Task[None] | None = None
        self._answering = self._synced = self._early = False  # of the first list
        self._failures: list[str] = []
        self._points: list[Point] = []
        self._errors: list[WatchError] = []

    async def play(self) -> Trace:
        try:
            for number, step in enumerate(self._script.steps):
                self._answering = step.do == "list"
                applied, result, unsettled = await self._do(step)
                await asyncio.sleep(SETTLING if unsettled else A_MOMENT)
                if unsettled:
                    await asyncio.sleep(A_MOMENT)
                for handler in self._handlers.values():
                    handler.end_step(number)
                self._points.append(self._point(number, applied, result))
                self._errors += [WatchError(number, text) for text in self._failures]
                self._failures.clear()
            self._release()
            await asyncio.sleep(A_MOMENT)
        finally:
            await self._halt()
        for handler in self._handlers.values():
            handler.end_step(len(self._script.steps))
        return Trace(
            self._points, {name: self._handlers[name].calls for name in self._handlers}, self._errors
        )

    async def _do(self, step: Step) -> tuple[bool, str, bool]:
        handler = self._handlers.get(step.handler)
        server, state = self._server, self._server.state
        match step.do:
            case "start" if self._task is None:
                self._task = self._informer.begin()
            case "stop" if self._task is not None:
                self._release()
                await asyncio.sleep(A_MOMENT)
                await self._halt()
            case "add_handler":
                return True, self._add_handler(step), False
            case "remove_handler" if handler is not None:
                self._informer.remove_event_handler(handler.registration)
            case "hold" if handler is not None:
                handler.gate.clear()
            case "release" if handler is not None:
                handler.gate.set()
            case "add_indexers":
                return True, self._add_indexers(step.index), False
            case "wait":
                await asyncio.sleep(step.seconds)
            case "list" if state == "list" and (server.pages_wanted or not step.token):
                server.reply(list_of(step) if step.error is None else error_of(step.error))
                return True, "", step.error is not None
            case "open" if state == "watch" and step.error is not None:
                server.reply(error_of(step.error))
                return True, "", True
            case "open" if state == "watch":
                server.open()
                return True, "", await self._send(step)
            case "events" if state == "stream":
                return True, "", await self._send(step)
            case _:
                return False, "", False
        return True, "", False

    async def _send(self, step: Step) -> bool:
        stream = self._server.stream
        assert stream is not None
        if step.events:
            stream.put([event_of(event) for event in step.events])
        await asyncio.sleep(A_MOMENT)
        if step.end and not stream.closed:
            stream.put(TransportError("cut") if step.end == "cut" else None)
            await asyncio.sleep(A_MOMENT)
        return stream.closed > 0

    def _add_handler(self, step: Step) -> str:
        if step.handler in self._handlers:
            return "taken"
        handler = _Handler(self._begin)
        try:
            handler.registration = self._informer.add_event_handler(handler, step.resync)
        except StoppedError:
            return "stopped"
        self._handlers[step.handler] = handler
        return ""

    def _add_indexers(self, name: str) -> str:
        try:
            self._informer.add_indexers({name: self._index_func(name)})
        except StoppedError:
            return "stopped"
        except IndexerConflictError:
            return "conflict"
        return ""

    def _index_func(self, name: str) -> IndexFunc[KubeObject]:
        """Return an index by the color, or by each letter of it."""

        def values(obj: KubeObject) -> list[str]:
            self._early |= self._answering and not self._synced and self._informer.has_synced()
            color = obj.metadata.labels["color"]
            return list(color) if name == "letters" else [color]

        return values

    def _release(self) -> None:
        for handler in self._handlers.values():
            handler.gate.set()

    async def _halt(self) -> None:
        if self._task is not None:
            await finish(self._task)
            if not self._task.cancelled():
                self._task.result()

    def _point(self, number: int, applied: bool, result: str) -> Point:
        informer, server = self._informer, self._server
        requests, server.requests = server.requests, []
        indexer = informer.indexer
        self._synced = informer.has_synced()
        return Point(
            step=number,
            applied=applied,
            result=result,
            time=self._loop.time() - self._begin,
            requests=requests,
            state=server.state,
            streams=server.open_streams,
            synced=self._synced,
            early=self._early,
            handlers={name: self._handlers[name].registration.has_synced() for name in self._handlers},
            version=informer.last_sync_resource_version,
            stopped=informer.is_stopped,
            store={obj.key: _text(obj) for obj in indexer.list()},
            indexes={
                f"{name} {value}": indexer.index_keys(name, value)
                for name in indexer.indexers
                for value in indexer.list_index_func_values(name)
            },
        )


class _Handler:
    """Records its calls, and does not return while it is held."""

    registration: Registration

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._noted: list[Call] = []
        self.calls: list[Call] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        await self._note("initial" if is_in_initial_list else "add", obj.key, "", _text(obj))

    async def on_update(self, old: KubeObject, new: KubeObject) -> None:
        await self._note("update", new.key, _text(old), _text(new))

    async def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            await self._note("tombstone", obj.key, "" if obj.obj is None else _text(obj.obj), "")
        else:
            await self._note("delete", obj.key, _text(obj), "")

    async def _note(self, kind: str, key: str, old: str, new: str) -> None:
        time = asyncio.get_running_loop().time() - self._begin
        synced = kind == "initial" and self.registration.has_synced()
        self._noted.append(Call(-1, time, kind, key, old, new, synced))
        if not self.gate.is_set():
            await self.gate.wait()

    def end_step(self, step: int) -> None:
        """Assign all calls since the last step to this step."""
        for call in self._noted:
            self.calls.append(Call(step, call.time, call.kind, call.key, call.old, call.new, call.synced))
        self._noted.clear()


def _text(obj: KubeObject) -> str:
    return f"{obj.resource_version}/{obj.uid}/{obj.metadata.labels['via']}"


def _error_text(error: Exception) -> str:
    if isinstance(error, ApiError):
        return f"{error.status} {error.reason}"
    return "transport" if isinstance(error, TransportError) else "other"


def _transform(obj: KubeObject) -> KubeObject:
    changed = obj.to_dict()
    changed["metadata"]["labels"]["via"] += "~"
    return KubeObject.from_bytes(json.dumps(changed).encode())
