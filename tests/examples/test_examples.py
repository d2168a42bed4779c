"""Every example runs, prints what it promises, and ends by itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from aioinformer import Client
from aioinformer.testing import APIServer
from examples import (
    change_feed,
    claim_backup,
    custom_resource,
    event_recorder,
    factory,
    leader_election,
    listener_handoff,
    namespace_finalizer,
    operator_cleanup,
    operator_declared,
    operator_failures,
    operator_fastapi,
    operator_finalizer,
    operator_leader,
    operator_predicates,
    operator_quickstart,
    operator_threads,
    operator_triggers,
    operator_webhooks,
    own_writes,
    quickstart,
    rate_limiters,
    reflector_bare_queue,
    sharded_operator,
    tombstones,
    typed_objects,
    volume_wipe,
    web_aiohttp,
    web_fastapi,
    work_queue,
    writing,
)

FOLDER = Path(quickstart.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")

CONTAINERS = [{"name": "web", "image": "example.com/web:1"}]

Printed = pytest.CaptureFixture[str]


def lines(printed: Printed) -> list[str]:
    return printed.readouterr().out.splitlines()


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": CONTAINERS}}


def test_every_example_has_its_test() -> None:
    assert [name for name in NAMES if f"test_{name}" not in globals()] == []


def run_by_itself(name: str) -> subprocess.CompletedProcess[str]:
    """As a reader would start it, in any folder."""
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.timeout(400)
def test_each_runs_by_itself() -> None:
    """A few at once: they have deadlines of their own."""
    with ThreadPoolExecutor(4) as pool:
        ended = dict(zip(NAMES, pool.map(run_by_itself, NAMES), strict=True))
    failed = {name: process.stderr for name, process in ended.items() if process.returncode}
    assert failed == {}
    assert [name for name, process in ended.items() if not process.stdout] == []


async def test_quickstart(capsys: Printed) -> None:
    await quickstart.main()
    assert lines(capsys) == [
        "there was default/web-1",
        "there was default/web-2",
        "synced: 2 pods",
        "node-1 runs ['web-1']",
        "node-2 runs ['web-2']",
        "labelled app=web: ['default/web-1', 'default/web-2']",
        "added default/web-3",
        "updated default/web-1 to Succeeded",
        "updated default/web-2 to Running",
        "deleted default/web-2",
        "in the end: ['default/web-1', 'default/web-3']",
    ]


async def test_quickstart_on_a_cluster_changes_nothing(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quickstart, "FOLLOW", 0)
    async with APIServer() as server:
        server.create("v1", "pods", pod("web"))
        before = server.snapshot("v1", "pods")
        await quickstart.main(Client.from_url(server.url))
        assert server.snapshot("v1", "pods") == before
    assert lines(capsys)[:3] == ["there was default/web", "synced: 1 pods", "no node runs ['web']"]


async def test_reflector_bare_queue(capsys: Printed) -> None:
    await reflector_bare_queue.main()
    first = ["  Replaced: the object default/doomed", "  Replaced: the object default/kept"]
    gone = "  ... the server is gone, and forgets what happens meanwhile ..."
    kept = "  Replaced: the object default/kept"
    tombstone = "  Deleted: a tombstone of default/doomed"
    assert lines(capsys) == [
        *("Without known objects:", *first, gone, kept),
        *("With known objects:", *first, gone, kept, tombstone),
    ]


async def test_tombstones(capsys: Printed) -> None:
    await tombstones.main()
    printed = lines(capsys)
    assert [line for line in printed if not line.startswith("error: ")] == [
        "default/seen is gone; its last size was 1",
        "still in the cache: ['default/missed']",
        "default/missed is gone, its deletion was missed; its last known size was 1",
        "in the cache now: []",
    ]
    assert {"error: TransportError", "error: ApiError"} <= set(printed)


async def test_listener_handoff(capsys: Printed) -> None:
    await listener_handoff.main()
    assert lines(capsys) == [
        "fast: 2000 seen, depth 0, high water 2000",
        "slow: 0 delivered, depth 2000, at default/pod-0",
        "slow: 2000 delivered, depth 0",
    ]


async def test_typed_objects(capsys: Printed) -> None:
    await typed_objects.main()
    assert lines(capsys) == [
        "KubeObject: web on node-1",
        "dict: web on node-1",
        "Struct: web on node-1",
        "V1Pod: web on node-1",
        "unchanged: node-1",
    ]


async def test_factory(capsys: Printed) -> None:
    await factory.main()
    printed = lines(capsys)
    assert sorted(line for line in printed if line.startswith("a pod:")) == [
        "a pod: blog/web",
        "a pod: shop/web",
    ]
    assert [line for line in printed if not line.startswith("a pod:")] == [
        "requested twice, the same informer: True",
        "nodes: ['node-1']",
        "pods in shop: ['web']",
        "by image: ['shop/web']",
        "services in shop: ['shop/web']",
        "pods in shop, pods in blog: 2 objects, synced: True",
        "deployments.apps: 1 objects, synced: True",
        "nodes: 1 objects, synced: True",
        "services in shop: 1 objects, synced: True",
    ]


async def test_operator_finalizer(capsys: Printed) -> None:
    await operator_finalizer.main()
    assert lines(capsys) == [
        "taking care of default/database",
        "cleaning up after default/database",
        "default/database is gone",
    ]


async def test_namespace_finalizer(capsys: Printed) -> None:
    await namespace_finalizer.main()
    assert lines(capsys) == [
        "opened an account for acme",
        "acme is empty: closed its account",
        "acme is gone",
    ]


async def test_claim_backup(capsys: Printed) -> None:
    await claim_backup.main()
    printed = lines(capsys)
    assert printed[0] == "photos is in use"
    assert [line for line in printed if line != "photos is in use"] == [
        "the pod ends",
        "took a backup of photos",
        "photos is gone",
    ]


async def test_volume_wipe(capsys: Printed) -> None:
    await volume_wipe.main()
    printed = lines(capsys)
    assert printed[0] == "disk is bound"
    assert [line for line in printed if line != "disk is bound"] == [
        "the claim goes",
        "wiped /photos of disk",
        "disk is gone",
    ]


async def test_custom_resource(capsys: Printed) -> None:
    changes = await custom_resource.main()
    assert [change.path for change in changes] == [("replicas",), ("ports", "http")]
    assert lines(capsys) == [
        "the server has websites.example.com, version v1",
        "replicas: 1 -> 3",
        'ports[http]: added {"name":"http","target":"web"}',
    ]


async def test_operator_quickstart(capsys: Printed) -> None:
    await operator_quickstart.main()
    printed = lines(capsys)
    assert set(printed) == {"exposed default/web", "hidden default/web"}
    assert printed.count("exposed default/web") > 1, "it was deleted once"
    assert printed[-1] == "hidden default/web"


async def test_operator_cleanup(capsys: Printed) -> None:
    await operator_cleanup.main()
    assert lines(capsys) == [
        "made the bucket of default/photos",
        "still there: True",
        "deletes a file of default/photos, of 2",
        "deletes a file of default/photos, of 1",
        "removed the bucket of default/photos",
        "gone",
    ]


async def test_operator_triggers(capsys: Printed) -> None:
    await operator_triggers.main()
    printed = lines(capsys)
    assert printed[:3] == [
        "of the first list: default/settings",
        "by its secret: default/settings",
        "by the timer: default/timed",
    ]
    assert printed[3:5] == ["configmaps passed 1 of 2", "secrets, by map_of passed 1 of 2"]


async def test_operator_predicates(capsys: Printed) -> None:
    await operator_predicates.main()
    assert lines(capsys) == [
        "scaled up: GenerationChanged(), LabelsMatch('app=web,tier!=test'), (grew & ~Deleting())",
        "labelled: LabelsChanged(), LabelsMatch('app=web,tier!=test')",
        "annotated: GenerationChanged(), AnnotationsChanged()",  # of a Deployment annotations count
        "its status told: FieldsChanged('spec.paused', 'status.replicas')",
        "held: FinalizersChanged()",
        "to be deleted: GenerationChanged(), Deleting()",
    ]


async def test_operator_failures(capsys: Printed) -> None:
    await operator_failures.main()
    assert lines(capsys) == [
        "away: 10.0.0.7 does not answer (the environment)",
        "misspelt: there is no volume 'depe' (it cannot work)",
        "mistaken: mounting: reconciling default/mistaken returned 20, which is neither a Result nor None: to be "
        "called again in 20 s, return Result(requeue_after=20)"
        " (our bug)",
        "mounting: 3 objects failing, 1 for good",
        "default/hanging: running",
        "configmaps: 4 seen, 0 failed",
        "hanging: mounting: default/hanging took longer than 1 s (it took too long)",
    ]


async def test_operator_fastapi(capsys: Printed) -> None:
    await operator_fastapi.main()
    assert lines(capsys) == [
        "/healthz: 200",
        "/readyz: 503",
        "/readyz: 200",
        'workqueue_adds_total{controller="maps",name="maps"} 1.0',
    ]


async def test_operator_declared(capsys: Printed) -> None:
    await operator_declared.main()
    printed = lines(capsys)
    assert "get, list, watch secrets" in printed
    assert "default/empty fails: the page is empty" in printed


async def test_operator_leader(capsys: Printed) -> None:
    await operator_leader.main()
    assert lines(capsys) == ["both ready; leading: 1", "two reconciles default/settings"]


async def test_operator_threads(capsys: Printed) -> None:
    await operator_threads.main()
    assert lines(capsys) == ["ended with 3 of 3 parts sent", "given back: True"]


async def test_operator_webhooks(capsys: Printed) -> None:
    await operator_webhooks.main()
    assert lines(capsys) == [
        '/mutate/fill.websites.example.com [{"op":"add","path":"/spec/replicas","value":3}]',
        "/validate/check.websites.example.com spec.host: is not for ann",
        "calls: 2",
        "replicas: 3",
    ]


async def test_writing(capsys: Printed) -> None:
    await writing.main()
    assert lines(capsys) == [
        "created default/settings {'color': 'red'}",
        "too late: Conflict default/settings",
        "patched {'color': 'green', 'size': '9'}",
        "applied {'color': 'green', 'size': '9', 'shape': 'round'}",
        "not ours: ['.data.color']",
        "invalid: ['metadata.name']",
        "gone",
    ]


async def test_own_writes(capsys: Printed) -> None:
    await own_writes.main()
    assert lines(capsys) == ["default/counter-0 50", "default/counter-1 50", "read at the server: 0"]


async def test_leader_election(capsys: Printed) -> None:
    await leader_election.main()
    assert lines(capsys) == [*(f"leader number {n}" for n in range(3)), "everybody has led: ['a', 'b', 'c']"]


async def test_sharded_operator(capsys: Printed) -> None:
    await sharded_operator.main(None, kills=1, seconds=0.0)
    assert lines(capsys) == ["round 1 is done: a replica was killed, and the others reconciled its objects"]


async def test_event_recorder(capsys: Printed) -> None:
    await event_recorder.main()
    assert lines(capsys) == [
        "Normal Provisioned 10 Gi on disk-7 1",
        "Warning MountFailed timed out 20",
        "dropped 16 of 41, 16 of them over the budget",
    ]


async def test_work_queue(capsys: Printed) -> None:
    await work_queue.main()
    printed = lines(capsys)
    assert printed[0] == "fetched example.com/a after 0 failures"
    assert "fetched example.com/b after 2 failures" in printed
    later, high, low = (f"fetched example.com/{name} after 0 failures" for name in ("later", "high", "low"))
    assert later in printed  # before or after the high one, as time goes
    assert printed.index(high) < printed.index(low)
    assert printed[-1] == "drained"


async def test_rate_limiters(capsys: Printed) -> None:
    await rate_limiters.main()
    assert lines(capsys) == [
        "exponential: 1 2 4 8 10 10",
        "fast, then slow: 0.1 0.1 0.1 60 60 60",
        "bucket: 0 0 0 2 4 6",
        "the longer one: 1 2 4 4 10 20",
        "15 at most: 1 2 4 8 15 15",
        "client-go's, for queues: 0.001 0.002 0.004 0.008 0.016 0.032",
        "client-go's, for controllers: 0.005 0.01 0.02 0.04 0.08 0.16",
        "1 waits, 0 with workers, 1 later",
        'workqueue_depth{name="fetch"} 1',
        'workqueue_adds_total{name="fetch"} 2',
        'workqueue_retries_total{name="fetch"} 1',
        "item_size_sum{} 12",
        "item_size_count{} 2",
    ]


async def test_change_feed(capsys: Printed) -> None:
    await change_feed.main()
    assert lines(capsys) == [
        "red: RESET ",
        "red: ADDED default/a of team red",
        "red: SYNCED ",
        "all: RESET ",
        "all: ADDED default/a of team red",
        "all: SYNCED ",
        "all: MODIFIED default/a of team blue",
        "all: ADDED default/b of team red",
        "red resumes",
        "red: DELETED default/a of team red",
        "red: ADDED default/b of team red",
    ]


async def test_web_fastapi(capsys: Printed) -> None:
    await web_fastapi.main()
    assert lines(capsys) == [
        'pods: ["web"]',
        'data: {"type":"RESET"}',
        'data: {"type":"ADDED","key":"default/web',
        'data: {"type":"SYNCED"}',
        "the stream has ended",
        "uvicorn has ended without an error",
    ]


async def test_web_fastapi_on_a_client_of_ones_own() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "pods", pod("one"))
        server.create("v1", "pods", pod("two"))
        app = web_fastapi.create_app(client)
        async with app.router.lifespan_context(app), http_to(app) as http:
            while (await http.get("/kube/readyz")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert (await http.get("/pods/default")).json() == ["one", "two"]
            assert (await http.get("/pods/default/one")).json() == server.get("v1", "pods", "one")
            assert (await http.get("/pods/default/none")).status_code == 404
            assert 'aioinformer_objects{informer="pods"} 2' in (await http.get("/kube/metrics")).text
        assert (await client.get_json("/api/v1/namespaces/default/pods/one"))["kind"] == "Pod"


def test_web_fastapi_is_started_again_in_another_event_loop() -> None:
    async def ask() -> None:
        async with app.router.lifespan_context(app), http_to(app) as http:
            assert (await http.get("/kube/readyz")).status_code == 503

    app = web_fastapi.create_app(lambda: Client.from_url("http://127.0.0.1:1"))
    for _ in range(2):
        asyncio.run(ask())


def http_to(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app")


async def test_web_aiohttp(capsys: Printed) -> None:
    await web_aiohttp.main()
    assert lines(capsys) == [
        "/readyz: 503",
        "/readyz: 200 ok",
        '/pods/default: 200 ["web"]',
        "/pods/default/none: 404 pods 'default/none' not found",
        "RESET ",
        "ADDED default/web",
        "SYNCED ",
    ]
