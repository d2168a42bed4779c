"""Compression of stored KubeObjects, with a dictionary trained on the collection itself.

The objects of a collection are similar: with a dictionary of a hundred kilobytes zstd compresses a pod of 7.0 KB to
0.6 KB, in microseconds. The first dictionary is the first objects themselves. Once there are enough of them one is
trained, and again when the cached objects have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import chain
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from .._core.checks import require_count
from .._core.coop import Budget
from .._core.tasks import run_until_first
from ..client.libraries import to_thread
from ..errors import ConfigError
from ..objects.kube_object import KubeObject, is_kube_object_type
from ..objects.packing import ZstdPacking, unpack

if TYPE_CHECKING:
    import zstandard

_MAX_RATIO = 0.9
"""A new dictionary is used if it makes the objects smaller than this share of their present size."""

_FEWEST = 8
"""The fewest objects to train from."""

_GROWTH = 8
"""While the first list arrives, the next dictionary is trained at this multiple of the objects of the last one."""

_MOST_TRAINED = 100
"""The most bytes to train from, as a multiple of the dictionary's size."""

_MAX_BACKOFF = 64
"""Each time that no better dictionary is found, the next attempt waits for twice as many changes, up to this multiple
of the cached objects."""

_WORSE = 2
"""The next attempt is immediate if new objects take this many times the space that they took at the last one."""


class Compression(msgspec.Struct, frozen=True, kw_only=True):
    """How objects are compressed.

    Attributes:
        level: zstd's level, 1 to 19. Levels above 3 take longer and gain little.
        dictionary_size: Bytes.
        samples: Objects to train a dictionary from.

    Raises:
        ConfigError: A value is out of range.
    """

    level: int = 3
    dictionary_size: int = 110 * 1024
    samples: int = 250

    def __post_init__(self) -> None:
        limits = {"level": (1, 19), "dictionary_size": (64, 1 << 24), "samples": (_FEWEST, 1 << 20)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            require_count(name, value)
            if not least <= value <= most:
                raise ConfigError(f"{name} must be from {least} to {most}, not {value}")


class Cache(Protocol):
    """The part of a Store that the compressor uses."""

    def list_keys_by_parts(self) -> Iterator[list[str]]: ...

    def find_fitting(self, key: str) -> Any: ...

    def exchange(self, key: str, old: Any, new: Any) -> None: ...

    def __len__(self) -> int: ...


class Compressor:
    """Compresses the objects of one collection.

    Args:
        options: How.

    Raises:
        ConfigError: zstandard is not installed.
    """

    def __init__(self, options: Compression | None = None) -> None:
        self._zstd = _zstandard()
        self._options = options or Compression()
        self._packing: ZstdPacking | None = None
        self._random = Random(0)
        # Of all objects so far, until there is a cache to sample from.
        self._samples: list[KubeObject] | None = []
        self._sampled_bytes = 0
        self._packed = self._packed_bytes = 0
        self._next_attempt = self._options.samples
        self._is_time = asyncio.Event()

    @classmethod
    def of(cls, compress: bool | Compression, object_type: object) -> Compressor | None:
        """Return the compressor for an informer's option, or None.

        Raises:
            ConfigError: Objects of this type cannot be compressed, or zstandard is not installed.
        """
        if compress is False:
            return None
        if not isinstance(compress, (bool, Compression)):
            raise ConfigError(f"compress must be True, False or a Compression, not {compress!r}")
        if not is_kube_object_type(object_type):
            raise ConfigError(f"only KubeObjects can be kept compressed, not {object_type!r}")
        return cls(compress if isinstance(compress, Compression) else None)

    def pack(self, obj: Any) -> Any:
        """Return the object in the form to store. Called from one thread."""
        packing = self._packing
        if not isinstance(obj, KubeObject) or (packing is not None and packing.has(obj)):
            return obj
        if packing is not None:
            obj = packing.pack(obj)
        self._packed += 1
        self._packed_bytes += len(obj._kept)
        if self._packed == self._next_attempt:
            self._is_time.set()
        if self._samples is not None:
            self._sample(self._samples, obj)
        return obj

    async def run(self, cache: Cache, synced: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Train better dictionaries, and recompress the cached objects, until cancelled.

        It tries a better dictionary a few times while the first list arrives, once the list is cached, and later
        whenever as many objects have arrived as are cached; after unsuccessful attempts, less often, unless objects
        take much more space than before. Training runs in a thread, and recompression in slices.

        Args:
            cache: The store.
            synced: Waits until the first list is in the store.
        """
        await run_until_first(partial(self._sample_list, cache), synced)
        self._samples = None
        await self._improve(await self._some_of(cache), cache)
        backoff, waited, usual = 1, 0, inf
        while True:
            size = await self._mean_of_next(max(len(cache), self._options.samples))
            waited += 1
            if waited < backoff and size < _WORSE * usual:
                continue
            is_better = await self._improve(await self._some_of(cache), cache)
            backoff = 1 if is_better else min(2 * backoff, _MAX_BACKOFF)
            waited, usual = 0, size

    async def _mean_of_next(self, count: int) -> float:
        """Wait until this many more objects were packed; return their mean size."""
        before = self._packed
        self._packed_bytes = 0
        self._next_attempt = before + count
        self._is_time.clear()
        await self._is_time.wait()
        return self._packed_bytes / (self._packed - before)

    async def _sample_list(self, cache: Cache) -> None:
        while self._samples is not None:
            await self._is_time.wait()
            self._is_time.clear()
            await self._improve(self._samples[:], cache)
            self._next_attempt = _GROWTH * self._packed

    async def _some_of(self, cache: Cache) -> list[KubeObject]:
        """Return a random sample of the cached objects."""
        count = len(cache)
        places = sorted(self._random.sample(range(count), min(count, self._options.samples)), reverse=True)
        some: list[KubeObject] = []
        before = 0
        budget = Budget()
        for keys in cache.list_keys_by_parts():
            while places and places[-1] < before + len(keys):
                obj = cache.find_fitting(keys[places.pop() - before])
                if isinstance(obj, KubeObject):
                    some.append(obj)
            before += len(keys)
            if budget.is_spent():
                await budget.pause()
        return some

    def _sample(self, samples: list[KubeObject], obj: KubeObject) -> None:
        """Add an object to the samples, or replace one, so that every object has the same chance.

        As soon as the samples are large enough they are the first dictionary.
        """
        if len(samples) < self._options.samples:
            samples.append(obj)
            self._sampled_bytes += len(unpack(obj)._kept)
            if self._packing is None and self._sampled_bytes >= self._options.dictionary_size:
                self._packing = self._make(self._concatenate([unpack(sample)._kept for sample in samples]))
        elif (place := int(self._random.random() * self._packed)) < len(samples):
            samples[place] = obj

    async def _improve(self, objects: list[KubeObject], cache: Cache) -> bool:
        """Train a dictionary from most of the objects, and use it if it compresses the others better.

        Returns:
            Whether it is used.
        """
        budget = Budget()
        before = self._packing
        if len(objects) >= _FEWEST:
            longest = _MOST_TRAINED * self._options.dictionary_size // len(objects)
            raws: list[bytes] = []
            for obj in objects:
                raws.append(unpack(obj)._kept[:longest])
                if budget.is_spent():
                    await budget.pause()
            others = objects[::_FEWEST]
            del raws[::_FEWEST]
            # Only the training runs in the thread: memory that a thread allocates stays in its arena.
            packing = self._make(await to_thread(self._train, raws))
            was, will_be = sum(len(obj._kept) for obj in others), 0
            for obj in others:
                will_be += len(packing.pack(obj)._kept)
                if budget.is_spent():
                    await budget.pause()
            if will_be < _MAX_RATIO * was:
                self._packing = packing
        for key in chain.from_iterable(cache.list_keys_by_parts()):
            obj = cache.find_fitting(key)
            if obj is not None:
                cache.exchange(key, obj, self.pack(obj))
            if budget.is_spent():
                await budget.pause()
        return self._packing is not before

    def _train(self, raws: list[bytes]) -> zstandard.ZstdCompressionDict:
        """Return a dictionary trained on these objects. Runs in a thread, and shares nothing."""
        size, level = self._options.dictionary_size, self._options.level
        try:
            # Fixed parameters: a search for the best ones takes ten times as long and gains little.
            return self._zstd.train_dictionary(size, raws, k=2000, d=8, f=18, level=level)  # type: ignore[no-any-return]
        except self._zstd.ZstdError:  # too few objects, or too small ones
            return self._concatenate(raws)

    def _concatenate(self, raws: list[bytes]) -> zstandard.ZstdCompressionDict:
        """Return a dictionary that is the objects themselves, the last ones at its end."""
        content = b"".join(raws)[-self._options.dictionary_size :]
        raw_content = self._zstd.DICT_TYPE_RAWCONTENT
        return self._zstd.ZstdCompressionDict(content, dict_type=raw_content)  # type: ignore[no-any-return]

    def _make(self, dictionary: zstandard.ZstdCompressionDict) -> ZstdPacking:
        return ZstdPacking(self._zstd, dictionary, self._options.level)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ConfigError("compress needs zstandard: pip install 'aioinformer[compression]'") from error
    return zstandard
