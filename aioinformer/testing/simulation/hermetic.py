"""Keeping the machine out: time and chance, as the package takes them from the machine, come from the seed."""

from __future__ import annotations

import random as chance
import sys
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.testing.simulation.loop import START, VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

EPOCH = 1_750_000_000.0
"""The wall clock at the beginning of a simulation."""

_LONG = 0.003
"""Seconds, longer than a turn of `aioinformer._core.coop`: so work is interrupted here and there."""


@contextmanager
def hermetic(random: Random, loop: VirtualTimeLoop) -> Iterator[None]:
    """While this is entered, nothing in `aioinformer` looks at the real clock, or draws without a seed.

    How long a piece of work may hold the event loop is measured in real time, and a machine that is busy would
    interrupt it elsewhere each time. Here the seed says where, and virtual time passes meanwhile.
    """
    long_ones = random.choice((0.0, 0.02, 0.1))
    now = 0.0

    def clock() -> float:
        nonlocal now
        if random.random() < long_ones:
            now += _LONG
            loop.work(_LONG)
        now += 1e-6
        return now

    def seeded(seed: Any = None) -> Random:
        return chance.Random(random.getrandbits(64) if seed is None else seed)

    def wall() -> float:
        return EPOCH + loop.time() - START

    def new_uuid() -> uuid.UUID:
        return uuid.UUID(int=random.getrandbits(128), version=4)

    instead = {
        "perf_counter": (time.perf_counter, clock),
        "time": (time.time, wall),
        "uuid4": (uuid.uuid4, new_uuid),
        "Random": (chance.Random, seeded),
    }
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("aioinformer.")]
    replaced = [
        (names, name, real)
        for names in modules
        for name, (real, _) in instead.items()
        if names.get(name) is real
    ]
    for names, name, _ in replaced:
        names[name] = instead[name][1]
    try:
        yield
    finally:
        for names, name, real in replaced:
            names[name] = real
