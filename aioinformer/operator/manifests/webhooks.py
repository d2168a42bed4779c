"""What webhooks need beside the Deployment: their registration, a Service, and certificates."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ..definitions import find_unconverted
from ..operator import Operator
from ..webhooks import Reached
from .installation import AUTHORITY_SUFFIX, WEBHOOK_SUFFIX, Installation, Object

logger = logging.getLogger(__name__)

_CERT_MANAGER = "cert-manager.io/v1"
_INJECT = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager fills in the caBundle."""
_TEN_YEARS = "87600h"


def definitions(operator: Operator, installation: Installation) -> list[Object]:
    """Return the CustomResourceDefinitions, with their conversion webhooks. Log what conversions are missing."""
    for text in find_unconverted(operator):
        logger.warning("%s", text)
    return operator.definitions(
        annotations=_annotations(installation), **_describe_webhook_address(installation)
    )


def registrations(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the webhook configurations: without webhooks, unless they are static.

    The operator adds its webhooks when it serves them. A later apply of these objects leaves them as they are, and the
    deletion of these objects deletes the webhooks, too.

    Raises:
        ConfigError: The webhooks would never be called, or the authority's certificate is invalid.
    """
    made = operator.webhook_configurations(
        name=installation.name,
        only=installation.namespaces,
        annotations=_annotations(installation) if installation.static_webhooks else None,
        **_describe_webhook_address(installation),
    )
    for configuration in made:
        configuration["metadata"] |= installation.metadata(namespace="")
        if not installation.static_webhooks:
            del configuration["webhooks"]
        yield configuration


def certificates(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield cert-manager's objects that make the Secret; or the user's authority, for the operator to register it.

    An authority of its own signs the certificate, so that a renewed one is accepted where the older one was.
    """
    if not operator.has_webhooks:
        return
    authority = installation.metadata(AUTHORITY_SUFFIX)
    if installation.ca_bundle is not None:
        if operator.admission_kinds and not installation.static_webhooks:
            pem = installation.ca_bundle.decode("ascii", "ignore")
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": authority, "data": {"ca.crt": pem}}
        return
    metadata = installation.metadata(WEBHOOK_SUFFIX)
    yield _issuer(authority, {"selfSigned": {}})
    yield _certificate(authority, commonName=installation.name, isCA=True, duration=_TEN_YEARS)
    yield _issuer(metadata, {"ca": {"secretName": authority["name"]}})
    yield _certificate(metadata, dnsNames=[f"{metadata['name']}.{installation.home}.svc"])


def _issuer(metadata: Object, spec: Object) -> Object:
    return {"apiVersion": _CERT_MANAGER, "kind": "Issuer", "metadata": metadata, "spec": spec}


def _certificate(metadata: Object, **spec: object) -> Object:
    """Return a Certificate, with the Secret and the Issuer of its name."""
    issuer = {"kind": "Issuer", "name": metadata["name"]}
    spec = {"secretName": metadata["name"], **spec, "issuerRef": issuer}
    return {
        "apiVersion": _CERT_MANAGER,
        "kind": "Certificate",
        "metadata": metadata,
        "spec": {**spec, "privateKey": {"rotationPolicy": "Always"}},
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
