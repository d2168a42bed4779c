"""Answers in YAML, compared with texts of the real server."""

from __future__ import annotations

import yaml

from aioinformer.testing import APIServer
from aioinformer.testing.http.yaml import dump
from tests.testing.client import APIClient

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
YAML = {"Accept": "application/yaml"}

GO = """\
a: "yes"
b: "1"
c: "null"
d: |
  multi
  line
e: ""
f: "~"
g: "2020-01-01T00:00:00Z"
h: "0x1F"
i: 'a: b'
j: '# c'
k: ' lead'
m: "on"
"n": "1e3"
o: '- x'
p: "a\\tb"
q: "1_000"
r: "010"
s: ".5"
t: "12:30"
"""


def test_texts_are_quoted_as_by_go() -> None:
    assert dump(yaml.safe_load(GO)).decode() == GO
    shared = ["x"]
    assert dump({"b": shared, "a": [shared, {}], "c": None}) == b"a:\n- - x\n- {}\nb:\n- x\nc: null\n"


async def test_objects_lists_and_refusals_in_yaml(api: APIClient, server: APIServer) -> None:
    empty = await api.get(CONFIGMAPS, YAML)
    assert empty.headers["Content-Type"] == "application/yaml"
    assert empty.raw.decode().startswith("apiVersion: v1\nitems: []\nkind: ConfigMapList\nmetadata:\n")
    for name in ("a", "b"):
        server.create("v1", "configmaps", {"metadata": {"name": name}, "data": {"k": "1"}})
    one = yaml.safe_load((await api.get(f"{CONFIGMAPS}/a", YAML)).raw)
    assert one == server.get("v1", "configmaps", "a")
    listed = (await api.get(CONFIGMAPS, YAML)).raw
    assert yaml.safe_load(listed) == (await api.get(CONFIGMAPS)).body
    missing = await api.get(f"{CONFIGMAPS}/c", YAML)
    assert (missing.status, yaml.safe_load(missing.raw)["reason"]) == (404, "NotFound")
    assert yaml.safe_load((await api.get("/apis/apps", YAML)).raw)["name"] == "apps"


async def test_a_watch_in_yaml_is_refused(api: APIClient) -> None:
    answer = await api.get(CONFIGMAPS, YAML, watch="1")
    assert answer.status == 406
    assert "application/json;stream=watch" in yaml.safe_load(answer.raw)["message"]
