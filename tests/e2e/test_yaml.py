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

from .conftest import REAL

pytestmark = REAL

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


def test_kubectl_reads_every_ambiguous_text(control_plane: ControlPlane) -> None:
    data = {"values": AMBIGUOUS, "keys": {text: number for number, text in enumerate(AMBIGUOUS)}}
    assert read_by_kubectl(control_plane, to_yaml([configmap(data)])) == data


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])  # kubectl is slow
@given(data=st.dictionaries(TEXTS, VALUES, min_size=5, max_size=60))
def test_kubectl_and_pyyaml_read_what_was_written(control_plane: ControlPlane, data: Any) -> None:
    text = to_yaml([configmap(data)])
    assert yaml.safe_load(text)["data"] == data
    assert read_by_kubectl(control_plane, text) == data


def test_kubectl_reads_the_answers_of_the_embedded_server(control_plane: ControlPlane) -> None:
    data = {text: text for text in AMBIGUOUS}
    assert read_by_kubectl(control_plane, dump(configmap(data)).decode()) == data


@pytest.mark.parametrize("text", ["websites", "/healthz", "rbac.authorization.k8s.io/v1", "a word, and more"])
def test_ordinary_texts_are_not_quoted(text: str) -> None:
    assert to_yaml([{"a": text}]) == f"a: {text}\n"
