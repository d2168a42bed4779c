"""request_counts.py: client-go's metrics of requests."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from aioinformer import ApiError, Client, TransportError
from aioinformer.metrics import CERTIFICATE_EXPIRY, Sample
from aioinformer.testing import APIServer
from tests.transports import Forwarding

from ..listwatch.streams import json_of, serve
from .clusters import Authority, client_name, write_kubeconfig


def find(client: Client, name: str, suffix: str = "") -> list[Sample]:
    return [sample for sample in client.samples() if (sample.name, sample.suffix) == (name, suffix)]


async def test_requests_are_counted_by_method_and_status(server: APIServer, client: Client) -> None:
    await client.get("/api/v1/pods")
    await client.get("/api/v1/pods")
    with pytest.raises(ApiError):
        await client.get("/api/v1/namespaces/default/pods/none")
    host = client.server.removeprefix("http://")
    counts = {
        tuple(sample.labels.values()): sample.value for sample in find(client, "rest_client_requests_total")
    }
    assert counts == {("200", host, "GET"): 2, ("404", host, "GET"): 1}
    (count,) = find(client, "rest_client_request_duration_seconds", "_count")
    assert (count.labels, count.value) == ({"host": host, "verb": "GET"}, 3)


async def test_a_request_without_an_answer_is_counted(server: APIServer, client: Client) -> None:
    await client.get("/api/v1/pods")
    await server.stop()
    with pytest.raises(TransportError):
        await client.get("/api/v1/pods")
    assert [sample.labels["code"] for sample in find(client, "rest_client_requests_total")] == [
        "200",
        "<error>",
    ]


async def test_the_expiry_of_the_client_certificate_is_known(tmp_path: Path) -> None:
    authority = Authority()
    certificate, key = authority.client("ada")

    async def name(request: Any) -> Any:
        return json_of(f'"{client_name(request)}"')

    user = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    async with serve(name, authority.server_context(wants_client=True)) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, user, ca=authority.pem)
        async with Client.from_kubeconfig(path=path) as client:
            assert await client.get_json("/api") == "ada"
            (sample,) = find(client, CERTIFICATE_EXPIRY)
    expected = x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
    assert (sample.labels, sample.value) == ({"certificate": "client"}, expected)


class Uncounted(Forwarding):
    async def stream(self, *arguments: Any, **options: Any) -> Any: ...


async def test_a_transport_of_your_own_need_not_count(client: Client) -> None:
    assert list(Client(Uncounted(client.transport)).samples()) == []  # type: ignore[arg-type]
