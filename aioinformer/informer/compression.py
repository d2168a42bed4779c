"""KubeObjects kept compressed, by a dictionary made of the collection itself.

The objects of a collection are alike, so each says little that the others do not: with a dictionary of a hundred
kilobytes zstd makes 0.6 KB of a pod of 7.0 KB, in microseconds. The first objects are the first dictionary, as they
are; once there are enough of them one is trained; and when what is cached has become another, the next.
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
from ..objects.packing import ZstdPacking, unpacked

if TYPE_CHECKING:
    import zstandard

_WORTH_IT = 0.9
"""A new dictionary is taken if objects are smaller by it than this times what they are."""

_FEWEST = 8
"""Objects below which it is not worth trying."""

_LATER = 8
"""While a list arrives, the next dictionary is tried when so many times as many objects have come."""

_MOST_TRAINED = 100
"""Bytes from which a dictionary is trained, in times of its own."""

_MOST_PATIENT = 64
"""Each time that there is no better dictionary, the next is looked for after twice as many changes; so many times as
many as objects are cached, at most."""

_WORSE = 2
"""It is looked for at once where what comes takes so many times as much as it did at the last look."""


class Compression(msgspec.Struct, frozen=True, kw_only=True):
    """How objects are compressed.

    Attributes:
        level: zstd's, 1 to 19. Above 3 it takes longer and gains little.
        dictionary_size: Bytes.
        samples: Objects that a dictionary is trained from.

    Raises:
        ConfigError: A value that cannot work.
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
    """Where the objects are: a Store."""

    def list_keys_by_parts(self) -> Iterator[list[str]]: ...

    def get_by_key(self, key: str) -> Any: ...

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
        # Of all that came, until there is a cache to take them from.
        self._samples: list[KubeObject] | None = []
        self._sampled_bytes = 0
        self._packed = self._packed_bytes = 0
        self._next_look = self._options.samples
        self._is_time = asyncio.Event()

    @classmethod
    def of(cls, compress: bool | Compression, object_type: object) -> Compressor | None:
        """What an informer's option asks for, if anything.

        Raises:
            ConfigError: Objects of this type are not compressed, or zstandard is not installed.
        """
        if compress is False:
            return None
        if not isinstance(compress, (bool, Compression)):
            raise ConfigError(f"compress must be True, False or a Compression, not {compress!r}")
        if not is_kube_object_type(object_type):
            raise ConfigError(f"only KubeObjects can be kept compressed, not {object_type!r}")
        return cls(compress if isinstance(compress, Compression) else None)

    def pack(self, obj: Any) -> Any:
        """The object as it is to be kept. Plain, and called from one thread."""
        packing = self._packing
        if not isinstance(obj, KubeObject) or (packing is not None and packing.has(obj)):
            return obj
        if packing is not None:
            obj = packing.pack(obj)
        self._packed += 1
        self._packed_bytes += len(obj._kept)
        if self._packed == self._next_look:
            self._is_time.set()
        if self._samples is not None:
            self._sample(self._samples, obj)
        return obj

    async def run(self, cache: Cache, synced: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Make better dictionaries, and have what is cached compressed by them, until cancelled.

        It looks for a better one now and then while the first list arrives, when that is cached, and later when
        as many objects have come as are cached, or, unless they take much more than before, some times as many. They
        are trained in a thread, and objects compressed in turns.

        Args:
            cache: Where the objects are.
            synced: Waits until the first list is in it.
        """
        await run_until_first(partial(self._sample_list, cache), synced)
        self._samples = None
        await self._improve(await self._some_of(cache), cache)
        patience, waited, usual = 1, 0, inf
        while True:
            size = await self._mean_of_next(max(len(cache), self._options.samples))
            waited += 1
            if waited < patience and size < _WORSE * usual:
                continue
            is_better = await self._improve(await self._some_of(cache), cache)
            patience = 1 if is_better else min(2 * patience, _MOST_PATIENT)
            waited, usual = 0, size

    async def _mean_of_next(self, count: int) -> float:
        """Wait until so many more have been packed; their bytes, on average."""
        before = self._packed
        self._packed_bytes = 0
        self._next_look = before + count
        self._is_time.clear()
        await self._is_time.wait()
        return self._packed_bytes / (self._packed - before)

    async def _sample_list(self, cache: Cache) -> None:
        while self._samples is not None:
            await self._is_time.wait()
            self._is_time.clear()
            await self._improve(self._samples[:], cache)
            self._next_look = _LATER * self._packed

    async def _some_of(self, cache: Cache) -> list[KubeObject]:
        """Objects of the cache, chosen at random."""
        count = len(cache)
        places = sorted(self._random.sample(range(count), min(count, self._options.samples)), reverse=True)
        some: list[KubeObject] = []
        before = 0
        budget = Budget()
        for keys in cache.list_keys_by_parts():
            while places and places[-1] < before + len(keys):
                obj = cache.get_by_key(keys[places.pop() - before])
                if isinstance(obj, KubeObject):
                    some.append(obj)
            before += len(keys)
            if budget.is_spent():
                await budget.pause()
        return some

    def _sample(self, samples: list[KubeObject], obj: KubeObject) -> None:
        """Keep one of the first objects, or have it take the place of one of them, so that all have the same chance.

        As soon as there are enough for a dictionary they are one.
        """
        if len(samples) < self._options.samples:
            samples.append(obj)
            self._sampled_bytes += len(unpacked(obj)._kept)
            if self._packing is None and self._sampled_bytes >= self._options.dictionary_size:
                self._packing = self._make(self._put_together([unpacked(each)._kept for each in samples]))
        elif (place := int(self._random.random() * self._packed)) < len(samples):
            samples[place] = obj

    async def _improve(self, objects: list[KubeObject], cache: Cache) -> bool:
        """Train a dictionary from most of some objects; if the others are smaller by it, take it for all.

        Returns:
            Whether they are.
        """
        budget = Budget()
        before = self._packing
        if len(objects) >= _FEWEST:
            longest = _MOST_TRAINED * self._options.dictionary_size // len(objects)
            raws: list[bytes] = []
            for obj in objects:
                raws.append(unpacked(obj)._kept[:longest])
                if budget.is_spent():
                    await budget.pause()
            others = objects[::_FEWEST]
            del raws[::_FEWEST]
            # Nothing but the training is done in the thread: what one allocates for long, its arena keeps for longer.
            packing = self._make(await to_thread(self._train, raws))
            was, will_be = sum(len(obj._kept) for obj in others), 0
            for obj in others:
                will_be += len(packing.pack(obj)._kept)
                if budget.is_spent():
                    await budget.pause()
            if will_be < _WORTH_IT * was:
                self._packing = packing
        for key in chain.from_iterable(cache.list_keys_by_parts()):
            obj = cache.get_by_key(key)
            if obj is not None:
                cache.exchange(key, obj, self.pack(obj))
            if budget.is_spent():
                await budget.pause()
        return self._packing is not before

    def _train(self, raws: list[bytes]) -> zstandard.ZstdCompressionDict:
        """A dictionary for objects like these. Shares nothing, so that a thread can do it."""
        size, level = self._options.dictionary_size, self._options.level
        try:
            # Parameters that are good for objects: a search for the best takes ten times as long, and gains little.
            return self._zstd.train_dictionary(size, raws, k=2000, d=8, f=18, level=level)  # type: ignore[no-any-return]
        except self._zstd.ZstdError:  # they are too few, or too small
            return self._put_together(raws)

    def _put_together(self, raws: list[bytes]) -> zstandard.ZstdCompressionDict:
        """A dictionary of objects as they are, the last of them nearest."""
        content = b"".join(raws)[-self._options.dictionary_size :]
        raw_content = self._zstd.DICT_TYPE_RAWCONTENT
        return self._zstd.ZstdCompressionDict(content, dict_type=raw_content)  # type: ignore[no-any-return]

    def _make(self, dictionary: zstandard.ZstdCompressionDict) -> ZstdPacking:
        return ZstdPacking(self._zstd, dictionary, self._options.level)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ConfigError(
            "to keep objects compressed takes zstandard: pip install 'aioinformer[compression]'"
        ) from error
    return zstandard
