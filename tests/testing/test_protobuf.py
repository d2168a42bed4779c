"""The protobuf that kubectl writes for what it makes itself."""

from __future__ import annotations

import pytest

from aioinformer.testing import APIServer, StatusError
from aioinformer.testing.protobuf import CONTENT_TYPE, decode

from .client import APIClient


def varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, "v1") + field(2, kind)) + field(2, raw) + field(3, "")


METADATA = (
    field(1, "a")
    + field(2, "")
    + field(3, "ns")
    + field(7, 0)
    + field(8, b"")
    + field(11, field(1, "app") + field(2, "web"))
    + field(13, field(1, "Node") + field(4, "u") + field(6, 1))
    + field(14, "x/y")
)


def test_a_configmap() -> None:
    raw = (
        field(1, METADATA)
        + field(2, field(1, "k") + field(2, "v" * 300))
        + field(3, field(1, "b") + field(2, b"\xff"))
    )
    assert decode(envelope("ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "labels": {"app": "web"},
            "ownerReferences": [{"kind": "Node", "uid": "u", "controller": True}],
            "finalizers": ["x/y"],
        },
        "data": {"k": "v" * 300},
        "binaryData": {"b": "/w=="},
    }


def test_other_kinds() -> None:
    secret = (
        field(1, field(1, "s")) + field(2, field(1, "k") + field(2, "v")) + field(3, "Opaque") + field(5, 1)
    )
    assert decode(envelope("Secret", secret)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"k": "dg=="},
        "type": "Opaque",
        "immutable": True,
    }
    namespace = decode(
        envelope("Namespace", field(1, field(1, "n")) + field(2, field(1, "kubernetes")) + field(3, b""))
    )
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    account = decode(envelope("ServiceAccount", field(1, field(1, "a")) + field(3, field(1, "pull"))))
    assert account["imagePullSecrets"] == [{"name": "pull"}]
    unknown_fields = (
        varint(99 << 3 | 5) + b"1234" + varint(98 << 3 | 1) + b"12345678" + field(1, field(1, "a"))
    )
    assert decode(envelope("ConfigMap", unknown_fields))["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{}", 400),
        (envelope("Pod", b""), 415),
        (b"k8s\x00\x0a\xff", 400),
        (b"k8s\x00\x0b", 400),
        (b"k8s\x00" + field(1, 7), 400),
        (envelope("ConfigMap", field(1, field(1, b"\xff"))), 400),
    ],
)
def test_what_cannot_be_read(body: bytes, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        decode(body)
    assert refused.value.code == code


async def test_over_http(api: APIClient, server: APIServer) -> None:
    body = envelope("Namespace", field(1, field(1, "team")))
    answer = await api.ask("POST", "/api/v1/namespaces", body, content_type=CONTENT_TYPE)
    assert answer.status == 201
    assert server.get("v1", "namespaces", "team")["status"] == {"phase": "Active"}
