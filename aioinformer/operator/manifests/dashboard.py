"""A Grafana dashboard of the metrics that an operator serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .installation import Object

LONGEST_UID = 40
"""Characters of a dashboard's uid, by which Grafana knows it again."""

_SELECTED = 'job=~"$job", instance=~"$instance"'
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 24


class Panel(NamedTuple):
    """One panel.

    Attributes:
        title: Its title.
        description: What it shows, and what to do.
        unit: Grafana's unit: ``"s"``, ``"ops"``, ``"short"``.
        lines: PromQL by legend. In it, ``@`` stands for the selected jobs and instances.
        is_stat: Whether it is one number rather than a graph.
    """

    title: str
    description: str
    unit: str
    lines: dict[str, str]
    is_stat: bool = False


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{{@}}[$__rate_interval]))"


def _p99(metric: str, by: str) -> str:
    per_bound = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile(0.99, {_rate(f'{metric}_bucket', per_bound)})"


PANELS: dict[str, list[Panel]] = {
    "Overview": [
        Panel("Leaders", "Replicas that reconcile; one, with leader election.", "short",
              {"leaders": "sum(leader_election_master_status{@})"}, is_stat=True),
        Panel("Failing keys", "Objects whose last reconcile failed. The debug page names them.", "short",
              {"failing": "sum(aioinformer_failing_keys{@})"}, is_stat=True),
        Panel("Caches that have not synced", "Controllers wait for them.", "short",
              {"caches": "sum(1 - aioinformer_synced{@})"}, is_stat=True),
        Panel("Objects that do not fit", "Objects in the caches that do not fit their class.", "short",
              {"objects": "sum(aioinformer_undecodable_objects{@})"}, is_stat=True),
        Panel("First certificate to expire", "Certificates of the webhooks and of the client.", "s",
              {"remaining": "min(aioinformer_certificate_expiry_timestamp_seconds{@} - time())"}, is_stat=True),
        Panel("Replicas", "Replicas that answer scrapes.", "short",
              {"replicas": "count(process_start_time_seconds{@})"}, is_stat=True),
    ],
    "Controllers": [
        Panel("Reconciles", "Reconciles that ended, by result.", "ops",
              {"{{controller}} {{result}}": _rate("controller_runtime_reconcile_total", "controller, result")}),
        Panel("Reconcile errors", "Reconciles that failed: those that are retried, and those that are not.", "ops",
              {"{{controller}}": _rate("controller_runtime_reconcile_errors_total", "controller"),
               "{{controller}} terminal": _rate("controller_runtime_terminal_reconcile_errors_total", "controller")}),
        Panel("Reconcile duration, p99", "99 % of the reconciles took less.", "s",
              {"{{controller}}": _p99("controller_runtime_reconcile_time_seconds", "controller")}),
        Panel("Busy workers", "The share of workers that reconcile. At 100 %, raise the concurrency.", "percentunit",
              {"{{controller}}": "sum by (controller) (controller_runtime_active_workers{@})"
                                 " / sum by (controller) (controller_runtime_max_concurrent_reconciles{@})"}),
        Panel("Failing keys", "Objects whose last reconcile failed.", "short",
              {"{{controller}}": "sum by (controller) (aioinformer_failing_keys{@})"}),
        Panel("Oldest failing and oldest queued key", "How long the object fails or waits that does so longest.", "s",
              {"{{controller}} failing": "max by (controller) (aioinformer_oldest_failing_key_seconds{@})",
               "{{controller}} queued": "max by (controller) (aioinformer_oldest_queued_key_seconds{@})"}),
        Panel("Last success", "Time since a reconcile succeeded.", "s",
              {"{{controller}}": "time() - max by (controller) (aioinformer_last_success_timestamp_seconds{@})"}),
        Panel("Objects that do not fit", "Objects to reconcile that do not fit their class.", "short",
              {"{{controller}}": "sum by (controller) (aioinformer_unfit_objects{@})"}),
        Panel("Timeouts and keys given up", "Reconciles that took too long; keys that are retried no more.", "ops",
              {"{{controller}} timeouts": _rate("controller_runtime_reconcile_timeouts_total", "controller"),
               "{{controller}} given up": _rate("aioinformer_given_up_keys_total", "controller")}),
    ],
    "Work queues": [
        Panel("Depth", "Keys that wait for a worker.", "short", {"{{name}}": "sum by (name) (workqueue_depth{@})"}),
        Panel("Waiting, p99", "Seconds that keys wait for a worker.", "s",
              {"{{name}}": _p99("workqueue_queue_duration_seconds", "name")}),
        Panel("Adds and retries", "Keys added, and those of them that were added with a delay.", "ops",
              {"{{name}} adds": _rate("workqueue_adds_total", "name"),
               "{{name}} retries": _rate("workqueue_retries_total", "name")}),
        Panel("Work, p99", "Seconds that keys are processed.", "s",
              {"{{name}}": _p99("workqueue_work_duration_seconds", "name")}),
        Panel("Longest running reconcile", "It grows while a reconcile hangs.", "s",
              {"{{name}}": "max by (name) (workqueue_longest_running_processor_seconds{@})"}),
        Panel("Unfinished work", "Seconds that the keys in progress have taken so far, in total.", "s",
              {"{{name}}": "sum by (name) (workqueue_unfinished_work_seconds{@})"}),
    ],
    "Informers": [
        Panel("Objects", "Objects in the caches.", "short",
              {"{{informer}}": "max by (informer) (aioinformer_objects{@})"}),
        Panel("Silence", "Seconds since the last byte. A quiet collection gets a bookmark each minute.", "s",
              {"{{informer}}": "max by (informer) (aioinformer_idle_seconds{@})"}),
        Panel("Events", "Watch events, including bookmarks.", "ops",
              {"{{informer}}": _rate("aioinformer_events_total", "informer")}),
        Panel("Lists and watches", "Requests that start lists and watches. Many lists mean that watches break.", "ops",
              {"{{informer}} lists": _rate("aioinformer_lists_total", "informer"),
               "{{informer}} watches": _rate("aioinformer_watches_total", "informer")}),
        Panel("Backlogs", "Items before the store, and notifications that wait for handlers.", "short",
              {"{{informer}} queue": "sum by (informer) (aioinformer_queue_depth{@})",
               "{{informer}} {{handler}}": "sum by (informer, handler) (aioinformer_handler_depth{@})"}),
        Panel("Rejected objects", "Objects, events and lines that were dropped.", "ops",
              {"{{informer}}": _rate("aioinformer_rejected_total", "informer")}),
    ],
    "Shards": [
        Panel("Slots without an owner", "Their objects are not reconciled. A failure causes some for seconds.", "short",
              {"{{name}}": "max by (name) (aioinformer_sharding_slots{@})"
                           " - sum by (name) (aioinformer_sharding_owned_slots{@})"}),
        Panel("Slots by replica", "Each replica owns the same number, give or take one.", "short",
              {"{{instance}}": "sum by (instance) (aioinformer_sharding_owned_slots{@})",
               "{{instance}} gives back": "sum by (instance) (aioinformer_sharding_leaving_slots{@}) > 0"}),
        Panel("Moves", "Slots that replicas got or gave back.", "ops",
              {"{{instance}}": _rate("aioinformer_sharding_moves_total", "instance")}),
        Panel("Objects by replica", "Objects in the slots of each replica.", "short",
              {"{{instance}}": "sum by (instance) (aioinformer_sharding_objects{@})"}),
        Panel("Objects in the fullest slot", "If one slot has many more than others, take another key.", "short",
              {"{{name}}": "max by (name) (aioinformer_sharding_objects{@})"}),
        Panel("Replicas", "Replicas that are alive, as each sees it.", "short",
              {"{{name}}": "max by (name) (aioinformer_sharding_replicas{@})"}),
    ],
    "Requests to the API server": [
        Panel("Requests", "By method and status; <error> means no answer.", "reqps",
              {"{{method}} {{code}}": _rate("rest_client_requests_total", "method, code")}),
        Panel("Duration, p99", "Seconds until answers began.", "s",
              {"{{verb}}": _p99("rest_client_request_duration_seconds", "verb")}),
    ],
    "Webhooks": [
        Panel("Reviews", "Calls that ended, by result.", "reqps",
              {"{{webhook}} {{result}}": _rate("aioinformer_webhook_reviews_total", "webhook, result")}),
        Panel("Duration, p99", "Requests of users wait for webhooks.", "s",
              {"{{webhook}}": _p99("controller_runtime_webhook_latency_seconds", "webhook")}),
        Panel("Calls in flight", "Calls that are running.", "short",
              {"{{webhook}}": "sum by (webhook) (controller_runtime_webhook_requests_in_flight{@})"}),
    ],
    "Process": [
        Panel("CPU", "Cores in use.", "short", {"{{instance}}": _rate("process_cpu_seconds_total", "instance")}),
        Panel("Memory", "Resident memory.", "bytes",
              {"{{instance}}": "max by (instance) (process_resident_memory_bytes{@})"}),
        Panel("Event loop lag, p99", "Above 0.1 s, a function blocks the event loop; the log names it.", "s",
              {"{{instance}}": _p99("aioinformer_event_loop_lag_seconds", "instance")}),
        Panel("File descriptors", "The share of the limit that is in use.", "percentunit",
              {"{{instance}}": "max by (instance) (process_open_fds{@} / process_max_fds{@})"}),
    ],
}  # fmt: skip
"""The panels, by row."""


def make_dashboard(name: str) -> Object:
    """Return a dashboard, as Grafana imports it.

    Args:
        name: The operator's name.
    """
    return {
        "uid": f"aioinformer-{name}"[:LONGEST_UID],
        "title": name,
        "description": f"The operator {name}. Written by aioinformer manifests --dashboard.",
        "tags": ["aioinformer", "operator"],
        "editable": False,
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_datasource(), _variable("job", "Job"), _variable("instance", "Instance")]},
        "annotations": {"list": []},
        "links": [],
        "panels": [*_panels()],
    }


def _datasource() -> Object:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(name: str, label: str) -> Object:
    jobs = ', job=~"$job"' if name == "instance" else ""
    query = f'label_values(controller_runtime_active_workers{{controller!=""{jobs}}}, {name})'
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> Iterator[Object]:
    number = y = 0
    for title, panels in PANELS.items():
        number += 1
        at = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "gridPos": at,
            "collapsed": False,
            "panels": [],
        }
        y += 1
        width, height = (_WIDTH // 2, _HEIGHT - 3) if panels[0].is_stat else (_WIDTH, _HEIGHT)
        for index, panel in enumerate(panels):
            number += 1
            row, column = divmod(index, _COLUMNS // width)
            yield _panel(number, panel, {"x": column * width, "y": y + row * height, "w": width, "h": height})
        y += height * -(-len(panels) // (_COLUMNS // width))


def _panel(number: int, panel: Panel, at: Object) -> Object:
    return {
        "id": number,
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": at,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATASOURCE,
                "expr": expression.replace("@", _SELECTED),
                "legendFormat": legend,
            }
            for index, (legend, expression) in enumerate(panel.lines.items())
        ],
    }
