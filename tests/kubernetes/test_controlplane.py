"""The control plane runs the real servers, and its methods do what they say."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import uvloop

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.kubectl import KubectlError
from tests.kubernetes.process import StartError
from tests.kubernetes.threads import in_thread

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]


@pytest.fixture
async def http(
    control_plane: ControlPlane, kubernetes_namespace: str
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client whose paths start in the test's namespace."""
    async with session(control_plane, control_plane.token, kubernetes_namespace) as opened:
        yield opened


def session(control_plane: ControlPlane, token: str, namespace: str) -> aiohttp.ClientSession:
    context = control_plane.ssl_context()
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default since Python 3.13
    return aiohttp.ClientSession(
        f"{control_plane.url}/api/v1/namespaces/{namespace}/",
        connector=aiohttp.TCPConnector(ssl=context),
        headers={"Authorization": f"Bearer {token}"},
    )


async def create(http: aiohttp.ClientSession, name: str) -> dict[str, Any]:
    body = {"metadata": {"name": name}, "data": {"a": "1"}}
    async with http.post("configmaps", json=body) as answer:
        assert answer.status == 201, await answer.text()
        created: dict[str, Any] = await answer.json()
        return created


async def watch(http: aiohttp.ClientSession, **options: str) -> list[dict[str, Any]]:
    """Return all events of a watch that the server ends after a second."""
    query = {"watch": "true", "timeoutSeconds": "1", **options}
    async with http.get("configmaps", params=query) as answer:
        assert answer.status == 200, await answer.text()
        return [json.loads(line) async for line in answer.content]


def test_tests_with_the_real_server_run_in_one_worker(request: pytest.FixtureRequest, worker_id: str) -> None:
    if worker_id == "master" or request.config.getoption("dist") != "loadgroup":
        pytest.skip("all run in one process, or are not grouped")
    assert request.node.nodeid.endswith("@kubernetes")


async def test_pod_created_by_kubectl_is_read_over_http(
    control_plane: ControlPlane, kubernetes_namespace: str, http: aiohttp.ClientSession
) -> None:
    namespace = f"--namespace={kubernetes_namespace}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "example.com/web"}]},
    }
    await control_plane.kubectl("create", namespace, "-f", "-", stdin=json.dumps(pod))
    async with http.get("pods", params={"fieldSelector": "metadata.name=web"}) as answer:
        listed = await answer.json()
    assert listed["kind"] == "PodList"
    assert [item["status"]["phase"] for item in listed["items"]] == ["Pending"]
    await control_plane.kubectl("delete", namespace, "pod", "web")
    with pytest.raises(KubectlError, match='pods "web" not found'):
        await control_plane.kubectl("get", namespace, "pod", "web")


async def test_watch_sends_events_since_a_version(http: aiohttp.ClientSession) -> None:
    created = await create(http, "watched")
    async with http.delete("configmaps/watched") as answer:
        assert answer.status == 200
    version = created["metadata"]["resourceVersion"]
    assert [event["type"] for event in await watch(http, resourceVersion=version)] == ["DELETED"]


async def test_watch_list_streams_the_objects_and_then_its_bookmark(http: aiohttp.ClientSession) -> None:
    await create(http, "streamed")
    added, bookmark = await watch(
        http,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "streamed")
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_powerless_user_gets_403(control_plane: ControlPlane) -> None:
    async with (
        session(control_plane, control_plane.powerless_token, "default") as powerless,
        powerless.get("pods") as answer,
    ):
        assert answer.status == 403
        assert 'User "powerless" cannot list resource "pods"' in (await answer.json())["message"]
    with pytest.raises(KubectlError, match="Forbidden"):
        await control_plane.kubectl("--context=powerless", "get", "pods")


async def test_restart_keeps_the_data_and_loses_the_history(
    control_plane: ControlPlane, http: aiohttp.ClientSession
) -> None:
    before = (await create(http, "kept"))["metadata"]["resourceVersion"]
    await create(http, "newer")
    await control_plane.compact()
    control_plane.kill()
    assert control_plane.pid is None
    with pytest.raises(aiohttp.ClientConnectionError):
        await http.get("configmaps")
    await control_plane.restart()
    async with http.get("configmaps/kept") as answer:
        assert (await answer.json())["metadata"]["resourceVersion"] == before
    (expired,) = await watch(http, resourceVersion=before)
    assert (expired["type"], expired["object"]["code"]) == ("ERROR", 410)
    assert expired["object"]["reason"] == "Expired"


async def test_api_recovers_after_an_outage_of_etcd(
    control_plane: ControlPlane, http: aiohttp.ClientSession
) -> None:
    await create(http, "before")
    control_plane.kill_etcd()
    with pytest.raises(TimeoutError):  # the server waits half a minute for etcd
        await http.get("configmaps/before", timeout=aiohttp.ClientTimeout(0.2))
    await control_plane.restart_etcd()
    async with http.get("configmaps/before") as answer:
        assert answer.status == 200


def test_control_plane_works_with_uvloop(control_plane: ControlPlane) -> None:
    assert "v1.36.3" in uvloop.run(control_plane.kubectl("version"))


@pytest.mark.usefixtures("kubernetes_binaries")
async def test_controllers_finalise_and_feature_gates_are_set() -> None:
    async with ControlPlane(feature_gates={"ShardedListAndWatch": True}) as own:
        await in_thread(lambda abort: own.start_controller_manager(abort=abort))
        assert 'name="ShardedListAndWatch",stage="ALPHA"} 1' in await own.kubectl("get", "--raw", "/metrics")
        await own.kubectl("create", "namespace", "emptied")
        await own.kubectl("--namespace=emptied", "create", "configmap", "inside")
        await own.kubectl("delete", "namespace", "emptied", "--timeout=60s")


@pytest.mark.usefixtures("kubernetes_binaries")
async def test_error_of_a_server_that_does_not_start_has_its_log() -> None:
    with pytest.raises(StartError, match="unknown flag: --nonsense"):
        async with ControlPlane(extra_args=["--nonsense"]):
            pass


@pytest.mark.usefixtures("kubernetes_binaries")
async def test_cancelled_start_leaves_no_process() -> None:
    started = ControlPlane()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5), started:
            pass
    assert started.pid is None
    with pytest.raises(RuntimeError, match="has not been started"):
        _ = started.url
