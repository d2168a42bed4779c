"""What the real server's schemas of built-in kinds refuse, fill in or drop."""

from __future__ import annotations

from ..api import MERGE, STRATEGIC
from ..clusters import configmap, pod
from ..recording import Recorder
from .common import CONFIGMAPS, PODS


async def schemas(server: Recorder) -> None:
    """Fields of the wrong type, unknown and missing ones."""
    await server.ask("POST", CONFIGMAPS, configmap("number") | {"data": 7})
    await server.ask("POST", CONFIGMAPS, configmap("unknown") | {"nonsense": {"a": 1}})
    await server.ask("POST", CONFIGMAPS, configmap("strict") | {"nonsense": 1}, {"fieldValidation": "Strict"})
    await server.ask("POST", PODS, {"metadata": {"name": "empty"}, "spec": {}})
    await server.ask("POST", CONFIGMAPS, configmap("a"))
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"data": 7}, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"data": 7}, content_type=STRATEGIC)
    await server.ask("POST", PODS, pod("web"))
    await server.ask("PATCH", f"{PODS}/web", {"spec": {"containers": [{"name": "main"}]}}, content_type=MERGE)
    await server.ask("PATCH", f"{PODS}/web", {"spec": {"nodeName": "node-1"}}, content_type=MERGE)
