"""ReflectorState: a snapshot of what a reflector does, for logs and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..errors import ApiError
from ..metrics import Sample

POLLING = "cannot watch: polling by list"

ABSENT = "not served, which is allowed"

NO_WATCHES = frozenset({405, 501})
"""HTTP statuses of a collection that has no watches."""


def has_no_watches(refusal: Exception, version: str) -> bool:
    """Whether no client can watch the collection: the server refuses, or lists it without a version."""
    return not version or (isinstance(refusal, ApiError) and refusal.status in NO_WATCHES)


class Phase(StrEnum):
    """What a reflector is doing."""

    NEW = "new"
    LISTING = "listing"
    WATCHING = "watching"
    BACKING_OFF = "backing off"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorState:
    """A snapshot of a reflector.

    Attributes:
        name: The reflector's name.
        phase: What it is doing.
        phase_seconds: Seconds since that phase began.
        resource_version: The version up to which it has read.
        idle_seconds: Seconds since the last byte of a list or watch; None before the first. Answers that bring only an
            error do not count. The answer to a watch without events counts after 5 s, or when the watch ends without an
            error.
        last_error: The last error; None before the first, and again once a watch is healthy.
        retry_seconds: Seconds until the next attempt, while backing off.
        waiting_for: The server that does not answer, or does not accept the credentials. All its readers back off
            together and retry when it answers.
        probe_error: The last error of the probe that checks that server for all readers.
        listed: Objects of the current list so far, or of the last one.
        lists: Lists requested.
        watches: Watches requested.
        events: Events received, including bookmarks.
        rejected: Objects, events and lines that were dropped. The log has the first 20 since the last list.
        absent: Whether the server does not have this collection, which is optional: it counts as empty.
        undecodable: Objects of lists and events that did not fit the object type. They were not dropped: they are
            passed on as UndecodableObjects. The log has the first 20 since the last list.
        watch_refusal: Why it cannot watch and lists repeatedly; None while it can watch, and while lists fail.
        failed_lists: Failed lists by reason: the reason of the server's Status, such as ``"Forbidden"``, or the HTTP
            status, or the error's type. Counts the same errors that the watch error handler gets.
        failed_watches: Watches that could not be opened or ended with an error, by the same reasons.
    """

    name: str
    phase: Phase
    phase_seconds: float
    resource_version: str
    idle_seconds: float | None
    last_error: Exception | None
    retry_seconds: float | None
    waiting_for: str | None
    probe_error: Exception | None
    listed: int
    lists: int
    watches: int
    events: int
    rejected: int
    watch_refusal: Exception | None = None
    failed_lists: Mapping[str, int] = field(default_factory=dict)
    failed_watches: Mapping[str, int] = field(default_factory=dict)
    undecodable: int = 0
    absent: bool = False

    @property
    def polling(self) -> bool:
        """Whether it cannot watch and lists repeatedly: the objects are as old as the last list."""
        return self.watch_refusal is not None and self.phase in (Phase.LISTING, Phase.BACKING_OFF)

    def samples(self) -> Iterator[Sample]:
        """Yield the samples for Prometheus."""
        labels = {"reflector": self.name}
        if self.idle_seconds is not None:
            yield Sample("aioinformer_idle_seconds", "gauge", labels, self.idle_seconds)
        yield Sample("aioinformer_watching", "gauge", labels, self.phase is Phase.WATCHING)
        yield Sample("aioinformer_lists_total", "counter", labels, self.lists)
        yield Sample("aioinformer_watches_total", "counter", labels, self.watches)
        yield Sample("aioinformer_events_total", "counter", labels, self.events)
        yield Sample("aioinformer_rejected_total", "counter", labels, self.rejected)
        yield Sample("aioinformer_undecodable_total", "counter", labels, self.undecodable)
        yield Sample("aioinformer_absent", "gauge", labels, self.absent)
        yield Sample("aioinformer_polling", "gauge", labels, self.polling)
        for name, failed in (("lists", self.failed_lists), ("watches", self.failed_watches)):
            for reason, count in failed.items():
                yield Sample(
                    f"aioinformer_failed_{name}_total", "counter", {**labels, "reason": reason}, count
                )

    def __str__(self) -> str:
        polling = f"{POLLING}, " if self.polling else f"{ABSENT}, " if self.absent else ""
        text = f"{self.name}: {polling}{self.phase} for {self.phase_seconds:.1f} s"
        if self.phase is Phase.LISTING and self.listed:
            text += f", {self.listed} objects so far"
        if self.waiting_for is not None:
            refused = isinstance(self.last_error, ApiError) and self.last_error.status == 401
            text += f", until {self.waiting_for} {'accepts the credentials' if refused else 'answers'}"
            if self.probe_error is not None:
                now = str(self.probe_error).removeprefix(f"{self.waiting_for}: ")
                text += "" if now in str(self.last_error) else f" (now: {now})"
        elif self.retry_seconds is not None:
            text += f", next try in {self.retry_seconds:.1f} s"
        text += (
            ", nothing read yet"
            if self.idle_seconds is None
            else f", last byte {self.idle_seconds:.1f} s ago"
        )
        if self.rejected:
            text += f", {self.rejected} dropped, which could not be read (the log names them)"
        return text if self.last_error is None else f"{text}; last error: {self.last_error}"
