"""The API server of a command."""

from __future__ import annotations

import os

import msgspec

from ..client import Client
from ..client.credentials import check_url
from ..client.kubeconfig import kubeconfig_paths


class Target(msgspec.Struct, frozen=True):
    """A server, found as by kubectl: by its URL, by a kubeconfig's context, or by the pod's service account.

    Attributes:
        server: The URL.
        kubeconfig: The kubeconfig file; None for the files in ``$KUBECONFIG``, then ``~/.kube/config``.
        context: The kubeconfig's context; None for the current context.

    Raises:
        ConfigError: The server is no URL.
    """

    server: str | None = None
    kubeconfig: str | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        if self.server is not None:
            check_url(self.server)

    def client(self) -> Client:
        """Return a client of the server, not yet opened."""
        if self.server is not None:
            return Client.from_url(self.server)
        exists = any(os.path.exists(path) for path in kubeconfig_paths())
        if not (self.context or self.kubeconfig or exists) and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return Client.in_cluster()
        return Client.from_kubeconfig(self.context, self.kubeconfig)
