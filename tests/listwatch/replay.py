"""The real server's own bytes, and a server that answers with them: damaged at first, honest later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ..client.wire import (
    CHUNKED,
    OK,
    Asked,
    bookmark,
    chunk,
    dumps,
    failure,
    line,
    whole,
)

RECORDED = Path(__file__).with_name("recorded")
LIST = (RECORDED / "list.json").read_bytes()
"""Three ConfigMaps at version 202, out of a watch cache that lags behind by one."""
WATCH = (RECORDED / "watch.jsonl").read_bytes()
"""All that happened from 202 on: additions, a change, deletions, one of them of what comes again."""
STREAM = (RECORDED / "watchlist.jsonl").read_bytes()
"""A WatchList at 203."""
LATER = (RECORDED / "list-after.json").read_bytes()
"""The collection afterwards; the server has counted on meanwhile."""

LAST = int(json.loads(LATER)["metadata"]["resourceVersion"])
LINES = WATCH.splitlines(keepends=True)

Damage = Callable[[bytes], bytes]


def versions_in(body: bytes) -> dict[str, str]:
    """The resourceVersion of each object of a list, by key."""
    return {f"default/{item['metadata']['name']}": version_of(item) for item in json.loads(body)["items"]}


def version_of(obj: Any) -> str:
    return str(obj["metadata"]["resourceVersion"])


def is_event(raw: bytes) -> bool:
    """Whether a line is JSON of an event, by another parser than the one that is tested."""
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "object" in value


def apply(state: dict[str, str], lines: list[bytes]) -> dict[str, str]:
    """The state after these events."""
    state = dict(state)
    for raw in lines:
        event = json.loads(raw)
        metadata = event["object"]["metadata"]
        if event["type"] == "DELETED":
            state.pop(f"default/{metadata['name']}", None)
        elif event["type"] != "BOOKMARK":
            state[f"default/{metadata['name']}"] = metadata["resourceVersion"]
    return state


class Replay:
    """Answers as the server did that was recorded; its first answer of a kind is damaged.

    Args:
        damaged: Which kind: "list", "stream" (a WatchList) or "watch".
        damage: What happens to its bytes.
        goes_on: Whether the damaged stream goes on with bookmarks, or ends.
        size: Bytes sent at once.

    Attributes:
        honest: Once set, watches end with 410, so that all is listed again.
        is_done: Whether the damage has been done.
    """

    def __init__(self, damaged: str, damage: Damage, *, goes_on: bool = True, size: int = 1 << 20) -> None:
        self._damaged = damaged
        self._damage = damage
        self._goes_on = goes_on
        self._size = size
        self.honest = asyncio.Event()
        self.is_done = False
        self._relist = False

    async def __call__(self, asked: Asked) -> AsyncIterator[bytes]:
        if not asked.is_watch:
            async for data in self._list(asked):
                yield data
            return
        kind = "stream" if asked.is_stream else "watch"
        if kind == "stream" and self._damaged != "stream":
            yield refusal(422, "Invalid")
            return
        version = asked.query.get("resourceVersion", "")
        if not version.isdigit() and (version or kind == "watch"):
            yield refusal(400, "BadRequest")
            return
        if int(version or 0) > LAST:
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            yield refusal(504, "Timeout", details={"causes": causes})
            return
        yield CHUNKED
        body = STREAM if kind == "stream" and not self._relist else b""
        if kind == "stream" and self._relist:
            for item in json.loads(LATER)["items"]:
                body += line("ADDED", item)
            body += bookmark(LAST, closing=True)
        elif kind == "watch":
            body = b"".join(
                entry for entry in LINES if int(version_of(json.loads(entry)["object"])) > int(version)
            )
        if self._is_next(kind):
            async for data in self._in_pieces(self._damage(body)):
                yield chunk(data)
            if not self._goes_on:
                return
        elif body:
            yield chunk(body)
        if kind == "stream" and not self._relist:
            yield chunk(WATCH)
        while not self._relist:
            yield chunk(bookmark(LAST))
            await asyncio.sleep(0.01)
            if self.honest.is_set():
                self._relist = True
                yield chunk(line("ERROR", failure(410, "Expired")))
                return
        await asyncio.Event().wait()

    async def _list(self, asked: Asked) -> AsyncIterator[bytes]:
        version = asked.query.get("resourceVersion", "")
        if version and not version.isdigit():
            yield refusal(400, "BadRequest")
        elif self._is_next("list"):
            yield OK
            async for data in self._in_pieces(self._damage(LIST)):
                yield data
        else:
            yield whole(LATER if self.is_done else LIST)

    def _is_next(self, kind: str) -> bool:
        if self.is_done or kind != self._damaged:
            return False
        self.is_done = True
        return True

    async def _in_pieces(self, data: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(data), self._size):
            yield data[start : start + self._size]
            await asyncio.sleep(0)


def refusal(code: int, reason: str, **more: Any) -> bytes:
    """An answer other than 2xx."""
    body = dumps(failure(code, reason, **more))
    return b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
        code, len(body), body,
    )  # fmt: skip
