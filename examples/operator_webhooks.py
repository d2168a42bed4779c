"""Webhooks of an operator, asked over HTTPS as the API server asks.

    python examples/operator_webhooks.py

The first review is filled in, the second is denied with the field. A real cluster learns of the webhooks from what
``operator.webhook_configurations`` returns.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import trustme

from aioinformer.operator import (
    AdmissionReview,
    CustomResource,
    Denied,
    Operator,
    Reviewed,
    UserInfo,
    WebhookApp,
    WebhookServer,
    WebhookState,
)


class WebsiteSpec(msgspec.Struct):
    host: str
    replicas: int | None = None


class Website(CustomResource, group="example.com", version="v1"):
    spec: WebsiteSpec


operator = Operator("websites", events=False)


@operator.mutate(Website)
async def fill(review: AdmissionReview[Website]) -> None:
    """Set the number of replicas."""
    review.object.spec.replicas = review.object.spec.replicas or 3


@operator.validate(Website)
async def check(review: AdmissionReview[Website]) -> None:
    """Keep a host for the administrators."""
    user: UserInfo = review.user
    if review.object.spec.host == "admin.example.com" and "admins" not in user.groups:
        raise Denied(f"is not for {user.username}", field="spec.host")


def review_of(host: str) -> dict[str, Any]:
    """Return the request that the API server makes for a new Website."""
    site = {
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"name": "a"},
        "spec": {"host": host},
    }
    request = {"uid": "1", "operation": "CREATE", "userInfo": {"username": "ann"}, "object": site}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def main() -> None:
    """Serve the webhooks with a certificate of their own, and ask them."""
    authority = trustme.CA()
    with tempfile.TemporaryDirectory() as folder:
        pem = Path(folder) / "both.pem"
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(pem))
        trusted = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        app: WebhookApp = operator.webhook_app()
        async with (
            WebhookServer(app, port=0, cert=pem, key=pem, host="localhost") as server,
            aiohttp.ClientSession(
                f"https://localhost:{server.port}", connector=aiohttp.TCPConnector(ssl=trusted)
            ) as session,
        ):
            for path, host in zip(app.paths, ("a.example.com", "admin.example.com"), strict=True):
                async with session.post(path, json=review_of(host)) as answer:
                    response = (await answer.json())["response"]
                patch = base64.b64decode(response.get("patch", "")).decode()
                print(path, patch or response["status"]["message"])
            states: list[WebhookState] = [count.state for count in app.counts]
            print("calls:", sum(state.calls for state in states))
    outcome: Reviewed[Website] = await operator.review(
        Website(WebsiteSpec("a.example.com"))
    )  # as a unit test does
    print("replicas:", outcome.object.spec.replicas)


if __name__ == "__main__":
    asyncio.run(main())
