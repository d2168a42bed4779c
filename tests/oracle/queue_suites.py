"""The suites of queues: DeltaFIFO by client-go 0.30 and 0.36, RealFIFO by 0.36."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from tests import virtual_time
from tests.go_build import GoBuild

from .build import QUEUE_V030, QUEUE_V036
from .differences import Difference
from .listing import listing
from .program import traces
from .queue_play import Play
from .queue_script import QueueScript, delta_script, real_script, smaller


class QueueSuite:
    """Scripts for one kind of queue.

    Attributes:
        met: The number of scripts that met each known difference.
    """

    script_type = QueueScript
    batch = 1000

    def __init__(self, name: str, version: str, build: GoBuild) -> None:
        self.name = name
        self.build = build
        self.met: Counter[Difference] = Counter()
        self._version = version

    def generate(self, random: Random) -> QueueScript:
        if self.name == "real-fifo":
            return real_script(random)
        return delta_script(random, upstream_030=self._version == "v030")

    def compare(self, scripts: Sequence[QueueScript]) -> list[str | None]:
        plays = [Play(script, self._version) for script in scripts]
        logging.disable()  # errors here are part of the script
        try:
            virtual_time.run(_play(plays))
        finally:
            logging.disable(logging.NOTSET)
        answers = traces(self.build, [play.upstream for play in plays])
        for play in plays:
            self.met.update(play.differences)
        return [
            listing(play.script, play.lines, play.expected, theirs, play.differences)
            for play, theirs in zip(plays, answers, strict=True)
        ]

    def smaller(self, script: QueueScript) -> Iterator[QueueScript]:
        return smaller(script)


async def _play(plays: Sequence[Play]) -> None:
    for play in plays:
        await play.run()


DELTA_FIFO = QueueSuite("delta-fifo", "v030", QUEUE_V030)
DELTA_FIFO_036 = QueueSuite("delta-fifo-036", "v036", QUEUE_V036)
REAL_FIFO = QueueSuite("real-fifo", "v036", QUEUE_V036)
