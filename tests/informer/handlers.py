"""A handler that checks each call against the calls before it."""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer import DeletedFinalStateUnknown, KubeObject


class Follower:
    """A handler that keeps a copy of the objects, and records calls that do not fit it.

    Args:
        seconds: The duration of each call.
        raises: Raise in every call whose number is a multiple of this.

    Attributes:
        copy: The version of each object by key.
        calls: ``"add a 1"``, ``"update a 1 2"``, ``"delete a 2"``, ``"tombstone a 2"``, by name.
        resyncs: Updates with equal versions.
        wrong: The calls that did not fit the copy.
    """

    def __init__(self, seconds: float = 0.0, raises: int = 0) -> None:
        self.copy: dict[str, str] = {}
        self.calls: list[str] = []
        self.initial: list[bool] = []
        self.resyncs = 0
        self.wrong: list[str] = []
        self._seconds = seconds
        self._raises = raises
        self._busy = False

    async def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._expect(obj.key not in self.copy, f"added twice: {obj}")
        self.copy[obj.key] = obj.resource_version
        self.initial.append(is_in_initial_list)
        await self._end(f"add {obj.name} {obj.resource_version}")

    async def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._expect(self.copy.get(new.key) == old.resource_version, f"not the cached version: {old}, {new}")
        self._expect(
            int(old.resource_version) <= int(new.resource_version), f"the version goes back: {old}, {new}"
        )
        self.resyncs += old.resource_version == new.resource_version
        self.copy[new.key] = new.resource_version
        await self._end(f"update {new.name} {old.resource_version} {new.resource_version}")

    async def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        self._expect(obj.key in self.copy, f"deleted but never added: {obj}")
        self.copy.pop(obj.key, None)
        if isinstance(obj, DeletedFinalStateUnknown):
            await self._end(f"tombstone {obj.key.partition('/')[2]} {obj.obj and obj.obj.resource_version}")
        else:
            await self._end(f"delete {obj.name} {obj.resource_version}")

    async def _end(self, call: str) -> None:
        """Record a call; calls must not overlap (C56)."""
        self._expect(not self._busy, f"overlaps another call: {call}")
        self._busy = True
        self.calls.append(call)
        if self._seconds:
            await asyncio.sleep(self._seconds)
        self._busy = False
        if self._raises and len(self.calls) % self._raises == 0:
            raise ValueError(call)

    def _expect(self, condition: bool, problem: str) -> None:
        if not condition:
            self.wrong.append(problem)

    def __repr__(self) -> str:
        return "a follower"
