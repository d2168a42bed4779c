"""deltas.py: the items of a queue."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import pytest

from aioinformer import DeletedFinalStateUnknown
from aioinformer.cache import Delta, DeltaType

from .samples import pod


class TestTombstones:
    def test_deltas_compare_by_value(self) -> None:
        tombstone = DeletedFinalStateUnknown("ns/a", pod())
        same = DeletedFinalStateUnknown(key="ns/a", obj=pod())
        assert tombstone == same
        assert hash(tombstone) == hash(same)
        assert tombstone != DeletedFinalStateUnknown("ns/a", None)
        assert tombstone == copy.deepcopy(tombstone) == pickle.loads(pickle.dumps(tombstone))
        assert repr(DeletedFinalStateUnknown[Any]("a", None)) == "DeletedFinalStateUnknown(key='a', obj=None)"
        with pytest.raises(AttributeError):
            tombstone.key = "ns/b"  # type: ignore[misc]

    def test_deltas_match_patterns_by_position(self) -> None:
        match DeletedFinalStateUnknown[Any]("ns/a", None):
            case DeletedFinalStateUnknown(key, obj):
                assert (key, obj) == ("ns/a", None)


def test_garbage_collector_does_not_track_queued_deltas() -> None:
    tombstone = DeletedFinalStateUnknown("ns/a", pod())
    assert not gc.is_tracked(tombstone)
    assert not gc.is_tracked(Delta(DeltaType.DELETED, tombstone))
