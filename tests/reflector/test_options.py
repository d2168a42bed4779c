"""Options are checked where they are given: their names, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import (
    Client,
    ConfigError,
    KubeObject,
    Reflector,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    SharedInformerFactory,
    Store,
    new_informer,
)
from aioinformer.cache import ReflectorOptions
from aioinformer.reflector.options import check_options

from .running import plain_store
from .scripted import Scripted

SECONDS = (
    "min_watch_timeout",
    "max_internal_error_retry_duration",
    "list_timeout",
    "initial_events_timeout",
)
WRONG: list[tuple[str, Any]] = [
    *((name, value) for name in SECONDS for value in (-1, math.nan, math.inf, "5", True)),
    ("page_size", -5),
    ("page_size", 2.5),
    ("page_size", True),
    ("use_watch_list", "yes"),
    ("use_watch_list", 1),
    ("watch_error_handler", "log"),
    ("name", 5),
    ("random", 0.5),
]


def reflector(**options: Any) -> Any:
    return Reflector(Scripted(), KubeObject, plain_store(), **options)


def informer(**options: Any) -> Any:
    return SharedIndexInformer(Scripted(), KubeObject, **options)


def low_level(**options: Any) -> Any:
    return new_informer(Scripted(), KubeObject, 0.0, ResourceEventHandlerFuncs(), **options)


def factory(**options: Any) -> Any:
    return SharedInformerFactory(Client.from_url("http://127.0.0.1:1"), **options)


EVERYWHERE = pytest.mark.parametrize("make", [reflector, informer, low_level, factory])


@EVERYWHERE
@pytest.mark.parametrize(("name", "value"), WRONG)
def test_values_that_cannot_work_are_named(make: Callable[..., Any], name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        make(**{name: value})
    assert repr(value) in str(caught.value)


def test_what_a_reflector_asks_at_once_is_plain() -> None:
    async def due() -> bool:
        return False

    with pytest.raises(ConfigError, match=r"should_resync must be a plain function, .*due"):
        reflector(should_resync=due)
    with pytest.raises(ConfigError, match=r"should_resync must be a function, not True"):
        reflector(should_resync=True)
    with pytest.raises(ConfigError, match=r"pack must be"):
        reflector(pack=5)


@pytest.mark.parametrize("make", [informer, low_level, factory])
@pytest.mark.parametrize("name", ["should_resync", "pack"])
def test_what_is_a_reflectors_alone(make: Callable[..., Any], name: str) -> None:
    """An informer resyncs as its handlers ask, and packs as ``compress`` says."""
    with pytest.raises(TypeError, match=name):
        make(**{name: lambda *_: True})


@EVERYWHERE
def test_the_watch_error_handler_is_called_with_two(make: Callable[..., Any]) -> None:
    def in_steps(reflector: Any, error: Exception) -> Any:
        yield error

    with pytest.raises(ConfigError, match=r"watch_error_handler is called with \(reflector, error\)"):
        make(watch_error_handler=lambda: None)
    with pytest.raises(ConfigError, match=r"watch_error_handler is called, not iterated over"):
        make(watch_error_handler=in_steps)


@EVERYWHERE
def test_none_is_the_default_of_each(make: Callable[..., Any]) -> None:
    make(**dict.fromkeys(ReflectorOptions.__annotations__))


@EVERYWHERE
def test_names_that_there_are_not(make: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"no option named pagesize; there are: use_watch_list"):
        make(pagesize=5)


def test_every_option_has_a_check() -> None:
    for name in ReflectorOptions.__annotations__:
        with pytest.raises(ConfigError, match=name):
            check_options({name: object()})  # type: ignore[misc]


@pytest.mark.parametrize("wrong", [Client.from_url("http://127.0.0.1:1"), Scripted, None], ids=repr)
def test_what_cannot_be_read_from(wrong: Any) -> None:
    for make in (
        lambda: Reflector(wrong, KubeObject, plain_store()),
        lambda: SharedIndexInformer(wrong, KubeObject),
        lambda: SharedIndexInformer({"red": Scripted(), "blue": wrong}, KubeObject),
        lambda: new_informer(wrong, KubeObject, 0, ResourceEventHandlerFuncs()),
    ):
        with pytest.raises(ConfigError, match=r"list_watch must be one such as ListWatch.for_resource"):
            make()


@pytest.mark.parametrize("wrong", [[], None, Store], ids=repr)
def test_what_cannot_be_written_to(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"store must be one such as Store\(\) or DeltaFIFO\(\)"):
        Reflector(Scripted(), KubeObject, wrong)


@pytest.mark.parametrize("period", [-1, math.nan, math.inf, "5"])
def test_periods_that_are_none(period: Any) -> None:
    with pytest.raises(ConfigError, match="resync_period"):
        Reflector(Scripted(), KubeObject, plain_store(), period)
    with pytest.raises(ConfigError, match="resync_period"):
        new_informer(Scripted(), KubeObject, period, ResourceEventHandlerFuncs())
    with pytest.raises(ConfigError, match="default_resync_period"):
        informer(default_resync_period=period)
    with pytest.raises(ConfigError, match="default_resync_period"):
        factory(default_resync_period=period)
    with pytest.raises(ConfigError, match="resync_period"):
        informer().add_event_handler(ResourceEventHandlerFuncs(), period)
