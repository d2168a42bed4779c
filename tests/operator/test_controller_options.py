"""The options that a Controller and a controller of an Operator have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioinformer import CachedResource, Client, ConfigError, KubeObject
from aioinformer.operator import Controller, Manager, Operator, Request
from aioinformer.operator.controller_options import ControllerOptions

WRONG: dict[str, Any] = {
    "predicate": 3,
    "sources": [7],
    "concurrency": 0,
    "timeout": -1.0,
    "finalizer": "no-domain",
    "cache_sync_timeout": float("inf"),
}


async def reconcile(request: Request[KubeObject]) -> None: ...


def pods() -> CachedResource[KubeObject]:
    return Manager(Client.from_url("http://127.0.0.1:1")).resource("pods")


@pytest.mark.parametrize("name", ControllerOptions.__annotations__)
async def test_a_wrong_value_is_refused_where_it_is_given(name: str) -> None:
    wrong = {name: WRONG[name]}
    with pytest.raises(ConfigError, match=rf"(?s)the controller reconcile.*{name.removesuffix('s')}"):
        Operator("a").controller("pods", **wrong)(reconcile)
    with pytest.raises(ConfigError, match=rf"(?s)the controller pods.*{name.removesuffix('s')}"):
        Controller("pods", reconcile, pods(), **wrong)


async def test_a_value_reaches_the_controller_of_a_run() -> None:
    async def tick() -> AsyncIterator[Request[KubeObject]]:
        yield Request("default", "a")

    operator = Operator("a")
    declare = operator.controller(
        "pods",
        finalizer="example.com/f",
        cleanup=reconcile,
        concurrency=7,
        timeout=None,
        cache_sync_timeout=3.0,
        predicate=lambda change: False,
        sources=(source for source in [tick]),
    )
    declare(reconcile)
    client = Client.from_url("http://127.0.0.1:1")
    for _ in range(2):  # each run gets the sources, also of a generator
        (controller,) = operator.manager(client).controllers
        assert (controller.finalizer, controller.cache_sync_timeout) == ("example.com/f", 3.0)
        assert controller.state.concurrency == 7
        assert [trigger.name for trigger in controller.state.triggers][1:] == [f"source {tick.__qualname__}"]


async def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    unknown: dict[str, Any] = {"concurency": 2}
    with pytest.raises(TypeError, match=r"no option named concurency; there are: .*owns.*concurrency"):
        Controller("pods", reconcile, pods(), **unknown)
    with pytest.raises(TypeError, match=r"no option named concurency; there are: .*concurrency.*owns"):
        Operator("a").controller("pods", **unknown)
