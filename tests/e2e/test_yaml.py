"""kubectl reads from our YAML what we wrote."""

from __future__ import annotations

import asyncio
import json
import string
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from aioinformer.operator.manifests import to_yaml
from aioinformer.testing.http.yaml import dump
from tests.kubernetes.controlplane import ControlPlane

from .api import YAML
from .clusters import Cluster
from .conftest import REAL
from .definitions import definition


def real(test: Any) -> Any:
    """Mark a test that needs kubectl."""
    for mark in REAL:
        test = mark(test)
    return test


on_asyncio = pytest.mark.asyncio(loop_factories=["asyncio"])  # about texts, not about sockets

AMBIGUOUS = [
    "1e3", "1E5", "1e+3", "-1e3", "0o7", "0b1", "0x1F", "1_000", "017", "08", "y", "N", "on", "Off", "yes", "No",
    "TRUE", "null", "Null", "~", "=", "<<", ".5", "5.", "+.inf", ".NaN", "nan", "inf", "12:30", "1:2:3", "2024-01-01",
    "2024-01-01T00:00:00Z", "- a", "a: b", "a:", "a #b", "#a", "!x", "&a", "*a", "%a", "@a", "`a", "{a", "[a", "'",
    '"', "a\tb", " a", "a ", "", "a\nb", "a\n\n", "\na", "  a\nb", "a\r\nb", "\x85", "a\x85b", "\u2028", "é", "日本",
    "😀", "\ufeffa", "\x7f", "\x1b[31m", "x" * 500, "word " * 60, "a\n" + "long " * 60 + "\nb", "1.", "0.", "1e", "e3",
    "_1", "0_", "\u0661", "1e400", "0777", "1__0", "+1", "-", "--", "---", "...", "? a", "| a", "> a", "\\", "a\\nb",
    "\x00",
]  # fmt: skip
"""Texts that readers of YAML disagree about, or that look like syntax."""

NUMBERLIKE = st.text("0123456789+-_.:eExXobINFANinfan", max_size=8)
TEXTS = (
    st.sampled_from(AMBIGUOUS)
    | st.text(st.characters(codec="utf-8"), max_size=40)
    | st.text(string.printable, max_size=300)
    | NUMBERLIKE
    | st.lists(st.text("ab \n\t:#'\"", max_size=20), max_size=6).map("\n".join)
)
VALUES = st.recursive(
    TEXTS | st.integers(-(2**53), 2**53) | st.booleans() | st.none() | st.floats(-(2**53), 2**53),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=40,
)  # fmt: skip


def configmap(data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


def read_by_kubectl(plane: ControlPlane, text: str) -> Any:
    arguments = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
    return json.loads(asyncio.run(plane.kubectl(*arguments, stdin=text)))["data"]


@real
def test_kubectl_reads_every_ambiguous_text(control_plane: ControlPlane) -> None:
    data = {"values": AMBIGUOUS, "keys": {text: number for number, text in enumerate(AMBIGUOUS)}}
    assert read_by_kubectl(control_plane, to_yaml([configmap(data)])) == data


@real
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])  # kubectl is slow
@given(data=st.dictionaries(TEXTS, VALUES, min_size=5, max_size=60))
def test_kubectl_and_pyyaml_read_what_was_written(control_plane: ControlPlane, data: Any) -> None:
    text = to_yaml([configmap(data)])
    assert yaml.safe_load(text)["data"] == data
    assert read_by_kubectl(control_plane, text) == data


@real
def test_kubectl_reads_the_answers_of_the_embedded_server(control_plane: ControlPlane) -> None:
    data = {text: text for text in AMBIGUOUS}
    assert read_by_kubectl(control_plane, dump(configmap(data)).decode()) == data


@pytest.mark.parametrize("text", ["websites", "/healthz", "rbac.authorization.k8s.io/v1", "a word, and more"])
def test_ordinary_texts_are_not_quoted(text: str) -> None:
    assert to_yaml([{"a": text}]) == f"a: {text}\n"


READ = {
    "1e3": 1000, "-1e3": -1000, "0o7": 7, "017": 15, "08": 8, "0b1": 1, "0x1F": 31, "1_000": 1000, "0_": 0, "y": True,
    "N": False, "on": True, "Off": False, ".5": 0.5, "5.": 5, "12:30": "12:30", "2024-01-01": "2024-01-01", "1e": "1e",
    "1e400": "1e400", "0o8": "0o8", "=": "=", "~": None, "e3": "e3", "_1": "_1",
}  # fmt: skip
"""Texts without quotes, and what a server reads."""


@on_asyncio
async def test_a_server_reads_texts_without_quotes_as_go_does(cluster: Cluster) -> None:
    group = f"{cluster.namespace}.example.com"
    await cluster.define(definition(group, "Relic"))
    lines = [f"apiVersion: {group}/v1", "kind: Relic", "metadata: {name: a}", "spec:"]
    lines += [f"  k{number}: {text}" for number, text in enumerate(READ)]
    lines += [f"  {text}: key" for text in ("1e3", "y", "0o7", "12:30")]
    path = f"/apis/{group}/v1/namespaces/{cluster.namespace}/relics"
    body = "\n".join(lines).encode()
    answer = await cluster.api.ask("POST", path, body, content_type=YAML)
    assert answer.status == 201, answer
    keys = {"1000": "key", "true": "key", "7": "key", "12:30": "key"}
    expected = {f"k{number}": value for number, value in enumerate(READ.values())} | keys
    assert answer.body["spec"] == expected


@on_asyncio
@pytest.mark.parametrize("value", [".nan", "+.inf", "{null: 1}"])
async def test_a_server_refuses_what_json_lacks(cluster: Cluster, value: str) -> None:
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{k: {value}}}\n".encode()
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    assert (await cluster.api.ask("POST", path, body, content_type=YAML)).status == 400
