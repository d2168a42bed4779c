"""Metrics as plain samples, and their exposition by prometheus-client (extra ``metrics``).

States yield samples when they are asked, so events and reconciles pay nothing for Prometheus.
"""

from __future__ import annotations

__all__ = ["Histogram", "Sample", "SamplesCollector", "exposition", "labelled", "render"]

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from ._core.cancellation import CALL_ERRORS
from ._core.texts import valid_text
from .errors import AioInformerError, ConfigError, message_of, shorten

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from ._core.own_registry import OwnRegistry

SECONDS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
"""controller-runtime's histogram bounds for the durations of queueing and work."""

LONGEST_REASON = 300
"""Characters of a message about metrics that are left out."""

CERTIFICATE_EXPIRY = "aioinformer_certificate_expiry_timestamp_seconds"

MEANINGS = {
    "aioinformer_synced": "Whether the whole first list was processed.",
    "aioinformer_objects": "Objects in the cache.",
    "aioinformer_undecodable_objects": "Objects in the cache that do not fit the object type.",
    "aioinformer_queue_depth": "Items that wait between reading and the store.",
    "aioinformer_failed_total": "Items whose processing raised.",
    "aioinformer_handlers_leaving": "Removed handlers whose last call has not ended.",
    "aioinformer_idle_seconds": "Seconds since the last byte of a list or watch.",
    "aioinformer_watching": "Whether a watch is open.",
    "aioinformer_lists_total": "Lists started.",
    "aioinformer_watches_total": "Watches requested.",
    "aioinformer_failed_lists_total": "Lists that failed, by reason.",
    "aioinformer_failed_watches_total": "Watches that could not be opened or ended with an error, by reason.",
    "aioinformer_absent": "Whether the server does not have the collection, which is optional.",
    "aioinformer_polling": "Whether the collection cannot be watched and is listed repeatedly.",
    "aioinformer_events_total": "Watch events received, including bookmarks.",
    "aioinformer_rejected_total": "Objects, events and lines that were dropped.",
    "aioinformer_undecodable_total": "Objects of lists and events that did not fit the object type.",
    "aioinformer_handler_depth": "Notifications that wait for the handler, including the one being handled.",
    "aioinformer_handler_high_water": "The most notifications that ever waited for the handler.",
    "aioinformer_handler_delivered_total": "Calls of the handler that returned or raised.",
    "aioinformer_handler_failed_total": "Calls of the handler that raised.",
    "aioinformer_handler_coalesced_total": "Notifications that were merged with newer ones of the same object.",
    "aioinformer_handler_dropped_total": "Notifications that were dropped for newer ones of other objects.",
    "aioinformer_feed_subscribers": "Subscribers of the change feed.",
    "aioinformer_feed_behind": "Changes that the slowest subscriber has not read.",
    "aioinformer_feed_changes": "Changes that the feed keeps.",
    "aioinformer_feed_snapshots": "Snapshots that are in memory for subscribers.",
    "aioinformer_feed_changes_total": "Changes so far.",
    "aioinformer_feed_resets_total": "Snapshots that subscribers have begun.",
    "aioinformer_sharding_slots": "Slots of the whole key space.",
    "aioinformer_sharding_owned_slots": "Slots of this replica.",
    "aioinformer_sharding_leaving_slots": "Slots that wait for running work to end before another replica gets them.",
    "aioinformer_sharding_replicas": "Replicas that share the slots.",
    "aioinformer_sharding_moves_total": "Slots that this replica has got or given back.",
    "aioinformer_sharding_moved_seconds": "Seconds since this replica last got or gave back a slot.",
    "aioinformer_sharding_objects": "Cached objects, by slot.",
    "aioinformer_sharding_server_selects": "Whether the server selects this replica's objects, by informer.",
    "controller_runtime_reconcile_total": "Reconciles that ended, by result.",
    "controller_runtime_reconcile_errors_total": "Reconciles that failed.",
    "controller_runtime_terminal_reconcile_errors_total": "Reconciles that failed and are not retried.",
    "aioinformer_log_lines_lost_total": "Log lines that could not be written.",
    "aioinformer_failing_keys": "Objects whose last reconcile failed.",
    "aioinformer_oldest_failing_key_seconds": "Seconds that the longest failing object fails.",
    "aioinformer_oldest_queued_key_seconds": "Seconds that the longest waiting object waits for a worker.",
    "aioinformer_unfit_objects": "Objects to reconcile that do not fit their class.",
    "aioinformer_last_success_timestamp_seconds": "When the last reconcile succeeded, in seconds since the epoch.",
    "aioinformer_given_up_keys_total": "Keys that are retried no more: their objects are gone, and they kept failing.",
    "controller_runtime_reconcile_timeouts_total": "Reconciles that took too long.",
    "controller_runtime_reconcile_time_seconds": "Seconds that reconciles took.",
    "controller_runtime_active_workers": "Reconciles that are running.",
    "controller_runtime_max_concurrent_reconciles": "Reconciles that may run at once.",
    "workqueue_depth": "Items that wait for a worker.",
    "workqueue_adds_total": "Items added.",
    "workqueue_queue_duration_seconds": "Seconds that items waited for a worker.",
    "workqueue_work_duration_seconds": "Seconds that items were processed.",
    "workqueue_unfinished_work_seconds": "Seconds that the items in progress have been processed so far, in total.",
    "workqueue_longest_running_processor_seconds": "Seconds that the oldest item in progress has taken so far.",
    "workqueue_retries_total": "Items added with a delay.",
    "aioinformer_webhook_reviews_total": "Webhook calls that ended, by result.",
    "controller_runtime_webhook_requests_in_flight": "Webhook calls that are running.",
    "controller_runtime_webhook_latency_seconds": "Seconds that webhook calls took.",
    "leader_election_master_status": "Whether this is the leader.",
    "aioinformer_webhook_unconverted_objects_total": "Objects that a conversion left as they were: they do not fit.",
    "controller_runtime_webhook_requests_total": "Webhook calls that ended, by HTTP status.",
    "certwatcher_read_certificate_total": "Certificate reads of the webhooks' server.",
    "certwatcher_read_certificate_errors_total": "Certificate reads of the webhooks' server that failed.",
    CERTIFICATE_EXPIRY: "When a certificate expires, in seconds since 1970.",
    "rest_client_requests_total": "Requests to the API server, by method and HTTP status.",
    "rest_client_request_duration_seconds": "Seconds until answers of the API server began, by method.",
    "aioinformer_event_loop_lag_seconds": "Seconds that timers of the event loop were late, once a second.",
}
"""The help text of each metric."""


class Sample(NamedTuple):
    """One value of a metric, as Prometheus defines it.

    Attributes:
        name: ``"workqueue_depth"``.
        kind: ``"gauge"``, ``"counter"`` or ``"histogram"``.
        labels: Its labels.
        value: The value.
        suffix: For histograms, ``"_bucket"``, ``"_sum"`` or ``"_count"``.
    """

    name: str
    kind: str
    labels: dict[str, str]
    value: float
    suffix: str = ""


class Histogram:
    """Counts values by size, as a Prometheus histogram.

    Args:
        bounds: Upper bounds of at most six digits, ascending; larger values count too.
    """

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    @property
    def buckets(self) -> list[tuple[str, int]]:
        """How many values were at most so large: cumulated counts by bound, ``"+Inf"`` last."""
        bounds = (*(f"{bound:g}" for bound in self._bounds), "+Inf")  # as client_golang writes them
        return list(zip(bounds, accumulate(self.counts), strict=True))

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
        """Yield the samples of a histogram with this name."""
        buckets = self.buckets
        for bound, total in buckets:
            yield Sample(name, "histogram", {**labels, "le": bound}, total, "_bucket")
        yield Sample(name, "histogram", labels, self.sum, "_sum")
        yield Sample(name, "histogram", labels, buckets[-1][1], "_count")


def labelled(samples: Iterable[Sample], **labels: str) -> Iterator[Sample]:
    """Yield samples with additional labels in front of their own, such as ``cluster="east"``."""
    for sample in samples:
        yield sample._replace(labels={**labels, **sample.labels})


class Registry(Protocol):
    """What has metrics of prometheus-client: a CollectorRegistry, or a collector."""

    def collect(self) -> Iterable[Any]:
        """Return its families, each a Metric."""
        ...


@runtime_checkable
class _Collectors(Protocol):
    """A registry that also gives its collectors one by one."""

    def collectors(self) -> Iterable[Registry]: ...


class LeftOutError(AioInformerError):
    """Why metrics of your own are left out of an answer.

    Attributes:
        what: The collector, with the family's name unless all of its families are left out.
        reason: The collector's error, or what is wrong with the family.
    """

    def __init__(self, what: str, reason: BaseException) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        reason = message_of(self.reason)[:LONGEST_REASON]  # prometheus-client shows the whole family
        return f"metrics of your own were left out: {self.what}: {reason}"


class SamplesCollector:
    """A collector of prometheus-client: gives a registry of yours the samples of a factory or a manager.

    ``REGISTRY.register(SamplesCollector(factory.samples))``

    Args:
        samples: Returns the samples; called at each scrape.

    Raises:
        ConfigError: prometheus-client is not installed.
    """

    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        require_prometheus_client()
        self._samples = samples

    def describe(self) -> Iterable[Any]:
        """Return nothing: the names are known at the scrape only."""
        return ()

    def collect(self) -> Iterable[Any]:
        """Return the families of the samples."""
        return _families(self._samples()).values()


_LeaveOut = Callable[[str, BaseException], None]


class _Families:
    """What an encoder of prometheus-client writes."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposition(samples: Iterable[Sample], *registries: Registry) -> str:
    """Return samples in Prometheus' text format.

    Args:
        samples: The samples.
        *registries: Registries of prometheus-client, whose metrics follow.

    Raises:
        ConfigError: prometheus-client is not installed, or a registry has a metric of aioinformer's name.
        Exception: A collector of a registry failed with this error, or its metrics cannot be written.
    """
    return render(samples, registries)[0].decode()


def render(
    samples: Iterable[Sample],
    registries: Iterable[Registry] = (),
    *,
    accept: str = "",
    on_error: Callable[[LeftOutError], object] | None = None,
) -> tuple[bytes, str]:
    """Return the answer to a scrape, and its Content-Type.

    Args:
        samples: The samples.
        registries: Registries of prometheus-client with metrics of your own.
        accept: The scrape's Accept header: Prometheus asks for OpenMetrics or a version of the text format.
        on_error: Called for each collector that fails, which keeps the families that it has returned, and for each
            family that has the name of another one or cannot be written. They are left out. None raises the error.

    Raises:
        ConfigError: prometheus-client is not installed.
    """
    require_prometheus_client()
    from prometheus_client.exposition import choose_encoder

    try:
        encode, content_type = choose_encoder(accept)
    except Exception:  # it asks for a version that is none
        encode, content_type = choose_encoder("")

    def leave_out(what: str, error: BaseException) -> None:
        if on_error is None:
            raise error
        on_error(LeftOutError(what, error))

    ours = [*_families(samples, is_canonical="openmetrics" in content_type).values()]
    families = [(family.name, family) for family in ours]
    families += _own_families(registries, ours, leave_out)
    try:
        return encode(_Families(family for _, family in families)), content_type
    except Exception:
        fit = [family for what, family in families if _is_writable(encode, what, family, leave_out)]
        return encode(_Families(fit)), content_type


def new_registry() -> OwnRegistry:
    """Return an empty registry of prometheus-client.

    Raises:
        ConfigError: prometheus-client is not installed.
    """
    require_prometheus_client()
    from ._core.own_registry import OwnRegistry

    return OwnRegistry()


def require_prometheus_client() -> None:
    """Check that prometheus-client is installed.

    Raises:
        ConfigError: It is not.
    """
    try:
        import prometheus_client  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError("metrics need prometheus-client: pip install 'aioinformer[metrics]'") from error


def _families(samples: Iterable[Sample], *, is_canonical: bool = False) -> dict[str, Metric]:
    """Return samples as families of prometheus-client.

    Args:
        samples: The samples.
        is_canonical: Whether bounds of histograms are written as OpenMetrics wants them: ``1.0``, not ``1``.
    """
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        UnknownMetricFamily,
    )
    from prometheus_client.samples import Sample as Line
    from prometheus_client.utils import floatToGoString

    canonical: Callable[[str], str] = floatToGoString
    types: dict[str, Callable[[str, str], Metric]] = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
        "unknown": UnknownMetricFamily,
    }
    families: dict[str, Metric] = {}
    for name, kind, labels, value, suffix in samples:
        if is_canonical and kind == "counter" and name.removesuffix("_total") in families:
            kind = (
                "unknown"  # OpenMetrics wants other names of a gauge and a counter, such as a feed's changes
            )
        family = families.get(name)
        if family is None:
            family = families[name] = types[kind](name, MEANINGS.get(name, ""))
        if is_canonical and "le" in labels:
            labels = {**labels, "le": canonical(labels["le"])}
        full_name = f"{family.name}_total" if kind == "counter" else f"{name}{suffix}"
        family.samples.append(Line(full_name, _valid_labels(labels), value))
    return families


def _valid_labels(labels: dict[str, str]) -> dict[str, str]:
    if all(map(str.isascii, labels.values())):
        return labels
    return {name: valid_text(value) for name, value in labels.items()}


def _own_families(
    registries: Iterable[Registry], ours: Iterable[Metric], leave_out: _LeaveOut
) -> Iterator[tuple[str, Metric]]:
    """Yield the families of registries whose names are free, with words for each.

    Args:
        registries: The registries.
        ours: The families of aioinformer.
        leave_out: Gets what is left out, and why.
    """
    taken = {name for family in ours for name in _names_of(family)}
    theirs: set[str] = set()
    for collector in chain.from_iterable(map(_collectors_of, registries)):
        collected = shorten(collector)
        for family in _collect(collector, collected, leave_out):
            what = f"{shorten(getattr(family, 'name', family))} of {collected}"
            try:
                names = _names_of(family)
                if clash := sorted(names & taken):
                    raise ConfigError(
                        f"a registry has metrics of aioinformer's names: {', '.join(clash)}. Rename them"
                    )
                if clash := sorted(names & theirs):
                    raise ConfigError(f"another collector has {', '.join(clash)}, too. Rename one of them")
            except Exception as error:  # what is no family, too
                leave_out(what, error)
            else:
                theirs |= names
                yield what, family


def _collectors_of(registry: Registry) -> Iterable[Registry]:
    return registry.collectors() if isinstance(registry, _Collectors) else (registry,)


def _collect(collector: Registry, what: str, leave_out: _LeaveOut) -> Iterator[Metric]:
    """Yield the families of a collector, until it fails."""
    try:
        yield from collector.collect()
    except CALL_ERRORS as error:
        leave_out(what, error)


def _names_of(family: Metric) -> set[str]:
    """Return the names that a family takes, in either format."""
    return {family.name, *(line.name for line in family.samples)}


def _is_writable(
    encode: Callable[[_Families], bytes], what: str, family: Metric, leave_out: _LeaveOut
) -> bool:
    try:
        encode(_Families([family]))
    except Exception as error:
        leave_out(what, error)
        return False
    return True
