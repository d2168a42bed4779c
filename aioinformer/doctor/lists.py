"""How large the lists are that informers read, and how long they take."""

from __future__ import annotations

import time

import msgspec

from ..client import Client
from ..errors import ApiError, message_of
from ..listwatch.collection import Collection
from ..objects.nesting import reader_of
from .examination import Examination
from .findings import Finding, Level
from .times import describe_seconds

PAGE = 500
"""Objects of a page, as informers ask for them."""

SLOW = 2.0
"""Seconds for a page from which on it is slow."""

LARGE = 200_000_000
"""Bytes of a list from which on it is large for a process."""


class _Meta(msgspec.Struct, rename="camel"):
    remaining_item_count: int | None = None


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw]


_read_page = reader_of(_Page)


async def check_lists(examination: Examination) -> list[Finding]:
    """Check each collection in turn: several at a time would slow each other down."""
    return [
        finding
        for collection in examination.collections
        for finding in await _check_list(examination.client, collection)
    ]


async def _check_list(client: Client, collection: Collection) -> list[Finding]:
    name = describe_collection(collection)
    began = time.perf_counter()
    try:
        body = await client.get(collection.path, [("limit", str(PAGE))])
    except ApiError as error:
        if error.status in (403, 404):
            return []  # said by other checks
        return [Finding("lists", Level.FAULT, f"{name}: {message_of(error)}", "Look at the server's log")]
    seconds = time.perf_counter() - began
    page = _read_page(body)
    remaining = page.metadata.remaining_item_count or 0
    return [judge_list(name, len(page.items), remaining, len(body), seconds)]


def judge_list(name: str, count: int, remaining: int, size: int, seconds: float) -> Finding:
    """Return whether a list is small and fast enough.

    Args:
        name: The collection's name.
        count: Objects of the first page.
        remaining: Objects of the others.
        size: Bytes of the first page.
        seconds: How long it took.
    """
    total, whole = count + remaining, size * (count + remaining) // max(count, 1)
    text = f"{name}: {total:,} objects, {whole / 1e6:,.1f} MB, the first page in {describe_seconds(seconds)}"
    if seconds >= SLOW:
        do = "Look at the load of the API server and of etcd, and at webhooks that convert these objects"
        return Finding("lists", Level.WARNING, text, do)
    if whole >= LARGE:
        do = "Read less: a namespace, selectors, metadata alone, or a class with the fields that you need"
        return Finding("lists", Level.WARNING, text, do)
    return Finding("lists", Level.OK, text)


def describe_collection(collection: Collection) -> str:
    """Return a collection's name: ``"deployments.apps in web"``."""
    name = f"{collection.plural}.{collection.group}" if collection.group else collection.plural
    return f"{name} in {collection.namespace}" if collection.namespace else name
