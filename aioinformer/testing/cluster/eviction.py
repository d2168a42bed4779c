"""Eviction: a delete that a PodDisruptionBudget may forbid (kube-apiserver ``registry/core/pod/storage``).

A budget's status says whether it allows an eviction. This server has no disruption controller, so tests have to write
the status themselves.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aioinformer.errors import ConfigError, SelectorError
from aioinformer.objects.labels import LabelSelector
from aioinformer.testing.cluster.deletion import delete
from aioinformer.testing.cluster.options import DeleteOptions, WriteOptions
from aioinformer.testing.errors import StatusError, cause, forbidden
from aioinformer.testing.objects import Object, is_true
from aioinformer.testing.storage.builtin import BUDGETS, PODS
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.cluster.cluster import Cluster

_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(cluster: Cluster, namespace: str, name: str, options: DeleteOptions) -> None:
    """Delete a pod if its budget allows it, and record that in the budget's status.

    Raises:
        StatusError: 404; 409 (a failed precondition); 429 (the budget is used up); 500 (several budgets).
    """
    pod = load(PODS, cluster.get(PODS, namespace, name))
    phase = (pod.get("status") or {}).get("phase")
    if phase not in ("Succeeded", "Failed", "Pending") and "deletionTimestamp" not in pod["metadata"]:
        budgets = list(_budgets_of(cluster, namespace, pod))
        if len(budgets) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise StatusError(500, "", why)
        if budgets and _counts(pod, budgets[0]):
            _use_up(cluster, namespace, name, budgets[0], options)
    delete(cluster, PODS, namespace, name, options)


def _budgets_of(cluster: Cluster, namespace: str, pod: Object) -> Iterator[Object]:
    labels = pod["metadata"].get("labels") or {}
    for stored in cluster.collection(BUDGETS).in_namespace(namespace):
        budget = load(BUDGETS, stored)
        selector = (budget.get("spec") or {}).get("selector")
        if selector is None:
            continue
        with suppress(ConfigError, SelectorError):  # one that selects nothing, as it cannot be read
            if LabelSelector.of(selector).matches(labels):
                yield budget


def _counts(pod: Object, budget: Object) -> bool:
    """Whether the budget has to pay: not for a pod that is not ready, where enough others are."""
    if is_true(pod, "Ready"):
        return True
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    always = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return not (always or healthy >= desired > 0)


def _use_up(cluster: Cluster, namespace: str, pod: str, budget: Object, options: DeleteOptions) -> None:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _violation_error(f"The disruption budget {name} is still being processed by the server.", 10)
    if allowed < 0:
        raise forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise _violation_error(
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
            if healthy <= desired
            else f"The disruption budget {name} does not allow evicting pods currently"
        )
    disrupted = {**(status.get("disruptedPods") or {}), pod: cluster.now()}
    changed = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    cluster.modify(
        BUDGETS,
        namespace,
        name,
        lambda obj: {**obj, "status": changed},
        WriteOptions(subresource="status", dry_run=options.dry_run),
    )


def _violation_error(why: str, retry_after: int = 0) -> StatusError:
    details: dict[str, Any] = {"causes": [cause("DisruptionBudget", why)]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return StatusError(429, "TooManyRequests", _VIOLATED, details=details)
