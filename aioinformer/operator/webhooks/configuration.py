"""The objects that register an operator's webhooks at the API server."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ..._core.checks import require_object_name
from ...errors import ConfigError
from ...objects.api_resources import APIResource
from .admission import Admission

Object = dict[str, Any]

KUBE_SYSTEM = "kube-system"
"""The namespace of the cluster's own pods."""
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""The label that every namespace has: its name."""
NOT_OF_THE_CLUSTER = {
    "name": "not-of-the-cluster",
    "expression": "!request.userInfo.groups.exists(group, group in ['system:nodes', "
    "'system:serviceaccounts:kube-system']) && !(request.userInfo.username in ['system:apiserver', "
    "'system:kube-controller-manager', 'system:kube-scheduler'])",
}
"""The match condition by which the cluster's own components need no webhook, for nodes and other objects in no
namespace: a kubelet registers its node while the webhook is down, and so the webhook's pod finds one."""


class Reached(TypedDict, total=False):
    """How the API server reaches the webhooks: by a Service, or by a URL.

    Attributes:
        service: The Service, as ``"namespace/name"``.
        port: The Service's port; 443 if not given.
        url: The URL, such as ``"https://10.0.0.1:9443"``, for an operator outside the cluster.
        ca_bundle: The certificates in PEM that the API server trusts. Leave it out if cert-manager fills it in.
    """

    service: str
    port: int
    url: str
    ca_bundle: str | bytes


def client_config(reached: Reached, path: str) -> Object:
    """Return the ``clientConfig`` of a webhook.

    Raises:
        ConfigError: It names neither or both of a Service and a URL, or one is invalid.
    """
    service, url = reached.get("service"), reached.get("url")
    if (service is None) == (url is None):
        raise ConfigError(
            "webhooks are reached by service='namespace/name' or by url='https://…': give one of them"
        )
    if url is not None:
        if not url.startswith("https://"):
            raise ConfigError(
                f"url must begin with https://, not {url!r}: the API server calls webhooks by TLS only"
            )
        config: Object = {"url": url.rstrip("/") + path}
    else:
        namespace, name = _service(service)
        config = {
            "service": {"namespace": namespace, "name": name, "port": reached.get("port", 443), "path": path}
        }
    bundle = reached.get("ca_bundle")
    if bundle is not None:
        pem = bundle.encode() if isinstance(bundle, str) else bundle
        if b"-----BEGIN CERTIFICATE-----" not in pem:
            raise ConfigError("ca_bundle must be certificates in PEM, with a line BEGIN CERTIFICATE")
        config["caBundle"] = base64.b64encode(pem).decode()
    return config


def _service(service: object) -> tuple[str, str]:
    namespace, _, name = service.partition("/") if isinstance(service, str) else ("", "", "")
    if not namespace or not name:
        raise ConfigError(f"service must be 'namespace/name', not {service!r}")
    require_object_name("service", name)
    return namespace, name


def configurations(
    name: str,
    admissions: Sequence[Admission],
    reached: Reached,
    namespace: str | None,
    annotations: Mapping[str, str] | None,
    only: Sequence[str] = (),
) -> list[Object]:
    """Return a MutatingWebhookConfiguration and a ValidatingWebhookConfiguration, each if there are such webhooks.

    Args:
        name: The operator's name.
        admissions: Its webhooks.
        reached: How the API server reaches them.
        namespace: The operator's own namespace, which they exclude; None for the Service's.
        annotations: Of both objects.
        only: The only namespaces for which they are called; ``()`` for all.

    Raises:
        ConfigError: An argument is invalid; or a webhook selects the operator's own namespace, or no other.
    """
    if namespace is None and (service := reached.get("service")) is not None:
        namespace = _service(service)[0]
    if admissions and [*dict.fromkeys(only)] == [namespace]:
        raise ConfigError(
            f"{name} works in the namespace {namespace} alone, and its pods run there, too. Webhooks are not called "
            "for the namespace of their pods: pass another --install-namespace"
        )
    made = []
    for kind in ("Mutating", "Validating"):
        webhooks = [
            _webhook(admission, reached, namespace, only)
            for admission in admissions
            if admission.mutates == (kind == "Mutating")
        ]
        if webhooks:
            metadata: Object = {"name": name}
            if annotations:
                metadata["annotations"] = dict(annotations)
            made.append(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{kind}WebhookConfiguration",
                    "metadata": metadata,
                    "webhooks": webhooks,
                }
            )
    return made


def _webhook(admission: Admission, reached: Reached, namespace: str | None, only: Sequence[str]) -> Object:
    resource = admission.of
    webhook: Object = {
        "name": admission.title,
        "clientConfig": client_config(reached, admission.path),
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version or "*"],
                "resources": [
                    f"{resource.plural}/{admission.subresource}" if admission.subresource else resource.plural
                ],
                "operations": list(admission.operations),
                "scope": "*" if not resource.kind else "Namespaced" if resource.namespaced else "Cluster",
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun" if admission.side_effects else "None",
        "failurePolicy": admission.failure_policy,
        "timeoutSeconds": admission.timeout,
    }
    if selector := _namespaces(admission, namespace, only):
        webhook["namespaceSelector"] = selector
    if admission.object_selector:
        webhook["objectSelector"] = dict(admission.object_selector)
    conditions = [
        {"name": name, "expression": expression} for name, expression in admission.match_conditions.items()
    ]
    if admission.excludes_kube_system and _is_in_no_namespace(resource):
        conditions.insert(0, NOT_OF_THE_CLUSTER)
    if conditions:
        webhook["matchConditions"] = conditions
    return webhook


def _is_in_no_namespace(resource: APIResource) -> bool:
    """Return whether namespace selectors have no effect. For a Namespace, they are compared with its own labels."""
    return (
        bool(resource.kind)
        and not resource.namespaced
        and (resource.group, resource.plural) != ("", "namespaces")
    )


def _namespaces(admission: Admission, own: str | None, only: Sequence[str]) -> Object:
    """Return the namespace selector.

    It excludes the operator's own namespace: its pods must start while the webhook is down. For Kubernetes' own kinds
    it excludes kube-system, too, unless that is selected. An operator of some namespaces selects these.
    """
    selector = dict(admission.namespace_selector or {})
    expressions = [*selector.get("matchExpressions", ())]
    labels = selector.get("matchLabels", {}).items()
    wanted = [*expressions, *({"key": key, "operator": "In", "values": [value]} for key, value in labels)]
    selected = {
        name
        for one in wanted
        if (one.get("key"), one.get("operator")) == (NAMESPACE_LABEL, "In")
        for name in one.get("values", ())
    }
    if own in selected:
        raise ConfigError(
            f"{admission.title} selects the operator's own namespace {own}: it could not start again after a "
            "failure. Take "
            "this namespace out of its namespace_selector"
        )
    excluded = [] if own is None else [own]
    if admission.excludes_kube_system and KUBE_SYSTEM not in (selected | {own}):
        excluded.append(KUBE_SYSTEM)
    added = [
        {"key": NAMESPACE_LABEL, "operator": operator, "values": [*values]}
        for operator, values in (("NotIn", excluded), ("In", only))
        if values
    ]
    return {**selector, "matchExpressions": [*expressions, *added]} if added else selector
