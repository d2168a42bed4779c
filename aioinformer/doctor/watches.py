"""Whether watches bring their events at once, bookmarks among them, and the first state (WatchList)."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import NamedTuple

from ..client import Client
from ..errors import ApiError
from ..listwatch.collection import Collection
from .examination import Examination
from .findings import Finding, Level
from .lists import describe_collection
from .times import describe_seconds

SECONDS = 5
"""How long a watch lasts at most. A server sends a bookmark two seconds before its end."""

LATE = 1.0
"""Seconds before the end of a watch from which on its first event is late."""

REFUSALS = {403: "may not be watched by this user", 404: "does not exist", 405: "cannot be watched"}
"""By the status of the answer: why a collection is not watched."""

_WATCH = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(SECONDS))]
_WATCH_LIST = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]


class Watched(NamedTuple):
    """What came of a watch.

    Attributes:
        first: Seconds until the first event; None if there was none.
        seconds: Seconds until its end, or until the last thing to see.
        has_bookmark: Whether a bookmark came.
        refusal: Why the server sends no first state by a watch; ``""`` if it does.
    """

    first: float | None
    seconds: float
    has_bookmark: bool
    refusal: str = ""


async def check_watches(examination: Examination) -> list[Finding]:
    """Watch the first collection that may be watched."""
    refusals = []
    for collection in examination.collections:
        try:
            watched = await _watch(examination.client, collection)
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            refusals.append(f"{describe_collection(collection)} {REFUSALS[error.status]}")
            continue
        return judge_watch(describe_collection(collection), watched)
    reason = "; ".join(refusals) or "the operator reads no collection"
    return [Finding("watches", Level.NOTE, f"not checked: {reason}")]


async def _watch(client: Client, collection: Collection) -> Watched:
    """Watch a collection until a bookmark comes.

    Raises:
        ApiError: It may not be watched, or does not exist.
    """
    try:
        return await _read(client, collection, [*_WATCH, *_WATCH_LIST], "")
    except ApiError as error:
        if error.status not in (400, 422):
            raise
        return await _read(client, collection, _WATCH, str(error))


async def _read(
    client: Client, collection: Collection, query: list[tuple[str, str]], refusal: str
) -> Watched:
    began, first, has_bookmark = time.perf_counter(), None, False
    tail = b""
    async with aclosing(await client.stream(collection.path, query)) as stream:
        async for chunk in stream:
            first = first or time.perf_counter() - began
            tail = tail[-20:] + chunk
            if has_bookmark := b'"type":"BOOKMARK"' in tail:
                break
    return Watched(first, time.perf_counter() - began, has_bookmark, refusal)


def judge_watch(name: str, watched: Watched) -> list[Finding]:
    """Return what is wrong with watches.

    Args:
        name: The collection's name.
        watched: What came of a watch.
    """
    if watched.first is None or watched.first > SECONDS - LATE:
        if watched.seconds < SECONDS - LATE:
            do = "Look for a proxy or load balancer that ends long requests; informers poll then"
            text = f"a watch of {name} ended after {describe_seconds(watched.seconds)} without an event"
            return [Finding("watches", Level.FAULT, text, do)]
        if watched.first is not None:
            do = (
                "Let the proxy or gateway before the API server not buffer answers (nginx: proxy_buffering off), "
                "or go around it"
            )
            text = (
                f"events of a watch of {name} came only when it ended, after {SECONDS} s: they are buffered"
            )
            return [Finding("watches", Level.FAULT, text, do)]
    findings = []
    if watched.first is not None:
        findings.append(
            Finding(
                "watches", Level.OK, f"the first event of {name} came in {describe_seconds(watched.first)}"
            )
        )
    if watched.has_bookmark:
        findings.append(Finding("watches", Level.OK, "bookmarks come"))
    else:
        do = "Look for a proxy that removes them, or an aggregated API server without them: quiet watches expire"
        text = f"no bookmark came in {describe_seconds(watched.seconds)}"
        findings.append(Finding("watches", Level.WARNING, text, do))
    if watched.refusal:
        do = "Nothing: informers list in pages instead. Servers from 1.34 on have the feature WatchList"
        findings.append(
            Finding("watches", Level.NOTE, "the server sends no first state by a watch (WatchList)", do)
        )
    else:
        findings.append(
            Finding("watches", Level.OK, "the server sends the first state by a watch (WatchList)")
        )
    return findings
