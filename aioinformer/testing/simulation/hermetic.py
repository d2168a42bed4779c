"""Isolation from the machine: the package's clocks and random numbers come from the seed."""

from __future__ import annotations

import itertools
import random as chance
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anyio._backends._asyncio import CancelScope

from aioinformer.testing.simulation.loop import START, VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

EPOCH = 1_750_000_000.0
"""The wall clock at the start of a simulation."""

_LONG = 0.003
"""Seconds, longer than a budget of `aioinformer._core.coop`, so that some work is interrupted."""


@contextmanager
def hermetic(random: Random, loop: VirtualTimeLoop) -> Iterator[None]:
    """Replace the real clock and unseeded random numbers in all modules of `aioinformer`.

    The package measures in real time how long a step blocks the event loop, so a busy machine would interrupt steps at
    other places in each run. Here the seed decides where, and virtual time passes meanwhile.
    """
    long_steps = random.choice((0.0, 0.02, 0.1))
    now = 0.0

    def clock() -> float:
        nonlocal now
        if random.random() < long_steps:
            now += _LONG
            loop.work(_LONG)
        now += 1e-6
        return now

    def make_seeded(seed: Any = None) -> Random:
        return chance.Random(random.getrandbits(64) if seed is None else seed)

    def wall() -> float:
        return EPOCH + loop.time() - START

    def new_uuid() -> uuid.UUID:
        return uuid.UUID(int=random.getrandbits(128), version=4)

    replacements = {
        "perf_counter": (time.perf_counter, clock),
        "time": (time.time, wall),
        "uuid4": (uuid.uuid4, new_uuid),
        "Random": (chance.Random, make_seeded),
        "SystemRandom": (chance.SystemRandom, make_seeded),
    }
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("aioinformer.")]
    replaced = [
        (names, name, real)
        for names in modules
        for name, (real, _) in replacements.items()
        if names.get(name) is real
    ]
    undo_scopes = _number_cancel_scopes()
    for names, name, _ in replaced:
        names[name] = replacements[name][1]
    try:
        yield
    finally:
        undo_scopes()
        for names, name, real in replaced:
            names[name] = real


def _number_cancel_scopes() -> Callable[[], None]:
    """Hash new cancel scopes of this thread by number; return a function that undoes it.

    anyio keeps child scopes in sets. Hashed by address, they would be cancelled in another order in each run.
    """
    numbers: dict[int, int] = {}
    counter, thread = itertools.count(1), threading.get_ident()
    real_init, real_hash = CancelScope.__init__, CancelScope.__hash__

    def init(self: CancelScope, *args: Any, **options: Any) -> None:
        real_init(self, *args, **options)
        if threading.get_ident() == thread:
            numbers[id(self)] = next(counter)
        else:
            numbers.pop(id(self), None)

    def undo() -> None:
        setattr(CancelScope, "__init__", real_init)  # noqa: B010
        setattr(CancelScope, "__hash__", real_hash)  # noqa: B010

    setattr(CancelScope, "__init__", init)  # noqa: B010
    setattr(CancelScope, "__hash__", lambda self: numbers.get(id(self)) or real_hash(self))  # noqa: B010
    return undo
