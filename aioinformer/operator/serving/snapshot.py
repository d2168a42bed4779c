"""The data of ``/debug.json``: what a Manager is doing now, ready for JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any

import msgspec

from ... import __version__
from ..._core.texts import valid_text
from ...errors import message_of
from ...leaderelection import LeaderElector
from ...sharding import ShardingState
from ...tracing import StageTimes
from ..controller import Controller
from ..manager import Manager
from ..state import ControllerState

LISTED = 200
"""Failing keys that are listed by default."""
MOST_LISTED = 10_000
LONGEST_TEXT = 1000
"""Characters of an error: an API server's may be megabytes long."""
MOST_RUNNING = 50
"""Running reconciles that are listed for each controller."""

_DURATIONS = {
    "controller_runtime_reconcile_time_seconds": "reconcile_seconds",
    "workqueue_queue_duration_seconds": "queue_seconds",
}


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """What a process knows of itself, beside its manager.

    Attributes:
        problems: What is wrong now, by the reason of its Event: ``{"LogsLost": "log lines cannot be ..."}``.
        certificate_expires: When the certificate of its webhooks expires, in seconds since 1970; None without one.
        definitions: Digests of what its classes define, by the names of their definitions: releases differ in them.
    """

    problems: Mapping[str, str] = {}
    certificate_expires: float | None = None
    definitions: Mapping[str, str] = {}


class Debug:
    """Takes snapshots of a Manager.

    Args:
        manager: The manager.
        name: The operator's name.
        elector: Its elector; None without leader election.
        stages: The hook of its tracers; None if tracing is off.
        process: Returns what else the process knows of itself.
    """

    def __init__(
        self,
        manager: Manager,
        name: str,
        *,
        elector: LeaderElector | None = None,
        stages: StageTimes | None = None,
        process: Callable[[], ProcessState] = ProcessState,
    ) -> None:
        self.manager = manager
        self.name = name
        self._elector = elector
        self._stages = stages
        self._process = process
        self._started = monotonic()

    def snapshot(self, contains: str = "", limit: int = LISTED) -> dict[str, Any]:
        """Return what the manager is doing. Call it in its event loop.

        Args:
            contains: Failing keys are listed if this is part of their controller, key or error; in any case.
            limit: How many failing keys are listed.
        """
        manager = self.manager
        state, healthy, ready = manager.state, manager.healthy(), manager.ready()
        snapshot = {
            "name": self.name,
            "version": __version__,
            "pid": os.getpid(),
            "server": manager.client.server,
            "uptime_seconds": monotonic() - self._started,
            "healthy": healthy.reasons,
            "ready": ready.reasons,
            "warnings": ready.warnings,
            **msgspec.structs.asdict(self._process()),
            "leader": self._leader(state.leading, state.election_error),
            "sharding": _sharding(state.sharding),
            "informers": [informer.summary() for informer in state.informers],
            "controllers": [
                _controller(*pair) for pair in zip(manager.controllers, state.controllers, strict=True)
            ],
            "webhooks": state.webhooks,
            "failing": self._list_failing(contains.casefold(), limit),
            "stages": None if self._stages is None else self._stages.summary(),
        }
        plain: dict[str, Any] = _with_short_texts(msgspec.to_builtins(snapshot, enc_hook=str, str_keys=True))
        return plain

    def _leader(self, leading: bool | None, error: Exception | None) -> dict[str, Any] | None:
        if leading is None or self.manager.sharding is not None:
            return None
        state = None if self._elector is None else self._elector.state
        return {
            "leading": leading,
            "lease": None if state is None else state.lease,
            "identity": None if state is None else state.identity,
            "leader": None if state is None else state.leader,
            "renewed_seconds": None if state is None else state.renewed_seconds,
            "error": None if error is None else message_of(error),
        }

    def _list_failing(self, contains: str, limit: int) -> dict[str, Any]:
        listed: list[dict[str, Any]] = []
        total = matching = 0
        for controller in self.manager.controllers:
            for failure in controller.failing():
                total += 1
                if contains and contains not in f"{controller.name} {failure.key} {failure.error}".casefold():
                    continue
                matching += 1
                if len(listed) < limit:
                    listed.append({"controller": controller.name, **msgspec.to_builtins(failure)})
        return {"total": total, "matching": matching, "keys": listed}


def shorten(text: str) -> str:
    """Return a text that is valid in JSON, of at most LONGEST_TEXT characters, and how long it was."""
    text = valid_text(text)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}... ({len(text):,} characters)"


def _with_short_texts(value: Any) -> Any:
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, dict):
        return {shorten(name): _with_short_texts(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(_with_short_texts, value)]
    return value


def _sharding(state: ShardingState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    fields: dict[str, Any] = msgspec.to_builtins(state, enc_hook=str, str_keys=True)
    return {**fields, "load": None if state.load is None else state.load._asdict()}


def _controller(controller: Controller[Any], state: ControllerState) -> dict[str, Any]:
    return {
        "name": state.name,
        "working": state.working,
        "unsynced": state.unsynced,
        "workers": state.workers,
        "concurrency": state.concurrency,
        "queue": state.queue,
        "reconciles": state.reconciles,
        "failed": state.failed,
        "terminal": state.terminal,
        "timed_out": state.timed_out,
        "failing": state.failing,
        "failing_seconds": state.failing_seconds,
        "queued_seconds": state.queued_seconds,
        "unfit": state.unfit,
        "last_success": state.last_success,
        "given_up": state.given_up,
        "last_error_key": state.last_error_key,
        "last_error": None if state.last_error is None else message_of(state.last_error),
        "running": state.running[:MOST_RUNNING],
        "running_total": len(state.running),
        "triggers": state.triggers,
        "durations": dict(_durations(controller)),
    }


def _durations(controller: Controller[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the histograms of how long reconciles took, and how long their keys waited: cumulated counts by bound."""
    buckets: dict[str, list[tuple[str, float]]] = {name: [] for name in _DURATIONS}
    for sample in controller.samples():
        if sample.name in buckets and sample.suffix == "_bucket":
            buckets[sample.name].append((sample.labels["le"], sample.value))
    for name, short in _DURATIONS.items():
        yield short, buckets[name]
