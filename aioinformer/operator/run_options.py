"""RunOptions: how to run an operator as a process."""

from __future__ import annotations

import msgspec


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run an operator as a process; each is an option of ``aioinformer run``.

    Attributes:
        target: How the command line names it, ``MODULE:OBJECT``: for messages, and for the Lease of a function, which
            has no other name.
        settings: The operator's settings; None reads them from environment variables.
        namespace: The namespace to work in; None for all.
        leader_elect: Whether to elect a leader.
        lease_namespace: The Lease's namespace; None for the client's.
        metrics_port: The port of ``/metrics`` and ``/debug``; 0 for none.
        probe_port: The port of ``/healthz`` and ``/readyz``; 0 for none.
        host: The address to listen on; None for 127.0.0.1, and in a pod for all addresses.
        debug_hosts: Names at which ``/debug`` answers, beside IP addresses and localhost.
        grace_period: As for Manager; None for its default.
        trace: Whether to measure the latency by stage.
        webhook_port: The port of the operator's webhooks; 0 for none.
        tls_cert: The file of the webhooks' certificate.
        tls_key: The file of its private key.
        webhook_ca: The file of the authority of the webhooks' certificate, to register them at the API server by this
            machine's address; None to leave that to you.
        install_crds: Whether to create the operator's CustomResourceDefinitions, first and again when one is deleted.
        force_crds: As ``install_crds``; it also replaces newer ones.
    """

    target: str = ""
    settings: object = None
    namespace: str | None = None
    leader_elect: bool = False
    lease_namespace: str | None = None
    metrics_port: int = 8080
    probe_port: int = 8080
    host: str | None = None
    debug_hosts: tuple[str, ...] = ()
    grace_period: float | None = None
    trace: bool = False
    webhook_port: int = 9443
    tls_cert: str | None = None
    tls_key: str | None = None
    webhook_ca: str | None = None
    install_crds: bool = False
    force_crds: bool = False

    @property
    def installs(self) -> bool:
        """Whether it creates CustomResourceDefinitions."""
        return self.install_crds or self.force_crds
