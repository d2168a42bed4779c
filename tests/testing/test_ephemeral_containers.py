"""A pod's ephemeral containers, which only a subresource changes."""

from __future__ import annotations

from aioinformer.testing import APIServer

from .client import APIClient

PATH = "/api/v1/namespaces/default/pods/web/ephemeralcontainers"


async def test_containers_are_added_and_stay(api: APIClient, server: APIServer) -> None:
    spec = {"containers": [{"name": "main", "image": "main"}]}
    server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": spec})
    debugger = {"name": "debugger", "image": "debug"}
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"ephemeralContainers": [debugger]}}
    changed = await api.patch(PATH, change, "application/strategic-merge-patch+json")
    assert changed.status == 200
    (added,) = changed.body["spec"]["ephemeralContainers"]
    assert (added["name"], added["imagePullPolicy"]) == ("debugger", "Always")
    assert "labels" not in changed.body["metadata"]
    assert changed.body["metadata"]["generation"] == 2
    assert (await api.get(PATH)).body == changed.body
    for containers, what in (([], "removed"), ([debugger | {"image": "other"}], "changed")):
        refused = await api.put(PATH, {**changed.body, "spec": spec | {"ephemeralContainers": containers}})
        assert refused.status == 422
        assert f'existing ephemeral containers "debugger" may not be {what}' in refused.body["message"]
