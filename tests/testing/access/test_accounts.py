"""Tokens of service accounts."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from aioinformer.testing import APIServer
from tests.testing.client import APIClient

IDENTITY = "/apis/authentication.k8s.io/v1"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/robot/token"
ISSUER = "https://kubernetes.default.svc"
ADMIN = {"Authorization": "Bearer secret"}


class Time:
    """A clock that a test sets."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
async def server(time: Time) -> AsyncIterator[APIServer]:
    """A server that requires tokens."""
    async with APIServer(token="secret", clock=time, control_plane=False) as running:
        running.create("v1", "serviceaccounts", {"metadata": {"name": "robot"}})
        yield running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return claims


async def issue(api: APIClient, **spec: Any) -> str:
    answer = await api.ask("POST", TOKEN, {"spec": spec}, headers=ADMIN)
    assert answer.status == 201, answer
    token: str = answer.body["status"]["token"]
    return token


async def review_token(api: APIClient, token: str, *audiences: str) -> dict[str, Any]:
    spec = {"token": token, "audiences": list(audiences)}
    answer = await api.ask("POST", f"{IDENTITY}/tokenreviews", {"spec": spec}, headers=ADMIN)
    status: dict[str, Any] = answer.body["status"]
    return status


async def test_token_authenticates_the_service_account(api: APIClient, server: APIServer) -> None:
    token = await issue(api)
    name = "system:serviceaccount:default:robot"
    uid = server.get("v1", "serviceaccounts", "robot")["metadata"]["uid"]
    claims = claims_of(token)
    assert (claims["iss"], claims["aud"], claims["sub"]) == (ISSUER, [ISSUER], name)
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "serviceaccount": {"name": "robot", "uid": uid},
    }
    answer = await api.ask("POST", f"{IDENTITY}/selfsubjectreviews", {}, headers=bearer(token))
    info = answer.body["status"]["userInfo"]
    assert (info["username"], info["uid"]) == (name, uid)
    assert info["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    assert (server.requests[-1].user, server.requests[-1].groups) == (name, tuple(info["groups"]))
    review = await review_token(api, token)
    assert (review["authenticated"], review["user"], review["audiences"]) == (True, info, [ISSUER])


async def test_token_is_for_its_audiences_only(api: APIClient) -> None:
    token = await issue(api, audiences=["a", "b"])
    assert (await api.get("/api", bearer(token))).status == 401
    assert "is invalid for the target audiences" in (await review_token(api, token))["error"]
    assert (await review_token(api, token, "b", "c"))["audiences"] == ["b"]
    assert (await review_token(api, "secret", "b"))["error"] == "invalid bearer token"


async def test_token_expires(api: APIClient, time: Time) -> None:
    token = await issue(api, expirationSeconds=600)
    time.now += 599
    assert (await api.get("/api", bearer(token))).status == 200
    time.now += 1
    assert (await api.get("/api", bearer(token))).status == 401
    assert "expired" in (await review_token(api, token))["error"]


async def test_token_of_a_recreated_account_is_refused(api: APIClient, server: APIServer) -> None:
    token = await issue(api)
    server.delete("v1", "serviceaccounts", "robot")
    assert (await api.get("/api", bearer(token))).status == 401
    server.create("v1", "serviceaccounts", {"metadata": {"name": "robot"}})
    assert "does not match claim" in (await review_token(api, token))["error"]


async def test_token_bound_to_a_pod_ends_with_it(api: APIClient, server: APIServer) -> None:
    server.create("v1", "nodes", {"metadata": {"name": "n"}})
    spec = {"serviceAccountName": "robot", "nodeName": "n"}
    pod = server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": spec})
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "web"}
    token = await issue(api, boundObjectRef=reference)
    claims = claims_of(token)["kubernetes.io"]
    assert claims["pod"] == {"name": "web", "uid": pod["metadata"]["uid"]}
    extra = (await review_token(api, token))["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["web"]
    assert extra["authentication.kubernetes.io/node-uid"] == [claims["node"]["uid"]]
    server.delete("v1", "pods", "web", grace_period_seconds=0)
    assert (await api.get("/api", bearer(token))).status == 401
    server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": spec})
    assert "does not match service account pod ref claim" in (await review_token(api, token))["error"]


@pytest.mark.parametrize("damage", [lambda token: token[:-4], lambda token: token + "A", lambda _: "a.b.c"])
async def test_damaged_token_is_refused(api: APIClient, damage: Any) -> None:
    damaged = damage(await issue(api))
    assert (await api.get("/api", bearer(damaged))).status == 401
    assert (await review_token(api, damaged))["error"] == "invalid bearer token"


async def test_the_published_key_verifies_a_token(api: APIClient) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    configuration = (await api.get("/.well-known/openid-configuration", ADMIN)).body
    assert (configuration["issuer"], configuration["jwks_uri"]) == (ISSUER, f"{api.url}/openid/v1/jwks")
    answer = await api.get("/openid/v1/jwks", ADMIN)
    assert answer.headers["Content-Type"] == "application/jwk-set+json"
    (key,) = json.loads(answer.raw)["keys"]

    def number(text: str) -> int:
        return int.from_bytes(base64.urlsafe_b64decode(text + "=="), "big")

    public = ec.EllipticCurvePublicNumbers(number(key["x"]), number(key["y"]), ec.SECP256R1()).public_key()
    signed, _, signature = (await issue(api)).rpartition(".")
    halves = base64.urlsafe_b64decode(signature + "==")
    pair = encode_dss_signature(int.from_bytes(halves[:32], "big"), int.from_bytes(halves[32:], "big"))
    public.verify(pair, signed.encode(), ec.ECDSA(SHA256()))
    assert json.loads(base64.urlsafe_b64decode(signed.split(".")[0] + "=="))["kid"] == key["kid"]


async def test_a_server_without_tokens_knows_those_of_service_accounts(http: aiohttp.ClientSession) -> None:
    async with APIServer(control_plane=False) as server:
        server.create("v1", "serviceaccounts", {"metadata": {"name": "robot"}})
        api = APIClient(http, server.url)
        token = (await api.post(TOKEN, {})).body["status"]["token"]
        await api.get("/api", bearer(token))
        assert server.requests[-1].user == "system:serviceaccount:default:robot"
