"""Storage version migration: rewrite the objects of a CustomResourceDefinition in its storage version (KEP-4192)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from random import SystemRandom
from typing import Any, NamedTuple, TypeVar

import msgspec

from .._core.checks import require_seconds
from .._core.coop import Budget
from .._core.tasks import gather
from ..client import Client
from ..client.transport import READ_TIMEOUT
from ..errors import (
    AioInformerError,
    ApiError,
    ConfigError,
    ConflictError,
    DecodeError,
    ObjectNotFoundError,
    RefusedError,
    TransportError,
    message_of,
)
from ..listwatch.collection import Collection
from ..listwatch.list_watch import ResourceListWatch
from ..listwatch.pager import PAGE_SIZE, Pager
from ..objects.codec import codec_for
from ..objects.excerpts import begins
from ..objects.meta import ListResult
from ..objects.nesting import DECODE_ERRORS, reader_of
from ..reflector.backoff import Backoff
from ..resources import Resource
from ..resources.addresses import Addresses
from ..resources.endpoint import Endpoint
from ..resources.patches import MERGE_PATCH
from ..resources.refusals import raise_refusals
from ..workqueue.rate_limiters import BucketRateLimiter
from .preflight import Needed, in_words, missing_rights, user_of
from .rights import Right
from .stored_versions import Definition, progress_patch, stored_patch

T = TypeVar("T")

FIELD_MANAGER = "aioinformer-migrate"
AT_ONCE = 8
"""Requests that run concurrently."""
RETRY_FOR = 60.0
"""Seconds for which a request is repeated while the server fails or cannot be reached."""
MOST_NAMED = 5
"""Refused objects that the error names."""


class MigrationError(AioInformerError):
    """The server refused to rewrite some objects, so ``storedVersions`` was not changed."""


class Outcome(NamedTuple):
    """What a migration did.

    Attributes:
        name: The definition.
        storage: Its storage version.
        before: ``storedVersions`` before.
        objects: Objects that the migration went through.
        rewritten: Those that the server has stored again; the others were stored in the storage version already, or
            changed or deleted meanwhile.
    """

    name: str
    storage: str
    before: tuple[str, ...]
    objects: int
    rewritten: int


class _Item(NamedTuple):
    key: str
    version: str


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""


class _Head(msgspec.Struct):
    metadata: _Metadata


_read_head = reader_of(_Head)


class Migration:
    """Rewrites the objects of one definition, then removes the other versions from its ``status.storedVersions``.

    Each object gets a patch without a change, at the resourceVersion that was listed. The server then stores it again
    if its bytes differ, which they do in another version. An object that has changed since the list was stored by that
    change. An interrupted migration continues after the last key that it has saved in an annotation of the definition.

    Args:
        client: Of the server.
        name: The definition, such as ``"websites.example.com"``.
        rate: Objects per second, at most.
        settle: Seconds to wait before the first object: all API servers of a cluster have to know the storage version.
        dry_run: Whether the server only checks whether it would accept each object, and nothing is stored.
    """

    def __init__(
        self, client: Client, name: str, *, rate: float = 50.0, settle: float = 30.0, dry_run: bool = False
    ) -> None:
        require_seconds("settle", settle)
        self._client = client
        self._name = name
        self._settle = settle
        self._dry_run = dry_run
        self._bucket = BucketRateLimiter(rate, 1)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._definitions: Resource[dict[str, Any]] = Resource(
            client, "customresourcedefinitions", dict, field_manager=FIELD_MANAGER
        )
        self._step = "reading the definition"
        self._total = self._passed = self._rewritten = self._refused = 0
        self._reasons: list[str] = []

    def __str__(self) -> str:
        if not self._total:
            return f"{self._name}: {self._step}"
        refused = f", {self._refused} refused" if self._refused else ""
        return f"{self._name}: {self._step}: {self._passed:,} of {self._total:,} objects{refused}"

    async def run(self) -> Outcome:
        """Migrate. A definition whose objects are all stored in its storage version stays as it is.

        Raises:
            MigrationError: Some objects were refused.
            ConfigError: The definition changes meanwhile, is being deleted or not served; or rights are missing.
            AioInformerError: The server refuses, or does not answer for RETRY_FOR.
        """
        before = await self._read()
        if not before.is_migrated:
            await self._require_rights(before)
            if not (before.last_key or self._dry_run):
                self._step = f"waiting {self._settle:g} s until all API servers store it as {before.storage}"
                await asyncio.sleep(self._settle)
            await self._rewrite_all(before)
            if not self._dry_run:
                await self._clean(before)
        return Outcome(before.name, before.storage, before.stored, self._passed, self._rewritten)

    async def _read(self) -> Definition:
        return Definition.read(await _retry(lambda: self._definitions.get(self._name)))

    async def _require_rights(self, definition: Definition) -> None:
        group, definitions = definition.group, ("apiextensions.k8s.io", "customresourcedefinitions", False)
        needed = [Needed(Right(group, definition.plural, definition.namespaced, ("list", "patch")))]
        if not self._dry_run:
            needed.append(Needed(Right(*definitions, ("patch",)), name=self._name))
            needed.append(Needed(Right(*definitions, ("patch",), "status"), name=self._name))
        if missing := await _retry(lambda: missing_rights(self._client, needed)):
            user = await user_of(self._client)
            raise ConfigError(f"{user} may not {in_words(missing)}. Grant it by a ClusterRole")

    # The objects

    async def _rewrite_all(self, definition: Definition) -> None:
        api_version = f"{definition.group}/{definition.served}"
        collection = Collection(api_version, definition.plural)
        endpoint = Endpoint(
            self._client,
            Addresses(collection, definition.namespaced),
            codec_for(dict),
            definition.kind,
            FIELD_MANAGER,
            READ_TIMEOUT,
        )
        self._step = "listing its objects"
        items = await _retry(lambda: self._list(collection))
        self._total = len(items)
        self._step = f"{'checking' if self._dry_run else 'rewriting as'} {definition.storage}"
        if not self._dry_run:
            items = [item for item in items if item.key > definition.last_key]
            self._passed = self._total - len(items)
        for page in _pages(items):
            await gather(*(self._rewrite(endpoint, item) for item in page))
            # A later run must come to a refused object again.
            last = "" if self._refused or self._dry_run else page[-1].key
            await self._check_and_save(definition, last)
        if self._refused:
            await self._report_refused(definition)

    async def _list(self, collection: Collection) -> list[_Item]:
        """Return keys and versions, in the order of the keys; the bytes of the objects stay at the server."""
        only_metadata = Collection(collection.api_version, collection.plural, metadata_only=True)
        pager = Pager(ResourceListWatch(self._client, only_metadata), _read_items, READ_TIMEOUT)
        with raise_refusals("list", str(collection)):
            listed = await pager.list("", PAGE_SIZE)
        return sorted(listed.objects)

    async def _rewrite(self, endpoint: Endpoint[Any], item: _Item) -> None:
        patch = {"metadata": {"resourceVersion": item.version}}
        query = [*endpoint.manager_query(), *([("dryRun", "All")] if self._dry_run else [])]

        async def write() -> bytes:
            return await endpoint.write(
                "patch", item.key, "PATCH", patch, content_type=MERGE_PATCH, query=query
            )

        async with self._slots:
            await asyncio.sleep(self._bucket.when(item))
            try:
                body = await _retry(write)
                self._rewritten += _read_item(body) != item
            except (ConflictError, ObjectNotFoundError):
                pass  # a change has stored it meanwhile, or it is gone
            except RefusedError as error:
                self._refused += 1
                if len(self._reasons) < MOST_NAMED:
                    self._reasons.append(message_of(error))
            self._passed += 1

    # The definition

    async def _check_and_save(self, before: Definition, last_key: str) -> None:
        """Check that the definition has not changed, and save the last key; ``""`` saves nothing.

        Raises:
            ConfigError: It has changed.
        """
        if not last_key:
            (await self._read()).require_unchanged(before)
            return
        patch = progress_patch(before.generation, last_key)
        Definition.read(await _retry(lambda: self._definitions.patch(self._name, patch))).require_unchanged(
            before
        )

    async def _clean(self, before: Definition) -> None:
        """Remove the other versions from ``storedVersions``, then what was saved."""
        self._step = "cleaning storedVersions"
        deadline = asyncio.get_running_loop().time() + RETRY_FOR
        while True:
            present = await self._read()
            present.require_unchanged(before)
            patch = stored_patch(present)
            try:
                await _retry(lambda patch=patch: self._definitions.patch_status(self._name, patch))  # type: ignore[misc]
                break
            except ConflictError:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
        await _retry(lambda: self._definitions.patch(self._name, progress_patch(0, "")))

    async def _report_refused(self, definition: Definition) -> None:
        """Raise what the server refused; the next run begins with the first object."""
        if not self._dry_run:
            await _retry(lambda: self._definitions.patch(self._name, progress_patch(0, "")))
        more = (
            f" … and {self._refused - len(self._reasons)} more" if self._refused > len(self._reasons) else ""
        )
        raise MigrationError(
            f"{self._name}: the server refuses to store {self._refused} of {self._total} objects as "
            f"{definition.storage}, so storedVersions stays {', '.join(definition.stored)}: "
            f"{'; '.join(self._reasons)}{more}. Repair or delete them, and run the migration again"
        )


def _read_item(raw: bytes) -> _Item:
    try:
        metadata = _read_head(raw).metadata
    except DECODE_ERRORS as error:
        raise DecodeError(f"an object without a name or resourceVersion: {error}; {begins(raw)}") from error
    name, namespace = metadata.name, metadata.namespace
    return _Item(f"{namespace}/{name}" if namespace else name, metadata.resource_version)


async def _read_items(piece: ListResult) -> list[_Item]:
    items, budget = [], Budget()
    for raw in piece.items:
        items.append(_read_item(raw))
        if budget.is_spent():
            await budget.pause()
    return items


def _pages(items: list[_Item]) -> Iterator[list[_Item]]:
    for start in range(0, len(items), PAGE_SIZE):
        yield items[start : start + PAGE_SIZE]


async def _retry(request: Callable[[], Awaitable[T]]) -> T:
    """Send a request; while the server fails or cannot be reached, repeat it for RETRY_FOR."""
    now, backoff = asyncio.get_running_loop().time, Backoff(SystemRandom())
    deadline = now() + RETRY_FOR
    while True:
        try:
            return await request()
        except (ApiError, TransportError) as error:
            is_temporary = (
                not isinstance(error, ApiError) or error.is_too_many_requests or error.status >= 500
            )
            delay = backoff.next((error.retry_after if isinstance(error, ApiError) else None) or 0.0)
            if not is_temporary or now() + delay >= deadline:
                raise
        await asyncio.sleep(delay)
