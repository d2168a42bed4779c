"""CacheMutationDetector: finds cached objects that were changed in place (client-go ``mutation_detector.go``)."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import deque
from typing import Any, NamedTuple

from .._core.checks import require_seconds
from .._core.coop import Budget
from .._core.difference import difference
from ..errors import CacheMutatedError
from ..objects.keys import key_and_version

logger = logging.getLogger(__name__)


class _Watched(NamedTuple):
    added: float
    obj: Any
    original: Any


class CacheMutationDetector:
    """Compares cached objects with copies from the time when they were stored.

    For object types that can be changed in place (dict, Struct, models); a KubeObject cannot be. It doubles the
    memory of the objects that it watches, so use it in tests.

    Args:
        interval: Seconds between comparisons.
        retention: Seconds for which an object is watched.
        name: The name of the cache in errors; ``""`` for the name of its informer.

    Raises:
        ConfigError: A duration is invalid.
    """

    def __init__(self, interval: float = 1.0, retention: float = 120.0, name: str = "") -> None:
        require_seconds("interval", interval)
        require_seconds("retention", retention)
        self.name = name
        self._interval = interval
        self._retention = retention
        self._watched: deque[_Watched] = deque()

    def add_object(self, obj: Any) -> None:
        """Watch an object from now on. Logs an object that cannot be copied, because it is nested too deeply."""
        try:
            original = copy.deepcopy(obj)
        except Exception as error:
            key, version = key_and_version(obj)
            logger.warning(
                "%s: %s at %s is not watched for changes in place, because it cannot be copied: %r",
                self.name,
                key,
                version,
                error,
            )
        else:
            self._watched.append(_Watched(asyncio.get_running_loop().time(), obj, original))

    async def compare_objects(self) -> None:
        """Compare all watched objects, and forget those older than ``retention``.

        Raises:
            CacheMutatedError: An object was changed in place.
        """
        oldest = asyncio.get_running_loop().time() - self._retention
        budget = Budget()
        for watched in list(self._watched):
            self._compare(watched)
            if budget.is_spent():
                await budget.pause()
        while self._watched and self._watched[0].added < oldest:
            self._watched.popleft()

    async def run(self) -> None:
        """Compare once per interval until cancelled, and then once more: a test may be shorter than the interval.

        Raises:
            CacheMutatedError: An object was changed in place.
        """
        try:
            while True:
                await asyncio.sleep(self._interval)
                await self.compare_objects()
        except asyncio.CancelledError:
            for watched in self._watched:
                self._compare(watched)
            raise

    def _compare(self, watched: _Watched) -> None:
        if difference(watched.original, watched.obj) is not None:
            key, _ = key_and_version(watched.original)
            raise CacheMutatedError(self.name, key, watched.original, watched.obj)
