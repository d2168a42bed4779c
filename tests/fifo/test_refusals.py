"""What queues refuse at once, of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import ConfigError, WatchEvent
from aioinformer.cache import Delta

from ..samples import pod
from .queues import KINDS, keys

pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"known_objects": {"ns/a": pod()}}, r"known_objects must be one such as Store\(\).*no list_keys"),
    ],
)
def test_what_cannot_be_asked_is_refused(kind: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        KINDS[kind](**options)


@pytest.mark.parametrize("wrong", [WatchEvent("DELETED", pod()), Delta("DELETED", pod())], ids=repr)  # type: ignore[arg-type]
async def test_what_is_no_change_is_refused_rather_than_taken_for_an_update(kind: str, wrong: Any) -> None:
    fifo = KINDS[kind]()
    await fifo.add(pod("a"))
    with pytest.raises(
        ConfigError, match=f"Deltas of the types Added, .*not {type(wrong).__name__} of 'DELETED'"
    ):
        await fifo.apply([wrong])
    assert keys(fifo) == ["ns/a"]
    await fifo.apply([Delta("Deleted", pod("a"))])  # type: ignore[arg-type]  # a plain string does as well
    assert keys(fifo) in (["ns/a"], ["ns/a", "ns/a"])
