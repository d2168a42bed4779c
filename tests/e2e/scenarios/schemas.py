"""Values that the real server's schemas of built-in kinds refuse, default or drop."""

from __future__ import annotations

from tests.samples import configmap

from ..api import MERGE, STRATEGIC
from ..clusters import pod_manifest
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, PODS


async def schemas(server: AnswerRecorder) -> None:
    """Fields of the wrong type, unknown and missing ones."""
    await server.ask("POST", CONFIGMAPS, configmap("unchecked-number") | {"data": 7})
    await server.ask("POST", CONFIGMAPS, configmap("unchecked-unknown") | {"nonsense": {"a": 1}})
    strict = {"fieldValidation": "Strict"}
    await server.ask("POST", CONFIGMAPS, configmap("unchecked-strict") | {"nonsense": 1}, strict)
    await server.ask("POST", PODS, {"metadata": {"name": "unchecked-empty"}, "spec": {}})
    await server.ask("POST", CONFIGMAPS, configmap("unchecked"))
    await server.ask("PATCH", f"{CONFIGMAPS}/unchecked", {"data": 7}, content_type=MERGE)
    await server.ask("PATCH", f"{CONFIGMAPS}/unchecked", {"data": 7}, content_type=STRATEGIC)
    await server.ask("POST", PODS, pod_manifest("unchecked-web"))
    incomplete = {"spec": {"containers": [{"name": "main"}]}}
    await server.ask("PATCH", f"{PODS}/unchecked-web", incomplete, content_type=MERGE)
    await server.ask("PATCH", f"{PODS}/unchecked-web", {"spec": {"nodeName": "node-1"}}, content_type=MERGE)
