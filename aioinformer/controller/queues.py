"""The queues that an informer can have (client-go ``newQueueFIFO``)."""

from __future__ import annotations

from typing import Any, Literal, get_args

from ..errors import ConfigError, KeyFuncError
from ..fifo import DeltaFIFO, RealFIFO
from ..objects.keys import KeyFunc
from ..protocols import KnownObjects, Transformer

QueueName = Literal["delta", "real"]
"""DeltaFIFO; or RealFIFO as upstream has it by default: with atomic events and bookmarks, unlocked meanwhile."""


def require_queue(name: object) -> None:
    """Find out a queue that does not exist.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in get_args(QueueName):
        known = ", ".join(repr(each) for each in get_args(QueueName))
        raise ConfigError(f"no queue named {name!r}; there are: {known}")


def make_queue(
    name: QueueName,
    key_func: KeyFunc,
    known_objects: KnownObjects[Any],
    transformer: Transformer[Any] | None = None,
) -> DeltaFIFO | RealFIFO:
    """A queue between a Reflector and a Store.

    Args:
        name: Which.
        key_func: Gives an object's key.
        known_objects: What the store has. A RealFIFO does without: its ReplacedAll and SyncAll are made out where
            they are applied.
        transformer: Called once for each object before it is queued. One that changes an object's key has raised:
            what the store has of it would be taken for deleted.
    """
    if transformer is not None:
        transformer = _keeping_key(transformer, key_func)
    if name == "delta":
        return DeltaFIFO(key_func, known_objects, emit_delta_type_replaced=True, transformer=transformer)
    return RealFIFO(
        key_func,
        transformer=transformer,
        atomic_events=True,
        emit_delta_type_bookmark=True,
        unlock_while_processing=True,
    )


def _keeping_key(transformer: Transformer[Any], key_func: KeyFunc) -> Transformer[Any]:
    """The transformer, seen to return the same object still."""

    def transform(obj: Any) -> Any:
        key = key_func(obj)
        changed = transformer(obj)
        try:
            now = key if changed is None else key_func(changed)
        except KeyFuncError as error:
            raise ValueError(f"it returned what has no key: {error}") from None
        if now != key:
            raise ValueError(f"it changed the key to {now!r}; the object's name and namespace must stay")
        return changed

    return transform
