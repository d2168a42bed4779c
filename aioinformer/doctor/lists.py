"""How large the lists of informers are, how long they take, and which of the operator's objects are not ready."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec

from ..client import Client
from ..client.lookup import resource_of_class
from ..errors import ApiError, message_of
from ..listwatch.collection import Collection
from ..objects.nesting import DECODE_ERRORS, reader_of
from ..objects.status_conditions import FALSE, READY
from .examination import Examination
from .findings import Finding, Level, shorten_line
from .times import describe_seconds

PAGE = 500
"""Objects of a page, as informers ask for them."""

SLOW = 2.0
"""Seconds for a page from which on it is slow."""

MOST_NAMED = 3
"""Objects that are not ready, which a finding names."""

LONGEST_MESSAGE = 300
"""Characters of a condition's message."""

LARGE = 200_000_000
"""Bytes of a list from which on it is large for a process."""


class _Meta(msgspec.Struct, rename="camel"):
    remaining_item_count: int | None = None


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw]


class _ItemMeta(msgspec.Struct):
    name: str
    namespace: str = ""


class _Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Item(msgspec.Struct):
    metadata: _ItemMeta
    status: _Status


_read_page, _read_item = reader_of(_Page), reader_of(_Item)


async def check_lists(examination: Examination) -> list[Finding]:
    """Check each collection in turn: several at a time would slow each other down."""
    operator = examination.operator
    kinds = [] if operator is None else [versions[-1] for versions in operator.custom_resources()]
    own = {(resource.group, resource.plural) for resource in map(resource_of_class, kinds)}
    return [
        finding
        for collection in examination.collections
        for finding in await _check_list(
            examination.client, collection, has_conditions=(collection.group, collection.plural) in own
        )
    ]


async def _check_list(client: Client, collection: Collection, *, has_conditions: bool) -> list[Finding]:
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
    findings = [judge_list(name, len(page.items), remaining, len(body), seconds)]
    if has_conditions:
        findings += judge_conditions(name, page.items, has_more=remaining > 0)
    return findings


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


def judge_conditions(name: str, items: Iterable[msgspec.Raw], *, has_more: bool) -> Iterator[Finding]:
    """Yield which objects have the condition Ready with the status False.

    Args:
        name: The collection's name.
        items: Objects of the first page.
        has_more: Whether there are others.
    """
    unready = [*_find_unready(items)]
    if not unready:
        return
    do = "Repair what the messages name; kubectl describe shows an object's Events"
    count = f"{len(unready):,} {'object is' if len(unready) == 1 else 'objects are'} not ready"
    scope = f" among the first {PAGE}" if has_more else ""
    more = f"; and {len(unready) - MOST_NAMED:,} more" if len(unready) > MOST_NAMED else ""
    text = f"{name}: {count}{scope}: {'; '.join(unready[:MOST_NAMED])}{more}"
    yield Finding("objects", Level.WARNING, text, do)


def _find_unready(items: Iterable[msgspec.Raw]) -> Iterator[str]:
    for raw in items:
        try:
            item = _read_item(raw)
        except DECODE_ERRORS:  # no conditions, or others than Kubernetes' own
            continue
        for condition in item.status.conditions:
            if condition.type == READY and condition.status == FALSE:
                meta = item.metadata
                key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
                yield f"{key}: {condition.reason}: {shorten_line(condition.message, LONGEST_MESSAGE)}"


def describe_collection(collection: Collection) -> str:
    """Return a collection's name: ``"deployments.apps in web"``."""
    name = f"{collection.plural}.{collection.group}" if collection.group else collection.plural
    return f"{name} in {collection.namespace}" if collection.namespace else name
