"""A real server that writes down what service accounts ask, and how it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from aioinformer.operator import Right
from aioinformer.testing import Request
from aioinformer.testing.rbac import refused_requests
from tests.kubernetes.controlplane import ControlPlane

PATIENCE = 20.0

_OF_ACCOUNTS = {"level": "Metadata", "userGroups": ["system:serviceaccounts"]}
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [  # one entry for each request: when a watch starts, and when another request is answered
        {**_OF_ACCOUNTS, "verbs": ["watch"], "omitStages": ["RequestReceived", "ResponseComplete"]},
        {**_OF_ACCOUNTS, "omitStages": ["RequestReceived"]},
    ],
}


class Audited(ControlPlane):
    """A control plane with an audit log. Setting owners that block deletion needs a right, as on many clusters."""

    def __init__(self, folder: Path) -> None:
        policy, self._log = folder / "policy.json", folder / "audit.log"
        policy.write_text(json.dumps(_POLICY))
        super().__init__(
            extra_args=[
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self._log}",
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            ]
        )

    def requests(self, account: str) -> list[Request]:
        """Return what a service account, ``"namespace/name"``, has asked."""
        return [_request(entry) for entry in self._entries(account)]

    def list_refused(self, account: str) -> list[str]:
        """Return the requests of a service account that the server refused with 403."""
        return [
            f"{entry['verb']} {entry['requestURI']}: {entry['responseStatus'].get('message', '')}"
            for entry in self._entries(account)
            if entry["responseStatus"]["code"] == 403
        ]

    async def until_refused(self, account: str, resource: str) -> None:
        """Wait until a request of a service account is refused for a resource."""
        async with asyncio.timeout(PATIENCE):
            while not any(resource in request for request in self.list_refused(account)):  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.05)

    def _entries(self, account: str) -> Iterator[dict[str, Any]]:
        user = f"system:serviceaccount:{account.replace('/', ':')}"
        for line in self._log.read_text().splitlines(keepends=True):
            if line.endswith("\n") and (entry := json.loads(line))["user"]["username"] == user:
                yield entry


def _request(entry: dict[str, Any]) -> Request:
    about, url = entry.get("objectRef") or {}, urlsplit(entry["requestURI"])
    return Request(
        entry["verb"],
        url.path,
        dict(parse_qsl(url.query)),
        verb=entry["verb"],
        group=about.get("apiGroup", ""),
        resource=about.get("resource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        subresource=about.get("subresource", ""),
        status=entry["responseStatus"]["code"],
    )


def _single(rights: list[Right]) -> Iterator[Right]:
    """Yield each verb of each right."""
    for right in rights:
        for verb in right.verbs:
            yield msgspec.structs.replace(right, verbs=(verb,))


def find_unneeded(requests: list[Request], rights: list[Right]) -> list[str]:
    """Return the verbs without which all requests would be permitted, too."""
    every = [*_single(rights)]
    return [
        str(left_out)
        for left_out in every
        if not refused_requests(requests, [right for right in every if right is not left_out])
    ]
