"""manifests(): all objects that install an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...errors import ConfigError
from ..operator import Operator
from .access import access
from .alerts import prometheus_rules
from .installation import Installation, Object
from .monitoring import reader_role, service_monitor
from .network import network_policy, pod_monitor, services
from .user_roles import user_roles
from .webhooks import certificates, definitions, registrations
from .workload import deployment, disruption_budget


def manifests(operator: Operator, installation: Installation) -> list[Object]:
    """Return the objects that install an operator, in the order in which to create them.

    Raises:
        ConfigError: A class of the operator cannot be a CustomResourceDefinition, conversions are missing, or its
            webhooks cannot be registered; it has no webhooks, and the installation has an authority for them; or it
            lacks a setting that the installation sets.
    """
    if installation.ca_bundle is not None and not operator.has_webhooks:
        raise ConfigError(f"{operator.name} has no webhooks: leave out --ca-bundle")
    return [obj for part in PARTS for obj in part(operator, installation)]


def _namespace(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the Namespace, in which pods must satisfy the strictest Pod Security Standard, as the operator's do."""
    if installation.creates_namespace:
        labels = {**installation.labels, "pod-security.kubernetes.io/enforce": "restricted"}
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": installation.home, "labels": labels},
        }


PARTS: tuple[Callable[[Operator, Installation], Iterable[Object]], ...] = (
    _namespace,
    definitions,
    access,
    user_roles,
    services,
    network_policy,
    pod_monitor,
    reader_role,
    service_monitor,
    prometheus_rules,
    disruption_budget,
    certificates,
    registrations,
    deployment,
)
"""What makes the objects, in the order in which to create them."""
