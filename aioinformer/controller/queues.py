"""The queues of an informer, by name (client-go ``newQueueFIFO``)."""

from __future__ import annotations

from typing import Any, Literal, get_args

from ..errors import ConfigError, KeyFuncError
from ..fifo import DeltaFIFO, RealFIFO
from ..objects.keys import KeyFunc
from ..protocols import KnownObjects, Transformer

QueueName = Literal["delta", "real"]
"""``"delta"``: DeltaFIFO. ``"real"``: RealFIFO as in upstream: atomic events, bookmarks, unlocked processing."""


def require_queue(name: object) -> None:
    """Check that a queue of this name exists.

    Raises:
        ConfigError: There is none.
    """
    if name not in get_args(QueueName):
        known = ", ".join(repr(arg) for arg in get_args(QueueName))
        raise ConfigError(f"no queue named {name!r}; there are: {known}")


def make_queue(
    name: QueueName,
    key_func: KeyFunc,
    known_objects: KnownObjects[Any],
    transformer: Transformer[Any] | None = None,
) -> DeltaFIFO | RealFIFO:
    """Return a queue between a Reflector and a Store.

    Args:
        name: Which queue.
        key_func: Returns an object's key.
        known_objects: The store's objects, for a DeltaFIFO. The consumer of a RealFIFO compares with the store itself.
        transformer: Called once for each object before it is queued. If it changes an object's key, the object is
            rejected: the stored object would count as deleted.

    Raises:
        ConfigError: There is no such queue.
    """
    require_queue(name)
    if transformer is not None:
        transformer = _require_same_key(transformer, key_func)
    if name == "delta":
        return DeltaFIFO(key_func, known_objects, emit_delta_type_replaced=True, transformer=transformer)
    return RealFIFO(
        key_func,
        transformer=transformer,
        atomic_events=True,
        emit_delta_type_bookmark=True,
        unlock_while_processing=True,
    )


def _require_same_key(transformer: Transformer[Any], key_func: KeyFunc) -> Transformer[Any]:
    """Wrap a transformer so that a changed key is an error."""

    def transform(obj: Any) -> Any:
        key = key_func(obj)
        changed = transformer(obj)
        try:
            now = key if changed is None else key_func(changed)
        except KeyFuncError as error:
            raise ValueError(f"it returned an object without a key: {error}") from None
        if now != key:
            raise ValueError(f"it changed the key to {now!r}; the object's name and namespace must stay")
        return changed

    return transform
