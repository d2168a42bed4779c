"""Who may read the metrics, as the real API server decides."""

from __future__ import annotations

import json

import aiohttp
import pytest

from aioinformer import Client
from aioinformer.operator import Operator
from aioinformer.operator.manifests import rules
from aioinformer.operator.rights import REVIEW_TOKENS
from aioinformer.operator.serving import Debug, Serving, Tokens
from tests.kubernetes.process import free_ports

from .api import Object, Resource
from .clusters import KubernetesCluster

ACCOUNTS = Resource("v1", "serviceaccounts")
RBAC = "rbac.authorization.k8s.io"
ROLES, BINDINGS = (
    Resource(f"{RBAC}/v1", plural, namespaced=False) for plural in ("clusterroles", "clusterrolebindings")
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]


async def make_account(cluster: KubernetesCluster, name: str, granted: list[Object] | None = None) -> str:
    """Create a service account with some rights; return a token of it."""
    await cluster.create(ACCOUNTS, {"metadata": {"name": name}})
    if granted:
        full = f"{cluster.namespace}-{name}"
        await cluster.create(ROLES, {"metadata": {"name": full}, "rules": granted})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": full}
        await cluster.create(BINDINGS, {"metadata": {"name": full}, "roleRef": role, "subjects": [subject]})
    path = f"{ACCOUNTS.path(cluster.namespace, name)}/token"
    request = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}
    return str((await cluster.api.do("POST", path, request))["status"]["token"])


async def test_tokens_of_service_accounts_read_metrics_by_their_rights(real: KubernetesCluster) -> None:
    own = await make_account(real, "operator", rules(REVIEW_TOKENS))
    prometheus = await make_account(real, "prometheus", [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])
    stranger = await make_account(real, "stranger")
    config = json.loads(real.kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": own}} for user in config["users"]]
    path = real.folder / "operator"
    path.write_text(json.dumps(config))
    (port,) = free_ports(1)
    async with Client.from_kubeconfig(path=path) as client, aiohttp.ClientSession() as session:
        manager = Operator("guarded", events=False).manager(client)
        serving = Serving(
            Debug(manager, "guarded"),
            metrics_port=port,
            probe_port=port,
            host="127.0.0.1",
            tokens=Tokens(client),
        )

        async def ask(path: str, token: str = "") -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with session.get(f"http://127.0.0.1:{port}{path}", headers=headers) as answer:
                return answer.status, await answer.text()

        async with serving:
            status, text = await ask("/metrics", prometheus)
            assert (status, "rest_client_requests_total" in text) == (200, True)
            assert (await ask("/debug.json", prometheus))[0] == 403
            status, text = await ask("/metrics", stranger)
            assert status == 403
            assert f"system:serviceaccount:{real.namespace}:stranger may not get /metrics" in text
            assert (await ask("/metrics", f"{prometheus}x"))[0] == 401
            assert (await ask("/metrics"))[0] == 401
            assert (await ask("/healthz"))[0] == 503, "probes ask for no token"
            assert (await ask("/debug"))[0] == 200, "the page has no data"
