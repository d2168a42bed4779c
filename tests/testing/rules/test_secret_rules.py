"""What a Secret's type requires of its data."""

from __future__ import annotations

import base64

import pytest

from aioinformer.testing.rules.secret_rules import secret_faults


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("kind", "data", "fields"),
    [
        ("tls", {"tls.crt": ""}, ["data[tls.key]"]),
        ("tls", {"tls.crt": "", "tls.key": ""}, []),
        ("ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]"]),
        ("basic-auth", {}, ["data[username]", "data[password]"]),
        ("basic-auth", {"password": ""}, []),
        ("dockercfg", {}, ["data[.dockercfg]"]),
        ("dockerconfigjson", {".dockerconfigjson": base64_of("{}")}, []),
        ("dockerconfigjson", {".dockerconfigjson": base64_of("[]")}, ["data[.dockerconfigjson]"]),
        ("dockerconfigjson", {".dockerconfigjson": base64_of("{")}, ["data[.dockerconfigjson]"]),
        ("service-account-token", {}, ["metadata.annotations[kubernetes.io/service-account.name]"]),
    ],
)
def test_faults_of_data(kind: str, data: dict[str, str], fields: list[str]) -> None:
    secret = {"metadata": {}, "type": f"kubernetes.io/{kind}", "data": data}
    assert [fault["field"] for fault in secret_faults(secret)] == fields


def test_string_data_counts_as_data() -> None:
    config = {".dockercfg": "{}"}
    assert not list(secret_faults({"metadata": {}, "type": "kubernetes.io/dockercfg", "stringData": config}))


def test_an_opaque_secret_has_any_data() -> None:
    assert not list(secret_faults({"metadata": {}, "type": "Opaque", "data": None}))
