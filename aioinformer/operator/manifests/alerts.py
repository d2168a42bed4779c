"""Alerts about an operator, as a PrometheusRule of the Prometheus operator."""

from __future__ import annotations

from collections.abc import Iterator

from ..operator import Operator
from .installation import Installation, Object

SLOW = 600
"""Seconds that an object may fail, or wait for a worker."""
HELD = "5m"
"""How long most conditions must hold before an alert fires."""
SOON = 86400
"""Seconds before a certificate expires. What renews it does so earlier."""
UNANSWERED = 10
"""Requests without an answer in five minutes: more than one restart of an API server among several costs."""
STALE = "10m"
"""The same for caches and pods: longer than a rolling update, or an API server that restarts."""


def prometheus_rules(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the PrometheusRule, if the installation has alerts.

    Its expressions find the operator's pods by the labels ``namespace`` and ``pod``.
    """
    if installation.alerts:
        yield {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": installation.metadata(),
            "spec": {"groups": [{"name": installation.name, "rules": [*alerts(operator, installation)]}]},
        }


def alerts(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the alerts, as rules of Prometheus: eight, one more for shards, and two more for webhooks."""
    name = installation.name
    pods = f'namespace="{installation.home}",pod=~"{name}-[a-z0-9]+-[a-z0-9]+"'
    yield _alert(
        name,
        "ReconcilesFailing",
        f"max by (controller) (aioinformer_oldest_failing_key_seconds{{{pods}}}) > {SLOW}",
        HELD,
        "{{ $labels.controller }} fails to reconcile an object for {{ $value | humanizeDuration }}",
        "The Events of the object and the failing keys of /debug say why.",
    )
    yield _alert(
        name,
        "QueueStuck",
        f"max by (controller) (aioinformer_oldest_queued_key_seconds{{{pods}}}) > {SLOW}",
        HELD,
        "An object waits for {{ $labels.controller }} for {{ $value | humanizeDuration }}",
        "Its workers are slow or hang: /debug shows what they reconcile. Raise concurrency, or lower timeout.",
    )
    yield _alert(
        name,
        "ObjectsDoNotFit",
        f"max by (controller) (aioinformer_unfit_objects{{{pods}}}) > 0",
        HELD,
        "{{ $value }} objects of {{ $labels.controller }} do not fit their class and are not reconciled",
        "Their Events and /readyz name the fields. Correct the objects, or give the fields of the class defaults.",
    )
    yield _alert(
        name,
        "CacheStale",
        f"min by (pod, informer) ((aioinformer_watching{{{pods}}} == 0 "
        f"unless aioinformer_polling{{{pods}}} == 1) or aioinformer_synced{{{pods}}} == 0)",
        STALE,
        "The cache of {{ $labels.informer }} in {{ $labels.pod }} is not kept up to date",
        "/readyz says why: the server is not reached, the definition is missing, or a right to list or watch is.",
    )
    if installation.elects:
        expression = f"(sum(leader_election_master_status{{{pods}}}) or vector(0)) == 0"
        summary = f"No pod of {name} leads, so nothing is reconciled"
    else:
        expression = f"absent(controller_runtime_max_concurrent_reconciles{{{pods}}})"
        summary = f"No pod of {name} runs, so nothing is reconciled"
    yield _alert(
        name,
        "OperatorDown",
        expression,
        STALE,
        summary,
        "Look at its pods and their logs, and whether Prometheus scrapes them.",
        severity="critical",
    )
    if installation.shards:
        yield _alert(
            name,
            "SlotsWithoutOwner",
            f"max by (name) (aioinformer_sharding_slots{{{pods}}}) "
            f"- sum by (name) (aioinformer_sharding_owned_slots{{{pods}}}) > 0",
            HELD,
            "{{ $value }} slots of {{ $labels.name }} have no owner, so their objects are not reconciled",
            "aioinformer doctor --shards says why: replicas are missing, do not take part, or end too slowly.",
            severity="critical",
        )
    yield _alert(
        name,
        "PodDown",
        f"min by (pod) (up{{{pods}}}) == 0",
        STALE,
        "{{ $labels.pod }} does not answer, while others may work",
        "It hangs, is frozen, or cannot be reached: look at its liveness probe, and delete it.",
    )
    yield _alert(
        name,
        "APIServerUnreachable",
        f'sum by (pod) (increase(rest_client_requests_total{{{pods},code="<error>"}}[5m])) >= {UNANSWERED}',
        "0m",
        "Requests of {{ $labels.pod }} to the API server get no answer",
        "If it lasts, look at the API server, and at the network and proxies between it and the pod.",
    )
    yield _alert(
        name,
        "LogsLost",
        f"sum by (pod) (increase(aioinformer_log_lines_lost_total{{{pods}}}[15m])) > 0",
        "0m",
        "Log lines of {{ $labels.pod }} cannot be written",
        "The disk of its logs may be full. Its Event LogsLost has the error.",
    )
    if operator.has_webhooks:
        yield _alert(
            name,
            "CertificateExpires",
            f'min(aioinformer_certificate_expiry_timestamp_seconds{{{pods},certificate="webhook"}}) - time() < {SOON}',
            "0m",
            f"The certificate of the webhooks of {name} expires within a day, or has expired",
            "Renew it: the API server calls no webhooks whose certificate has expired. Look at what renews its Secret.",
            severity="critical",
        )
        yield _alert(
            name,
            "WebhooksFail",
            f'sum(rate(aioinformer_webhook_reviews_total{{{pods},result=~"failed|timed_out"}}[5m])) > 0',
            HELD,
            f"Webhooks of {name} fail, and the API server refuses or passes requests without them",
            "The log has the errors.",
            severity="critical",
        )


def _alert(
    operator: str,
    name: str,
    expression: str,
    held: str,
    summary: str,
    description: str,
    severity: str = "warning",
) -> Object:
    return {
        "alert": name,
        "expr": expression,
        "for": held,
        "labels": {"severity": severity, "operator": operator},
        "annotations": {"summary": summary, "description": description},
    }
