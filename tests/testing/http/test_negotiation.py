"""Content negotiation: the answers are those of kube-apiserver 1.36, except YAML, which is not supported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.testing import APIServer, ResourceType, StatusError
from aioinformer.testing.http.encodings import JSON, PROTOBUF, Encoding
from aioinformer.testing.http.negotiation import encoding_of_status, negotiate
from aioinformer.testing.http.views import MetadataView, PlainView, TableView, View

PLAIN, TABLE, METADATA = PlainView, TableView, MetadataView
J, P = "application/json", "application/vnd.kubernetes.protobuf"
AS_TABLE, AS_PARTIAL = (f";as={kind};g=meta.k8s.io;v=v1" for kind in ("Table", "PartialObjectMetadata"))
AS_NONSENSE = ";as=Nonsense;g=meta.k8s.io;v=v1"

CAVES = ResourceType("example.com", "v1", "caves", "Cave")

Negotiated = tuple[type[View], Encoding] | None


def find_encoding(accept: str, resource: ResourceType) -> Negotiated:
    """Return the served type, or None for 406."""
    try:
        view = negotiate(accept, resource)
    except StatusError as error:
        if error.code != 406:
            raise
        return None
    return type(view), view.encoding


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", (PLAIN, JSON)),
        ("*/*", (PLAIN, JSON)),
        ("*", (PLAIN, JSON)),
        (P, (PLAIN, PROTOBUF)),
        (f"{P},{J}", (PLAIN, PROTOBUF)),
        (f"{J}, {P}", (PLAIN, JSON)),
        (f"*/*,{P}", (PLAIN, PROTOBUF)),
        (f"{P};q=0.5,{J}", (PLAIN, JSON)),
        (f"{J};q=0.5,{P}", (PLAIN, PROTOBUF)),
        (f"{J};q=nonsense,{P}", (PLAIN, PROTOBUF)),
        (f"*/*;q=0.1,{P};q=0.05", (PLAIN, PROTOBUF)),
        (f"application/*,{P}", (PLAIN, PROTOBUF)),
        ("application/*", None),
        ("text/html", None),
        ("application/cbor", None),
        (f"text/html,{P}", (PLAIN, PROTOBUF)),
        (f"{J};foo=bar", (PLAIN, JSON)),
        (f"{J}; charset=utf-8", (PLAIN, JSON)),
        (f"{P};stream=watch", (PLAIN, PROTOBUF)),
        (f"{P};stream=x", None),
        (f"{J}{AS_TABLE}", (TABLE, JSON)),
        (f"{J};as=Table", None),
        (f"{J};as=Table;v=v1", None),
        (f"{P}{AS_TABLE}", None),
        (f"{P}{AS_TABLE},{J}{AS_TABLE}", (TABLE, JSON)),
        (f"{P}{AS_TABLE},{P}", (PLAIN, PROTOBUF)),
        (f"{P}{AS_PARTIAL}", (METADATA, PROTOBUF)),
        (f"{P}{AS_PARTIAL},{J}{AS_PARTIAL},{J}", (METADATA, PROTOBUF)),
        (f"{J}{AS_PARTIAL}", (METADATA, JSON)),
        (f"{J};as=PartialObjectMetadata;g=example.com;v=v1", None),
        (f"{P}{AS_NONSENSE}", None),
        (f"{J}{AS_NONSENSE},{P}", (PLAIN, PROTOBUF)),
    ],
)  # fmt: skip
def test_negotiation_for_builtin_resources(accept: str, expected: Negotiated) -> None:
    assert find_encoding(accept, APIServer().resource("v1", "pods")) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (P, None),
        (f"{P},{J}", (PLAIN, JSON)),
        (f"*/*,{P}", (PLAIN, JSON)),
        ("application/*", (PLAIN, JSON)),
        ("text/html", None),
        (f"{P}{AS_PARTIAL}", (METADATA, PROTOBUF)),
        (f"{P}{AS_TABLE}", None),
    ],
)
def test_custom_resource_has_protobuf_for_metadata_only(accept: str, expected: Negotiated) -> None:
    assert find_encoding(accept, CAVES) == expected


def test_builtin_kind_without_a_schema_has_no_protobuf() -> None:
    """This differs from the real server."""
    definitions = APIServer().resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    assert find_encoding(P, definitions) is None
    assert find_encoding(f"{P},{J}", definitions) == (PLAIN, JSON)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        (P, PROTOBUF),
        (f"{P},{J}", PROTOBUF),
        (f"{J},{P}", JSON),
        ("text/html", JSON),
        (f"{P}{AS_PARTIAL}", JSON),
        (f"{P}{AS_PARTIAL},{J}{AS_PARTIAL},{J}", JSON),
        (f"{J}{AS_NONSENSE},{P}", PROTOBUF),
        (f"{P};stream=x", JSON),
    ],
)
def test_negotiation_for_a_status(accept: str, expected: Encoding) -> None:
    assert encoding_of_status(accept) is expected


def test_messages_of_refusals() -> None:
    pods = APIServer().resource("v1", "pods")
    types = f"{J}, application/yaml, {P}"
    answers: list[tuple[str, Any]] = []
    for accept in ("text/html", f"{P}{AS_TABLE}"):
        with pytest.raises(StatusError) as refused:
            negotiate(accept, pods)
        answers.append((refused.value.message, json.loads(JSON.body(refused.value.status)).get("details")))
    assert answers == [
        (f"406: Not Acceptable\n\nAvailable representations: {types}", {}),
        (f"only the following media types are accepted: {types}", None),
    ]
