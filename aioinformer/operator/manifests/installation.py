"""Installation: how an operator is deployed."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..._core.checks import LABEL, require_count, require_namespace, require_text
from ...errors import ConfigError
from ...sharding.slots import MOST_SLOTS
from ..mistakes import Mistakes

METRICS_SUFFIX = "-metrics"
"""Of the name of the Service of /metrics and /debug."""
WEBHOOK_SUFFIX = "-webhook"
"""Of the names of the webhooks' Service, the Certificate and its Secret."""
AUTHORITY_SUFFIX = "-webhook-ca"
"""Of the names of the authority of that certificate: a Certificate with its Secret, or a ConfigMap."""

LONGEST_NAME = 63 - max(len(METRICS_SUFFIX), len(WEBHOOK_SUFFIX))
"""Of names from which the names of Services are made."""

Object = dict[str, Any]


class FromKey(msgspec.Struct, frozen=True):
    """Where a setting comes from: a key of a Secret or ConfigMap in the operator's namespace."""

    kind: Literal["secret", "configmap"]
    name: str
    key: str


class Mount(msgspec.Struct, frozen=True):
    """A Secret or ConfigMap in the operator's namespace, as files in a folder of its container."""

    kind: Literal["secret", "configmap"]
    name: str
    path: str


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator is deployed.

    Args:
        target: What ``aioinformer run`` gets: ``"websites:operator"``.
        name: The name of the Deployment, the ServiceAccount and the roles.
        image: The container's image. Its entry point is ``aioinformer``.
        namespace: The namespace that the operator runs in; ``""`` for the watched one, or else for its own, which has
            the operator's name and is created with it.
        watched: The only namespace that it works in, or several; None for all.
        replicas: The number of pods. With several, one is elected to reconcile, unless they share the objects.
        shards: The number of slots that the pods share, as for ``aioinformer run --shards``; then all of them
            reconcile. 0 for no sharding.
        create_namespace: Whether the namespace is created with it; None for only if it is the operator's own.
        ca_bundle: The authority, in PEM, of the certificate of the webhooks, which is in a Secret of your own called
            ``NAME-webhook``; None for a Certificate of cert-manager.
        static_webhooks: Whether the webhooks are registered with the objects, even while no pod serves them. Otherwise
            the operator registers them once it serves them, and may change its webhook configurations.
        settings: The operator's settings by their fields: texts, as environment variables have them, or where they are.
        mounts: Secrets and ConfigMaps that its container has as files.
        network_policy: Whether a NetworkPolicy limits who reaches its pods.
        pod_monitor: Whether there is a PodMonitor, for which the cluster needs the Prometheus Operator.
        metrics_auth: Whether the metrics ask for a token.
        service_monitor: Whether there is a ServiceMonitor, a kind of the Prometheus operator.
        alerts: Whether there is a PrometheusRule, which needs the Prometheus operator.

    Raises:
        ConfigError: A value is invalid; the message has all mistakes.
    """

    target: str
    name: str
    image: str
    namespace: str = ""
    watched: str | tuple[str, ...] | None = None
    replicas: int = 1
    shards: int = 0
    create_namespace: bool | None = None
    ca_bundle: bytes | None = None
    static_webhooks: bool = False
    settings: dict[str, str | FromKey] = {}
    mounts: tuple[Mount, ...] = ()
    network_policy: bool = True
    pod_monitor: bool = False
    metrics_auth: bool = False
    service_monitor: bool = False
    alerts: bool = False

    def __post_init__(self) -> None:
        mistakes = Mistakes("the manifests")
        mistakes.of(self._check_name)
        mistakes.of(self._check_image)
        if self.namespace:
            mistakes.of(require_namespace, "namespace", self.namespace)
        for name in self.namespaces:
            mistakes.of(require_namespace, "watched", name)
        mistakes.of(require_count, "replicas", self.replicas)
        mistakes.of(self._check_shards)
        mistakes.of(self._check_monitors)
        mistakes.raise_if_any()

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that it works in; ``()`` for all."""
        if self.watched is None:
            return ()
        return (self.watched,) if isinstance(self.watched, str) else tuple(dict.fromkeys(self.watched))

    @property
    def has_several(self) -> bool:
        """Whether there are several pods."""
        return self.replicas > 1

    @property
    def elects(self) -> bool:
        """Whether one of several pods is elected to reconcile."""
        return self.has_several and not self.shards

    @property
    def replaces_gradually(self) -> bool:
        """Whether pods of two releases may run at once: an election or the owners of slots decide who reconciles."""
        return self.has_several or self.shards > 0

    @property
    def home(self) -> str:
        """The namespace that the operator runs in."""
        return self.namespace or (self.namespaces[0] if len(self.namespaces) == 1 else self.name)

    @property
    def creates_namespace(self) -> bool:
        """Whether the namespace is created with the operator."""
        if self.create_namespace is not None:
            return self.create_namespace
        return self.home == self.name and not self.namespace and self.name not in self.namespaces

    @property
    def labels(self) -> dict[str, str]:
        """The labels that select the operator's pods."""
        return {"app.kubernetes.io/name": self.name}

    def metadata(self, suffix: str = "", namespace: str | None = None) -> Object:
        """Return the metadata of an object.

        Args:
            suffix: The end of its name.
            namespace: Its namespace; None for the operator's, ``""`` for none.
        """
        namespace = self.home if namespace is None else namespace
        return {
            "name": f"{self.name}{suffix}",
            **({"namespace": namespace} if namespace else {}),
            "labels": self.labels,
        }

    def _check_name(self) -> None:
        require_text("name", self.name, "websites")
        if len(self.name) > LONGEST_NAME or not (LABEL.fullmatch(self.name) and self.name[0].isalpha()):
            raise ConfigError(
                f"name must be at most {LONGEST_NAME} letters, digits and dashes and begin with a letter, like "
                f"'websites', not {self.name!r}: pass --name"
            )

    def _check_shards(self) -> None:
        require_count("shards", self.shards)
        if not 0 <= self.shards <= MOST_SLOTS:
            raise ConfigError(f"shards must be from 1 to {MOST_SLOTS}, or 0 for none, not {self.shards}")

    def _check_monitors(self) -> None:
        if self.metrics_auth and self.pod_monitor:
            raise ConfigError(
                "a PodMonitor cannot send the token of Prometheus's account, for which metrics_auth asks: take "
                "service_monitor, --service-monitor, in place of pod_monitor, --pod-monitor"
            )

    def _check_image(self) -> None:
        require_text("image", self.image, "example.com/websites:1")
        if not self.image or self.image != "".join(self.image.split()):
            raise ConfigError(
                f"image must be an image's name, like 'example.com/websites:1', not {self.image!r}"
            )
