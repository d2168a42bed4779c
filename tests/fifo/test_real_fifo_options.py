"""fifo/real_fifo.py: valid combinations of options. Corner C23."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from aioinformer import ConfigError, RealFIFO

from .samples import by_default, obj, real, store_of


@pytest.mark.parametrize(
    ("with_known", "atomic", "bookmarks", "unlocked"), [*product([False, True], repeat=4)]
)
def test_invalid_combinations_are_refused_c23(
    with_known: bool, atomic: bool, bookmarks: bool, unlocked: bool
) -> None:
    """Upstream panics."""
    allowed = not with_known if atomic else with_known and not bookmarks and not unlocked

    def make() -> RealFIFO:
        return RealFIFO(
            known_objects=store_of() if with_known else None,
            atomic_events=atomic,
            emit_delta_type_bookmark=bookmarks,
            unlock_while_processing=unlocked,
        )

    if allowed:
        assert len(make()) == 0
    else:
        with pytest.raises(ConfigError, match=r"RealFIFO: .*(atomic_events|known_objects)"):
            make()


@pytest.mark.parametrize("size", [0, -1, 1.5, "1", True, None])
def test_batch_size_must_be_positive(size: Any) -> None:
    with pytest.raises(ConfigError, match=f"RealFIFO: batch_size must be .*, not {size!r}"):
        real(batch_size=size)


async def test_bookmarks_are_queued_only_if_enabled_c23() -> None:
    """TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue, "Bookmark object should not be added ..."."""
    fifos: list[tuple[Any, int]] = [(real(store_of()), 0), (real(), 0), (by_default(), 1)]
    for fifo, expected in fifos:
        await fifo.bookmark("7")
        assert len(fifo) == expected
        await fifo.add(obj("a"))
        assert len(fifo) == expected + 1
