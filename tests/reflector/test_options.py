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

from .running import plain_store
from .scripted import Scripted

SECONDS = (
    "min_watch_timeout",
    "max_internal_error_retry_duration",
    "list_timeout",
    "max_silence",
    "initial_events_timeout",
)
WRONG: list[tuple[str, Any]] = [
    *((name, value) for name in SECONDS for value in (-1, math.nan, math.inf, "5", True)),
    ("page_size", -5),
    ("page_size", 2.5),
    ("page_size", True),
    ("watch_error_handler", "log"),
    ("use_watch_list", "no"),
    ("drop_managed_fields", "false"),
    ("name", 5),
    ("random", 42),
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
def test_bad_option_value_is_an_error_that_names_the_option(
    make: Callable[..., Any], name: str, value: Any
) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        make(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("make", [informer, low_level, factory])
@pytest.mark.parametrize("name", ["should_resync", "pack"])
def test_informers_refuse_options_of_the_reflector_alone(make: Callable[..., Any], name: str) -> None:
    """An informer resyncs as its handlers ask, and packs as ``compress`` says."""
    with pytest.raises(TypeError, match=name):
        make(**{name: lambda *_: True})


@EVERYWHERE
def test_watch_error_handler_with_a_wrong_signature_is_an_error(make: Callable[..., Any]) -> None:
    def in_steps(reflector: Any, error: Exception) -> Any:
        yield error

    with pytest.raises(ConfigError, match=r"watch_error_handler is called with \(reflector, error\)"):
        make(watch_error_handler=lambda: None)
    with pytest.raises(ConfigError, match=r"watch_error_handler is called, not iterated over"):
        make(watch_error_handler=in_steps)


@EVERYWHERE
def test_none_means_the_default(make: Callable[..., Any]) -> None:
    make(**dict.fromkeys(ReflectorOptions.__annotations__))


@EVERYWHERE
def test_unknown_option_is_a_type_error(make: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"no option named pagesize; there are: .*use_watch_list"):
        make(pagesize=5)


def test_an_unknown_option_of_a_factory_names_the_factorys_own_options() -> None:
    make: Any = SharedInformerFactory
    with pytest.raises(
        TypeError, match=r"no option named resync; there are: .*default_resync_period, .*page_size"
    ):
        make(Client.from_url("http://127.0.0.1:1"), resync=3)


@pytest.mark.parametrize("wrong", [Client.from_url("http://127.0.0.1:1"), Scripted, None], ids=repr)
def test_wrong_list_watch_is_an_error(wrong: Any) -> None:
    for make in (
        lambda: Reflector(wrong, KubeObject, plain_store()),
        lambda: SharedIndexInformer(wrong, KubeObject),
        lambda: SharedIndexInformer({"red": Scripted(), "blue": wrong}, KubeObject),
        lambda: new_informer(wrong, KubeObject, 0, ResourceEventHandlerFuncs()),
    ):
        with pytest.raises(ConfigError, match=r"list_watch must be one such as ListWatch.for_resource"):
            make()


@pytest.mark.parametrize("wrong", [[], None, Store], ids=repr)
def test_wrong_store_is_an_error(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"store must be one such as Store\(\) or DeltaFIFO\(\)"):
        Reflector(Scripted(), KubeObject, wrong)


@pytest.mark.parametrize("period", [-1, math.nan, math.inf, "5"])
def test_bad_resync_period_is_an_error(period: Any) -> None:
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
