"""manifests(): all objects that install an operator."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ConfigError
from ..operator import Operator
from . import webhooks
from .access import access
from .installation import METRICS_SUFFIX, WEBHOOK_SUFFIX, Installation, Object
from .workload import METRICS_PORT, deployment, service


def manifests(operator: Operator, installation: Installation) -> list[Object]:
    """Return the objects that install an operator, in the order in which to create them.

    Raises:
        ConfigError: A class of the operator cannot be a CustomResourceDefinition, conversions are missing, or its
            webhooks cannot be registered; or it has no webhooks, and the installation has an authority for them.
    """
    return [*_objects(operator, installation)]


def _objects(operator: Operator, installation: Installation) -> Iterator[Object]:
    if installation.creates_namespace:
        yield _namespace(installation)
    yield from webhooks.definitions(operator, installation)
    yield from access(operator, installation)
    yield service(installation, METRICS_SUFFIX, "metrics", METRICS_PORT)
    if operator.has_webhooks:
        yield service(installation, WEBHOOK_SUFFIX, "webhooks", 443)
        yield from webhooks.certificates(installation)
        yield from webhooks.registrations(operator, installation)
    elif installation.ca_bundle is not None:
        raise ConfigError(f"{operator.name} has no webhooks: leave out --ca-bundle")
    yield deployment(installation, serves_webhooks=operator.has_webhooks)


def _namespace(installation: Installation) -> Object:
    """Return the Namespace, in which pods must satisfy the strictest Pod Security Standard, as the operator's do."""
    labels = {**installation.labels, "pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": installation.home, "labels": labels},
    }
