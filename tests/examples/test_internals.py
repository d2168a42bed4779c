"""docs/internals.md: the walk of an event through the package, counted."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import FrameType

import aioinformer
from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.cache import Phase
from aioinformer.testing import APIServer

PACKAGE = Path(aioinformer.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "internals.md"
BESIDE_THE_WAY = ("objects", "_core", "testing")

Call = tuple[str, str]
"""A file of the package, and the name of a function in it."""


async def calls_of_one_event() -> list[Call]:
    """Return the package's calls from the server's write to the handler."""
    calls: list[Call] = []
    delivered = asyncio.Event()

    def record(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            file = path.relative_to(PACKAGE)
            if file.parts[0] not in BESIDE_THE_WAY:
                calls.append((file.as_posix(), frame.f_code.co_qualname))

    def on_update(old: KubeObject, new: KubeObject) -> None:
        sys.setprofile(None)
        delivered.set()

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        informer = SharedIndexInformer(ListWatch.for_resource(client, "v1", "configmaps"), KubeObject)
        informer.add_event_handler(on_update=on_update)
        async with informer:
            await informer.wait_synced(10)
            while informer.state.phase is not Phase.WATCHING:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.01)
            before = sys.getprofile()
            server.patch("v1", "configmaps", "a", {"data": {"key": "value"}})
            sys.setprofile(record)
            try:
                await asyncio.wait_for(delivered.wait(), 10)
            finally:
                sys.setprofile(before)
    return calls


async def test_an_event_passes_the_files_of_the_table_and_no_other() -> None:
    text = PAGE.read_text()
    rows = re.findall(r"^\| (\d+) \| `([\w/]+\.py)(?:::([\w.]+))?`", text, re.MULTILINE)
    assert f"passes {len(rows)} files" in text
    assert [int(number) for number, _, _ in rows] == [*range(1, len(rows) + 1)]
    calls = await calls_of_one_event()
    assert {file for _, file, _ in rows} == {file for file, _ in calls}
    first = [
        next(
            (at for at, (path, name) in enumerate(calls) if path == file and name.startswith(function)), None
        )
        for _, file, function in rows
    ]
    assert None not in first, "a function of the table is not called"
    # Those that read resume from the outside in.
    assert (pushing := first[7:15]) == sorted(pushing, key=lambda at: at or 0)
