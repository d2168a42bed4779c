"""What handlers read of an object, and counters of their calls."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from aioinformer import field
from benchmarks.pods import SENT

from .peer import Handler, UnsupportedError

Read = Callable[[Any], int]

_node_name = field("spec.nodeName")


def _kube_metadata(obj: Any) -> int:
    metadata = obj.metadata
    return (
        len(metadata.namespace) + len(metadata.name) + len(obj.resource_version) + len(metadata.labels["app"])
    )


def _kube_field(obj: Any) -> int:
    return len(obj.namespace) + len(obj.name) + len(obj.resource_version) + len(_node_name(obj))


def _kube_whole(obj: Any) -> int:
    return _dict_whole(obj.to_dict())


def _dict_metadata(obj: Any) -> int:
    metadata = obj["metadata"]
    return (
        len(metadata["namespace"])
        + len(metadata["name"])
        + len(metadata["resourceVersion"])
        + len(metadata["labels"]["app"])
    )


def _dict_field(obj: Any) -> int:
    metadata = obj["metadata"]
    return (
        len(metadata["namespace"])
        + len(metadata["name"])
        + len(metadata["resourceVersion"])
        + len(obj["spec"]["nodeName"])
    )


def _dict_whole(obj: Any) -> int:
    return len(obj["metadata"]["name"]) + len(obj["spec"]["nodeName"]) + len(obj["status"]["phase"])


def _struct_metadata(obj: Any) -> int:
    metadata = obj.metadata
    return (
        len(metadata.namespace)
        + len(metadata.name)
        + len(metadata.resourceVersion)
        + len(metadata.labels.app)
    )


def _struct_field(obj: Any) -> int:
    metadata = obj.metadata
    return (
        len(metadata.namespace) + len(metadata.name) + len(metadata.resourceVersion) + len(obj.spec.nodeName)
    )


def _model_metadata(obj: Any) -> int:
    metadata = obj.metadata
    return (
        len(metadata.namespace)
        + len(metadata.name)
        + len(metadata.resource_version)
        + len(metadata.labels["app"])
    )


def _model_field(obj: Any) -> int:
    metadata = obj.metadata
    return (
        len(metadata.namespace)
        + len(metadata.name)
        + len(metadata.resource_version)
        + len(obj.spec.node_name)
    )


def _model_whole(obj: Any) -> int:
    return len(obj.metadata.name) + len(obj.spec.node_name) + len(obj.status.phase)


def _camel_metadata(obj: Any) -> int:
    metadata = obj.metadata
    return (
        len(metadata.namespace)
        + len(metadata.name)
        + len(metadata.resourceVersion)
        + len(metadata.labels["app"])
    )


def _camel_whole(obj: Any) -> int:
    return len(obj.metadata.name) + len(obj.spec.nodeName) + len(obj.status.phase)


_READS: dict[tuple[str, str], Read] = {
    ("kubeobject", "metadata"): _kube_metadata,
    ("kubeobject", "field"): _kube_field,
    ("kubeobject", "whole"): _kube_whole,
    ("dict", "metadata"): _dict_metadata,
    ("dict", "field"): _dict_field,
    ("dict", "whole"): _dict_whole,
    ("struct", "metadata"): _struct_metadata,
    ("struct", "field"): _struct_field,
    ("model", "metadata"): _model_metadata,
    ("model", "field"): _model_field,
    ("model", "whole"): _model_whole,
    ("camel", "metadata"): _camel_metadata,
    ("camel", "field"): _struct_field,
    ("camel", "whole"): _camel_whole,
}

_SENT: dict[str, Callable[[Any], str]] = {
    "kubeobject": lambda obj: obj.metadata.annotations[SENT],
    "dict": lambda obj: obj["metadata"]["annotations"][SENT],
    "struct": lambda obj: obj.metadata.annotations.sent,
    "model": lambda obj: obj.metadata.annotations[SENT],
    "camel": lambda obj: obj.metadata.annotations[SENT],
}


class Tally:
    """Counts handler calls, and sets ``done`` after the expected number.

    Args:
        shape: How the objects are read: one of ``kubeobject``, ``dict``, ``struct``, ``model`` or ``camel``.
        kind: What is read: ``metadata``, ``field`` or ``whole``.

    Raises:
        UnsupportedError: Objects of this shape cannot be read so.
    """

    def __init__(self, shape: str, kind: str) -> None:
        if (shape, kind) not in _READS:
            raise UnsupportedError(f"a handler cannot read {kind} of a {shape}")
        self._read, self._sent = _READS[shape, kind], _SENT[shape]
        self._remaining = self._sum = 0
        self._stamped = False
        self.latencies = array("q")
        self.done = asyncio.Event()
        self.cpu = self.ended = 0.0

    def expect(self, calls: int, *, stamped: bool = False) -> None:
        """Reset the counts."""
        self._remaining = calls
        self._stamped = stamped
        self._loop = asyncio.get_running_loop()
        self.latencies = array("q", bytes(8 * calls if stamped else 0))
        self.done.clear()

    def handler(self) -> Handler:
        """Return a handler, which may be called in another thread."""
        read, sent = self._read, self._sent

        def handle(obj: Any) -> None:
            if self._stamped:
                self.latencies[self._remaining - 1] = time.monotonic_ns() - int(sent(obj))
            self._sum += read(obj)
            self._remaining -= 1
            if not self._remaining:
                self.finish()

        return handle

    def count(self, calls: int) -> None:
        """Count calls of a handler that reads nothing."""
        self._remaining -= calls
        if not self._remaining:
            self.finish()

    def finish(self) -> None:
        self.cpu, self.ended = time.process_time(), time.monotonic_ns()
        self._loop.call_soon_threadsafe(self.done.set)


def percentiles(values: Sequence[float], unit: float = 1.0) -> dict[str, float]:
    """Return percentiles by nearest rank.

    Args:
        values: At least one.
        unit: The divisor of the values.
    """
    ordered = sorted(values)

    def at(thousandth: int) -> float:
        rank = -(-len(ordered) * thousandth // 1000)
        return round(ordered[rank - 1] / unit, 3)

    return {
        "count": len(ordered),
        "p50": at(500),
        "p90": at(900),
        "p99": at(990),
        "p999": at(999),
        "max": at(1000),
    }
