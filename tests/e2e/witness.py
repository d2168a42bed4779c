"""A handler that records its calls and lets tests wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from aioinformer import (
    DeletedFinalStateUnknown,
    ListWatch,
    Reflector,
    ResourceEventHandler,
    SharedIndexInformer,
    meta_namespace_key_func,
)
from aioinformer.objects.keys import resource_version_of

T = TypeVar("T")

PATIENCE = 40.0
"""Seconds until a wait fails: longer than the longest back-off."""


class Call(NamedTuple):
    """One call of the handler.

    Attributes:
        kind: "add", "update", "delete" or, of a tombstone, "missed".
        key: The object's.
        obj: The object; its last known state if it was deleted.
        old: The state before an update.
        initial: Whether an add was said to be of the initial list.
    """

    kind: str
    key: str
    obj: Any
    old: Any = None
    initial: bool = False


class Witness(ResourceEventHandler[Any]):
    """Records every call, builds a copy of the collection from them, and records contradictions.

    Attributes:
        calls: The calls.
        shadow: The resourceVersion of each object by its key, as far as the calls say.
        errors: The errors that the informer's watch error handler got.
        illegal: Calls that could not follow those before: an add of what is there, and so on.
    """

    def __init__(self, *, keep: bool = True) -> None:
        self._keep = keep
        self._news = asyncio.Event()
        self.calls: list[Call] = []
        self.counts: Counter[str] = Counter()
        self.shadow: dict[str, str] = {}
        self.errors: list[Exception] = []
        self.illegal: list[str] = []

    # Handler methods

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        key = meta_namespace_key_func(obj)
        if key in self.shadow:
            self.illegal.append(f"add of {key}, which was there at {self.shadow[key]}")
        self.shadow[key] = resource_version_of(obj)
        self._note(Call("add", key, obj, initial=is_in_initial_list))

    def on_update(self, old: Any, new: Any) -> None:
        key = meta_namespace_key_func(new)
        if self.shadow.get(key) != resource_version_of(old):
            was = self.shadow.get(key, "not there")
            self.illegal.append(f"update of {key} from {resource_version_of(old)}, which was {was}")
        self.shadow[key] = resource_version_of(new)
        self._note(Call("update", key, new, old))

    def on_delete(self, obj: Any) -> None:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        key = obj.key if missed else meta_namespace_key_func(obj)
        if self.shadow.pop(key, None) is None:
            self.illegal.append(f"delete of {key}, which was not there")
        self._note(Call("missed" if missed else "delete", key, obj.obj if missed else obj))

    def on_error(self, reflector: Reflector[Any], error: Exception) -> None:
        """The watch error handler."""
        self.errors.append(error)
        self._news.set()

    def _note(self, call: Call) -> None:
        self.counts[call.kind] += 1
        if self._keep:
            self.calls.append(call)
        self._news.set()

    # What tests ask

    def of(self, key: str) -> list[Call]:
        """The calls about an object."""
        return [call for call in self.calls if call.key == key]

    def kinds(self, key: str) -> list[str]:
        """What happened to an object, in order."""
        return [call.kind for call in self.of(key)]

    async def until(self, condition: Callable[[], object], timeout: float = PATIENCE) -> None:
        """Wait until a condition holds; check it after every call and error, and periodically."""
        __tracebackhide__ = True
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    self._news.clear()
                    with suppress(TimeoutError):  # the condition may be about others too
                        async with asyncio.timeout(0.05):
                            await self._news.wait()
        except TimeoutError:
            raise AssertionError(
                f"still not so after {timeout:g} s: told {dict(self.counts)}, errors {self.errors[-3:]}"
            ) from None

    async def until_shadow(self, versions: Mapping[str, str], timeout: float = PATIENCE) -> None:
        """Wait until the copy equals these versions."""
        __tracebackhide__ = True
        await self.until(lambda: self.shadow == versions, timeout)


def versions(objects: Mapping[str, Any]) -> dict[str, str]:
    """The resourceVersion of each object."""
    return {key: resource_version_of(obj) for key, obj in objects.items()}


def versions_in_cache(informer: SharedIndexInformer[Any]) -> dict[str, str]:
    """The resourceVersion of each object in an informer's cache."""
    return {meta_namespace_key_func(obj): resource_version_of(obj) for obj in informer.store.list()}


class Log(logging.Handler):
    """The package's log, which tests can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")
        self._news.set()

    async def until(self, *words: str, timeout: float = PATIENCE) -> str:
        """Wait for a line that has all of these words."""
        __tracebackhide__ = True
        try:
            async with asyncio.timeout(timeout):
                while not (lines := self.with_words(*words)):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"no line with {words} after {timeout:g} s: {self.lines[-10:]}") from None
        return lines[0]

    def with_words(self, *words: str) -> list[str]:
        """The lines that have all of these words."""
        return [line for line in self.lines if all(word in line for word in words)]


@asynccontextmanager
async def run_informer(
    list_watch: ListWatch | Mapping[str, ListWatch],
    object_type: type[T],
    *,
    logged: bool = False,
    **options: Any,
) -> AsyncIterator[tuple[SharedIndexInformer[T], Witness]]:
    """Run a synced informer with a witness; at the end, fail if there were illegal notifications."""
    async with start_informer(list_watch, object_type, logged=logged, **options) as (informer, witness):
        await informer.wait_synced(PATIENCE)
        await witness.until(lambda: len(witness.shadow) == len(informer.store))
        yield informer, witness


@asynccontextmanager
async def start_informer(
    list_watch: ListWatch | Mapping[str, ListWatch],
    object_type: type[T],
    *,
    logged: bool = False,
    **options: Any,
) -> AsyncIterator[tuple[SharedIndexInformer[T], Witness]]:
    """Like ``run_informer``, without waiting for the sync. With ``logged``, errors go to the log."""
    informer = SharedIndexInformer(list_watch, object_type, **options)
    witness = Witness()
    informer.add_event_handler(witness)
    if not logged:
        informer.set_watch_error_handler(witness.on_error)
    async with informer:
        yield informer, witness
    assert not witness.illegal, witness.illegal


def keys(call: Iterable[Call]) -> list[str]:
    """The keys, sorted."""
    return sorted(event.key for event in call)
