"""benchmarks/replicas and what they need of the replay server: its shards and Leases, and a small run."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from aioinformer.sharding.slots import selector_of, slot_of
from aioinformer.testing.storage.shards import ShardSelector
from benchmarks.harness.processes import ReplayServer
from benchmarks.harness.results import Machine, Results
from benchmarks.pods import uid
from benchmarks.replicas import measuring, report
from benchmarks.replicas.measuring import Load, measure

pytestmark = pytest.mark.timeout(900)  # for a cold build of Go programs takes minutes

MACHINE = Machine("quick", "2026-11-21 12:00 UTC", "a processor", 2, 8.0, "6.1", "3.11")
SLOTS = 16


def ask(server: ReplayServer, path: str, *, method: str = "GET", body: Any = None, **query: Any) -> Any:
    """Send a request; return the answer, or its status if that is an error."""
    data = None if body is None else json.dumps(body).encode()
    url = f"{server.http}{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, method=method)) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("chosen", [{0}, {15}, {3, 4, 5, 11}, set(range(15))])
def test_shards_are_those_of_the_package_and_of_the_embedded_server(
    server: ReplayServer, chosen: set[int]
) -> None:
    server.configure(400)
    selector = selector_of(chosen, SLOTS)
    listed: list[str] = []
    token = ""
    while True:
        query: dict[str, Any] = {"shardSelector": selector, "limit": 7, "continue": token}
        page = ask(server, "/api/v1/pods", **query)
        assert page["metadata"]["shardInfo"]["selector"] == selector == str(ShardSelector.parse(selector))
        listed += [item["metadata"]["uid"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert listed == [uid(number) for number in range(400) if slot_of(uid(number), SLOTS) in chosen]


@pytest.mark.parametrize("selector", ["nonsense", "shardRange(object.metadata.name, '0x0', '0x1')"])
def test_wrong_selector_is_refused(server: ReplayServer, selector: str) -> None:
    assert ask(server, "/api/v1/pods", shardSelector=selector) == 500
    assert ask(server, "/api/v1/pods", shardSelector=selector, watch=1) == 500


def test_lease_of_another_version_is_a_conflict(server: ReplayServer) -> None:
    server.configure(1)
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"metadata": {"name": "a", "labels": {"of": "b"}}, "spec": {"holderIdentity": "x"}}
    created = ask(server, leases, method="POST", body=lease)
    assert ask(server, leases, method="POST", body=lease) == 409
    assert ask(server, f"{leases}/a", method="PUT", body=created)["spec"] == {"holderIdentity": "x"}
    assert ask(server, f"{leases}/a", method="PUT", body=created) == 409
    old = {"preconditions": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    assert ask(server, f"{leases}/a", method="DELETE", body=old) == 409
    assert [item["metadata"]["name"] for item in ask(server, leases, labelSelector="of=b")["items"]] == ["a"]
    assert ask(server, leases, labelSelector="of=c")["items"] == []
    assert ask(server, f"{leases}/a", method="DELETE")["status"] == "Success"
    assert ask(server, f"{leases}/a") == 404


def test_two_replicas_read_and_reconcile_a_half_each(server: ReplayServer, tmp_path: Path) -> None:
    results = Results.begin(tmp_path / "run.jsonl", MACHINE)
    for replicas, last in ((1, measuring.roll), (2, measuring.change)):
        phases = dict.fromkeys((measuring.sync, measuring.leave_alone, measuring.change, last))
        load = Load(objects=400, rate=200, seconds=0.5)
        results.add(measure(server, replicas, "protobuf", load, 0, lambda line: None, tuple(phases)))
    one, two = results.cells
    assert (one.status, one.detail) == (two.status, two.detail) == ("ok", "")
    # Each uid has one slot, so both halves together are everything once, beside the answers about Leases.
    assert two.values["sync.reconciles"] == one.values["sync.reconciles"] == 1.0
    assert two.values["sync.sent_mb.max"] < 0.7 * one.values["sync.sent_mb"]
    assert two.values["full.sent_mb.max"] < 0.7 * one.values["full.sent_mb"]
    assert one.values["rolling.reconciles"] == 1.0
    assert one.values["rolling.free_s"] > 0
    text = report.render(results)
    assert "memory of the share, 2 replicas" in text
    assert "take-over, 2 replicas | ≤ 17 s |  |  |  |  | not measured" in text


def test_publishing_replaces_only_the_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}the former run\n{report.END}after\n")
    monkeypatch.setattr(report, "PAGE", page)
    results = Results.begin(tmp_path / "run.jsonl", MACHINE)
    report.publish(results)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "former" not in text
