"""Which API server a command is for."""

from __future__ import annotations

import os

import msgspec

from ..client import Client
from ..client.credentials import check_url
from ..client.kubeconfig import kubeconfig_paths


class Target(msgspec.Struct, frozen=True):
    """A server by its URL, or else that of a kubeconfig's context; where there is none, the pod's, as for kubectl.

    Attributes:
        server: The URL.
        kubeconfig: The file; None for those in ``$KUBECONFIG``, else ``~/.kube/config``.
        context: Its context; None for the current one.

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
        """A client of it, to be opened."""
        if self.server is not None:
            return Client.from_url(self.server)
        is_there = any(os.path.exists(path) for path in kubeconfig_paths())
        if not (self.context or self.kubeconfig or is_there) and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return Client.in_cluster()
        return Client.from_kubeconfig(self.context, self.kubeconfig)
