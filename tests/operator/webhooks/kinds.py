"""Websites in two versions, and how the tests ask webhooks."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import jsonpatch

from aioinformer.operator import CustomResource, Operator, WebhookApp
from aioinformer.typed import CamelStruct

Object = dict[str, Any]


class SpecV1(CamelStruct, kw_only=True):
    host: str
    replicas: int | None = None


class WebsiteV1(CustomResource, group="hooks.example.com", version="v1", kind="Website", plural="websites"):
    spec: SpecV1


class SpecV2(CamelStruct, kw_only=True):
    hosts: list[str]
    min_ready: int = 1


class WebsiteV2(WebsiteV1, version="v2"):
    spec: SpecV2  # type: ignore[assignment]


async def post(
    app: WebhookApp, path: str, body: Any, *, query: str = "", content_type: str = "application/json"
) -> httpx.Response:
    """Send a request to webhooks as an ASGI application."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://webhooks"
    ) as session:
        return await session.post(f"{path}{query}", content=content, headers={"Content-Type": content_type})


def review(
    obj: Object | None, *, old: Object | None = None, operation: str = "CREATE", **more: Any
) -> Object:
    """Return the AdmissionReview that an API server sends."""
    reviewed = obj or old or {}
    metadata = reviewed.get("metadata", {})
    version = reviewed.get("apiVersion", "v1").rpartition("/")[2]
    request = {
        "uid": "u-1",
        "kind": {"group": "hooks.example.com", "version": version, "kind": "Website"},
        "operation": operation,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "userInfo": {"username": "ann", "groups": ["people"], "extra": {"scope": ["a"]}},
        "object": obj,
        "oldObject": old,
        "options": None,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def ask_review(operator: Operator, asked: Object) -> Object:
    """Return the response of an operator's only webhook."""
    app = operator.webhook_app()
    (path,) = app.paths
    answer = await post(app, path, asked)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["apiVersion"] == "admission.k8s.io/v1"
    response: Object = body["response"]
    assert response["uid"] == "u-1"
    return response


def apply_patch(obj: Object, response: Object) -> Object:
    """Return an object with a response's patch."""
    assert response["patchType"] == "JSONPatch"
    made: Object = jsonpatch.apply_patch(obj, json.loads(base64.b64decode(response["patch"])))
    return made


def site(name: str = "a", /, **spec: Any) -> Object:
    """Return a Website of version v1 as JSON."""
    return {
        "apiVersion": "hooks.example.com/v1",
        "kind": "Website",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"host": "a.example", **spec},
    }
