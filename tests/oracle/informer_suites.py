"""The suites of shared informers: on a DeltaFIFO by client-go 0.30, on a RealFIFO by 0.36."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import msgspec

from tests import virtual_time
from tests.go_build import GoBuild

from .build import INFORMER_V030, INFORMER_V036
from .differences import Difference
from .informer_compare import compare
from .informer_generator import generate
from .informer_script import Script, Trace
from .informer_subject import play
from .program import answers


class InformerSuite:
    """Scripts for informers with one kind of queue.

    Attributes:
        met: The number of scripts that met each known difference.
    """

    script_type = Script
    batch = 100

    def __init__(self, name: str, build: GoBuild, queue: Literal["delta", "real"]) -> None:
        self.name = name
        self.build = build
        self.met: Counter[Difference] = Counter()
        self._queue: Literal["delta", "real"] = queue
        self._real = queue == "real"

    def generate(self, random: Random) -> Script:
        return generate(random, watch_lists=self._real)

    def compare(self, scripts: Sequence[Script]) -> list[str | None]:
        logging.disable()  # errors here are part of the script
        try:
            ours = virtual_time.run(self._play(scripts))
        finally:
            logging.disable(logging.NOTSET)
        decode = msgspec.json.Decoder(Trace).decode
        theirs = [decode(answer) for answer in answers(self.build, scripts)]
        return [self._compare(*traces) for traces in zip(scripts, ours, theirs, strict=True)]

    def smaller(self, script: Script) -> Iterator[Script]:
        steps = script.steps
        size = len(steps) // 2
        while size:
            for begin in range(0, len(steps), size):
                yield msgspec.structs.replace(script, steps=steps[:begin] + steps[begin + size :])
            size //= 2
        for number, step in enumerate(steps):
            for name in ("events", "items"):
                parts = getattr(step, name)
                for part in range(len(parts)):
                    fewer = msgspec.structs.replace(step, **{name: parts[:part] + parts[part + 1 :]})
                    yield msgspec.structs.replace(
                        script, steps=[*steps[:number], fewer, *steps[number + 1 :]]
                    )
        plain = Script([])
        for option in ("transform", "indexes", "watch_list", "resync"):
            if getattr(script, option):
                yield msgspec.structs.replace(script, **{option: getattr(plain, option)})

    async def _play(self, scripts: Sequence[Script]) -> list[Trace | Exception]:
        played: list[Trace | Exception] = []
        for script in scripts:
            try:
                played.append(await play(script, self._queue))
            except Exception as error:  # a crash is reported as a difference
                played.append(error)
        return played

    def _compare(self, script: Script, ours: Trace | Exception, theirs: Trace) -> str | None:
        if isinstance(ours, Exception):
            return f"ours crashed: {ours!r}"
        said, met = compare(script, ours, theirs, real=self._real)
        self.met.update(met)
        return said


INFORMER = InformerSuite("informer", INFORMER_V030, "delta")
INFORMER_036 = InformerSuite("informer-036", INFORMER_V036, "real")
