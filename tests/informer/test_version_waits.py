"""informer/version_waits.py: a goal that was reached stays reached."""

from __future__ import annotations

import pytest

from aioinformer import KubeObject, Store
from aioinformer.informer.version_waits import MOST_NAMESAKES, Goal, Gone

from ..samples import pod


@pytest.mark.parametrize("uid", ["", "old"])
def test_deletion_stays_reached_after_recreation(uid: str) -> None:
    """A waiter checks later, so the recreation must not undo it."""
    store: Store[KubeObject] = Store()
    store.put("ns/a", pod(), [])
    gone = Gone("ns/a", (uid,))
    store.remove("ns/a")
    assert gone.is_reached(store, {})
    store.put("ns/a", pod(version="2"), [])
    assert gone.is_reached(store, {})


def test_version_stays_reached_after_deletion() -> None:
    store: Store[KubeObject] = Store()
    goal = Goal("7", "ns/a", "ns")
    assert not goal.is_reached(store, {})
    store.put("ns/a", pod(version="7"), [])
    assert goal.is_reached(store, {})
    store.remove("ns/a")
    assert goal.is_reached(store, {})


def test_object_that_has_not_arrived_is_not_gone() -> None:
    store: Store[KubeObject] = Store()
    gone = Gone("ns/a", ("uid-a",), Goal("7", "ns/a", "ns"))
    assert not gone.is_reached(store, {})
    store.put("ns/a", pod(version="7"), [])
    assert not gone.is_reached(store, {})
    store.remove("ns/a")
    assert gone.is_reached(store, {})


def test_deletions_of_a_name_are_one_bounded_goal() -> None:
    goal: Goal = Goal("7", "ns/a", "ns")
    for number in range(2 * MOST_NAMESAKES):
        goal = Gone("ns/a", (str(number),)).behind(goal)
    assert isinstance(goal, Gone)
    assert goal.uids == tuple(str(number) for number in range(MOST_NAMESAKES, 2 * MOST_NAMESAKES))
    assert (goal.number, goal.written and goal.written.version) == (7, "7")
