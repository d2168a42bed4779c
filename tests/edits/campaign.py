"""Random edits on a real server: what each has changed, compared with what it means."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from random import Random
from typing import Any

from aioinformer import Client, ConfigError
from aioinformer import Resource as Written
from aioinformer.errors import AmbiguousEditError, ApiError

from ..e2e.api import API, Resource
from .classes import View, class_of
from .editing import CHANGE, EVERY_STEP, Edit
from .kinds import BUILT_IN, EVERYTHING, EditedKind
from .nodes import normal

Value = dict[str, Any]

WORKERS = 6


class Campaign:
    """Makes random edits on a server that has the definition of ``EVERYTHING``.

    Args:
        api: Asks as the administrator.
        client: Of the administrator.
        namespace: Where.

    Attributes:
        outcomes: How often each verb had which outcome.
    """

    def __init__(self, api: API, client: Client, namespace: str) -> None:
        self._api = api
        self._client = client
        self._namespace = namespace
        self.outcomes: Counter[tuple[str, str]] = Counter()

    async def run(self, seeds: range) -> None:
        """Make one edit for each seed, several at once."""
        waiting = iter(seeds)

        async def work() -> None:
            for seed in waiting:
                random = Random(seed)
                verb = random.choice(["update", "update", "status", "apply"])
                try:
                    self.outcomes[verb, await self.edit(verb, random, f"edit-{seed}")] += 1
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}, {verb}: {error}") from error

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(work())

    async def edit(self, verb: str, random: Random, name: str) -> str:
        """Create an object, edit a part of it, check what that has changed, and return the outcome."""
        kind = EVERYTHING if verb == "status" else random.choice([EVERYTHING, *BUILT_IN])
        try:
            return await self._edit(kind, verb, random, name)
        finally:
            await self._api.ask("DELETE", self._path(kind, name))

    async def _edit(self, kind: EditedKind, verb: str, random: Random, name: str) -> str:
        part = "status" if verb == "status" else random.choice([*kind.parts, kind.parts[-1]])
        original = await self._create(kind, random, name)
        if original.get(part) is None:
            return "no such object"
        view = class_of(kind, part, random, has_defaults=verb != "apply")
        resource = Written(
            self._client, kind.api_version, kind.plural, view.type, kind=kind.kind, field_manager="edits"
        )
        typed = await resource.get(f"{self._namespace}/{name}")
        meant = copy.deepcopy(original)
        edit = Edit(random, frozenset([CHANGE]) if verb == "apply" else EVERY_STEP)
        edit.apply(view, typed, meant)
        if part not in meant or not edit.is_visible:
            return "looks like another edit"
        if verb == "apply" and edit.has_new_keys:
            return "looks like another edit"
        path = self._path(kind, name) + ("/status" if verb == "status" else "")
        wanted = await self._api.ask("PUT", path, meant, {"dryRun": "All"})
        text = f"{kind.kind} {part} {edit.log}\noriginal {json.dumps(original)}\nmeant {json.dumps(meant)}"
        error = await self._write(resource, verb, typed)
        if error is not None:
            applied = original if verb == "apply" else None
            assert self._may_raise(error, edit, wanted.status, view, applied), f"{error}\n{text}"
            now = await self._api.do("GET", self._path(kind, name))
            assert now == original, f"{error}\n{json.dumps(now)}\n{text}"
            return "refused" if isinstance(error, ConfigError) else "refused by the server"
        assert wanted.status == 200, f"{wanted.body}\n{text}"
        now = await self._api.do("GET", self._path(kind, name))
        as_written = view.fill if edit.may_get_defaults else lambda value: value
        assert _plain(kind, as_written(now)) == _plain(kind, as_written(wanted.body)), (
            f"{json.dumps(now)}\n{text}"
        )
        return "changed" if _plain(kind, now) != _plain(kind, original) else "unchanged"

    @staticmethod
    async def _write(resource: Written[Any], verb: str, typed: Any) -> Exception | None:
        """Write an object, and return why it was refused."""
        try:
            if verb == "apply":
                await resource.apply(typed, force=True)
            elif verb == "status":
                await resource.update_status(typed)
            else:
                await resource.update(typed)
        except (ConfigError, ApiError) as error:
            return error
        return None

    @staticmethod
    def _may_raise(error: Exception, edit: Edit, status: int, view: View, applied: Value | None) -> bool:
        """Return whether an error is right.

        Args:
            error: The error.
            edit: The edit.
            status: The server's answer to what it means.
            view: What the class knows.
            applied: The object before the edit, if that is applied; else None.
        """
        if isinstance(error, AmbiguousEditError):
            return edit.may_be_refused
        if isinstance(error, ConfigError):
            return applied is not None and (view.is_lost(applied) or view.lacks_keys)
        return status >= 400

    async def _create(self, kind: EditedKind, random: Random, name: str) -> Value:
        made = kind.node.make(random)
        made["metadata"] |= {"name": name}
        made |= {"apiVersion": kind.api_version, "kind": kind.kind}
        answer = await self._api.ask("POST", self._path(kind), made)
        if answer.status != 201:
            assert answer.status == 422, answer.body
            return {}
        created: Value = answer.body
        if "status" in made:
            created["status"] = made["status"]
            created = await self._api.do("PUT", self._path(kind, name) + "/status", created)
        return created

    def _path(self, kind: EditedKind, name: str | None = None) -> str:
        return Resource(kind.api_version, kind.plural).path(self._namespace, name)


def _plain(kind: EditedKind, value: Value) -> str:
    """Return an object without what each write changes."""
    metadata = {
        name: part
        for name, part in value["metadata"].items()
        if name not in ("managedFields", "resourceVersion", "generation")
    }
    return json.dumps(normal(kind.node, {**value, "metadata": metadata}), sort_keys=True)
