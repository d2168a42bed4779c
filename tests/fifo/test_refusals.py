"""Arguments that every kind of queue refuses."""

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
def test_invalid_options_are_refused(kind: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        KINDS[kind](**options)


@pytest.mark.parametrize("wrong", [WatchEvent("DELETED", pod()), Delta("DELETED", pod())], ids=repr)  # type: ignore[arg-type]
async def test_apply_refuses_unknown_types(kind: str, wrong: Any) -> None:
    fifo = KINDS[kind]()
    await fifo.add(pod("a"))
    with pytest.raises(
        ConfigError, match=f"Deltas of the types Added, .*not {type(wrong).__name__} of 'DELETED'"
    ):
        await fifo.apply([wrong])
    assert keys(fifo) == ["ns/a"]
    await fifo.apply([Delta("Deleted", pod("a"))])  # type: ignore[arg-type]  # a string is accepted
    assert keys(fifo) in (["ns/a"], ["ns/a", "ns/a"])
