"""What makes the API server call an operator's webhooks: a Service, a certificate of cert-manager, configurations."""

from __future__ import annotations

from collections.abc import Iterator

from ..operator import Operator
from .installation import WEBHOOKS, Installation, Object

WEBHOOK_PORT = 9443
CERTIFICATES = "/certs"
"""The folder of the certificate in the pod."""

_API = "cert-manager.io/v1"


def webhooks(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the Service, the certificate and the configurations of an operator's webhooks."""
    name = f"{installation.name}{WEBHOOKS}"
    metadata = installation.metadata(WEBHOOKS)
    port = {"name": "webhooks", "port": 443, "targetPort": "webhooks"}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": installation.labels, "ports": [port]},
    }
    yield {"apiVersion": _API, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}
    spec = {
        "secretName": name,
        "dnsNames": [f"{name}.{installation.home}.svc"],
        "issuerRef": {"name": name},
    }
    yield {"apiVersion": _API, "kind": "Certificate", "metadata": metadata, "spec": spec}
    yield from operator.webhook_configurations(
        service=_service(installation), annotations=_injected(installation)
    )


def definitions(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the CustomResourceDefinitions, with their conversion webhooks."""
    for each in operator.definitions(service=_service(installation)):
        if "conversion" in each["spec"]:
            each["metadata"]["annotations"] = _injected(installation)
        yield each


def serve(container: Object, pod: Object, installation: Installation) -> None:
    """Make a pod serve webhooks: arguments, port and certificate."""
    container["args"] += [
        f"--webhook-port={WEBHOOK_PORT}",
        f"--tls-cert={CERTIFICATES}/tls.crt",
        f"--tls-key={CERTIFICATES}/tls.key",
    ]
    container["ports"].append({"name": "webhooks", "containerPort": WEBHOOK_PORT})
    container["volumeMounts"].append({"name": "certificates", "mountPath": CERTIFICATES, "readOnly": True})
    secret = {"secretName": f"{installation.name}{WEBHOOKS}"}
    pod["volumes"].append({"name": "certificates", "secret": secret})


def _service(installation: Installation) -> str:
    return f"{installation.home}/{installation.name}{WEBHOOKS}"


def _injected(installation: Installation) -> dict[str, str]:
    """Return the annotation by which cert-manager fills in the authority of a Certificate."""
    return {"cert-manager.io/inject-ca-from": _service(installation)}
