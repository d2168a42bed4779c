"""RunOptions: how to run an operator as a process."""

from __future__ import annotations

import msgspec

from .._core.checks import require_object_name
from ..errors import ConfigError


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run an operator as a process; each is an option of ``aioinformer run``.

    Attributes:
        target: How the command line names it, ``MODULE:OBJECT``: for messages, and for the Lease of a function, which
            has no other name.
        settings: The operator's settings; None reads them from environment variables.
        namespace: The namespace to work in; None for all.
        namespaces: Several namespaces to work in, in place of one.
        leader_elect: Whether to elect a leader.
        shards: The number of slots that the replicas share: all of them reconcile, each its share of the objects.
            0 for no sharding. See docs/replicas.md.
        lease_name: The name of the leader's Lease, and the beginning of the names of those of shards; ``""`` for the
            operator's. Several installations of one operator in one namespace need different ones.
        lease_namespace: The Lease's namespace; None for the client's.
        metrics_port: The port of ``/metrics`` and ``/debug``; 0 for none.
        metrics_auth: Whether ``/metrics`` and ``/debug.json`` ask for a bearer token, whose user the API server permits
            to get these paths.
        probe_port: The port of ``/healthz`` and ``/readyz``; 0 for none.
        host: The address to listen on; None for 127.0.0.1, and in a pod for all addresses.
        debug_hosts: Names at which ``/debug`` answers, beside IP addresses and localhost.
        grace_period: As for Manager; None for its default.
        trace: Whether to measure the latency by stage.
        webhook_port: The port of the operator's webhooks; 0 for none.
        tls_cert: The file of the webhooks' certificate.
        tls_key: The file of its private key.
        webhook_ca: The file of the authority of the webhooks' certificate, to register them at the API server; None to
            leave that to you. Without a Service, the API server reaches them at this machine's address.
        webhook_service: The webhooks' Service, as ``"namespace/name"``, or ``"namespace/name:port"`` if not 443. The
            leader registers them in configurations that exist, as soon as it serves them.
        webhook_configuration: The name of these configurations; ``""`` for the operator's.
        install_crds: Whether to create the operator's CustomResourceDefinitions, first and again when one is deleted.
        force_crds: As ``install_crds``; it also replaces newer ones.
    """

    target: str = ""
    settings: object = None
    namespace: str | None = None
    namespaces: tuple[str, ...] = ()
    leader_elect: bool = False
    shards: int = 0
    lease_name: str = ""
    lease_namespace: str | None = None
    metrics_port: int = 8080
    metrics_auth: bool = False
    probe_port: int = 8080
    host: str | None = None
    debug_hosts: tuple[str, ...] = ()
    grace_period: float | None = None
    trace: bool = False
    webhook_port: int = 9443
    tls_cert: str | None = None
    tls_key: str | None = None
    webhook_ca: str | None = None
    webhook_service: str | None = None
    webhook_configuration: str = ""
    install_crds: bool = False
    force_crds: bool = False

    def __post_init__(self) -> None:
        if self.namespace and self.namespaces:
            raise ConfigError("RunOptions: namespace and namespaces exclude each other: leave out namespace")
        if self.leader_elect and self.shards:
            raise ConfigError(
                "RunOptions: leader_elect and shards exclude each other: all replicas of a sharding reconcile"
            )
        if self.lease_name:
            require_object_name("RunOptions: lease_name", self.lease_name)

    @property
    def watched(self) -> tuple[str, ...]:
        """The namespaces to work in; ``()`` for all."""
        return tuple(dict.fromkeys(self.namespaces)) or ((self.namespace,) if self.namespace else ())

    @property
    def installs(self) -> bool:
        """Whether it creates CustomResourceDefinitions."""
        return self.install_crds or self.force_crds

    @property
    def manifests_command(self) -> str:
        """The command that prints the rights for this, for messages."""
        replicas = f" --shards {self.shards}" if self.shards else " --replicas 2" if self.leader_elect else ""
        name = f" --name {self.lease_name}" if self.lease_name else ""
        metrics = " --metrics-auth" if self.metrics_auth else ""
        return f"aioinformer manifests {self.target}{replicas}{name}{metrics}"
