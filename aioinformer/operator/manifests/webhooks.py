"""What webhooks need beside the Deployment: their registration, a Service, and certificates."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ...errors import ConfigError
from ..definitions import find_unconverted
from ..operator import Operator
from ..webhooks.configuration import NAMESPACE_LABEL, Reached
from .installation import WEBHOOK_SUFFIX, Installation, Object

logger = logging.getLogger(__name__)

_CERT_MANAGER = "cert-manager.io/v1"
_INJECT = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager fills in the caBundle."""


def definitions(operator: Operator, installation: Installation) -> list[Object]:
    """Return the CustomResourceDefinitions, with their conversion webhooks. Log what conversions are missing."""
    for text in find_unconverted(operator):
        logger.warning("%s", text)
    return operator.definitions(
        annotations=_annotations(installation), **_describe_webhook_address(installation)
    )


def registrations(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the webhook configurations. Those of a single namespace are called for that namespace only.

    Raises:
        ConfigError: The webhooks would never be called, or the authority's certificate is invalid.
    """
    made = operator.webhook_configurations(
        annotations=_annotations(installation), **_describe_webhook_address(installation)
    )
    if made and installation.watched == installation.home:
        raise ConfigError(
            f"{operator.name} works in the namespace {installation.home} alone, and its pods run there, too. Webhooks "
            "are not called for the namespace of their pods: pass another --install-namespace"
        )
    for configuration in made:
        configuration["metadata"] |= installation.metadata(namespace="")
        if installation.watched is not None:
            only = {"key": NAMESPACE_LABEL, "operator": "In", "values": [installation.watched]}
            for webhook in configuration["webhooks"]:
                webhook["namespaceSelector"]["matchExpressions"].append(only)
        yield configuration


def certificates(installation: Installation) -> Iterator[Object]:
    """Yield cert-manager's objects that make the Secret; none if the user makes it."""
    if installation.ca_bundle is not None:
        return
    metadata = installation.metadata(WEBHOOK_SUFFIX)
    yield {"apiVersion": _CERT_MANAGER, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}
    yield {
        "apiVersion": _CERT_MANAGER,
        "kind": "Certificate",
        "metadata": metadata,
        "spec": {
            "secretName": metadata["name"],
            "dnsNames": [f"{metadata['name']}.{installation.home}.svc"],
            "issuerRef": {"kind": "Issuer", "name": metadata["name"]},
            "privateKey": {"rotationPolicy": "Always"},
        },
    }


def _describe_webhook_address(installation: Installation) -> Reached:
    reached: Reached = {"service": f"{installation.home}/{installation.name}{WEBHOOK_SUFFIX}"}
    if installation.ca_bundle is not None:
        reached["ca_bundle"] = installation.ca_bundle
    return reached


def _annotations(installation: Installation) -> dict[str, str]:
    if installation.ca_bundle is not None:
        return {}
    return {_INJECT: f"{installation.home}/{installation.name}{WEBHOOK_SUFFIX}"}
