"""`/metrics`, and the health checks."""

from __future__ import annotations

from aioinformer.testing import APIServer
from tests.testing.client import APIClient

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def test_requests_objects_and_watches_are_counted(api: APIClient, server: APIServer) -> None:
    for name in ("a", "b"):
        await api.post(CONFIGMAPS, {"metadata": {"name": name}})
    await api.post(CONFIGMAPS, {"metadata": {"name": "c"}}, dryRun="All")
    await api.get(f"{CONFIGMAPS}/missing")
    await api.get("/livez")
    async with api.watch("/api/v1/configmaps"):
        answer = await api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.raw.decode().splitlines()
    about = 'component="apiserver",group="",resource="configmaps"'
    one = f'{about},scope="resource",subresource=""'
    assert f'apiserver_request_total{{code="201",dry_run="",{one},verb="POST",version="v1"}} 2' in lines
    assert f'apiserver_request_total{{code="201",dry_run="All",{one},verb="POST",version="v1"}} 1' in lines
    assert f'apiserver_request_total{{code="404",dry_run="",{one},verb="GET",version="v1"}} 1' in lines
    watching = f'{about},scope="cluster",subresource="",verb="WATCH",version="v1"'
    assert f"apiserver_longrunning_requests{{{watching}}} 1" in lines
    assert 'apiserver_resource_objects{group="",resource="configmaps"} 2' in lines
    assert any('subresource="/livez"' in line for line in lines)
    assert any(line.startswith("kubernetes_build_info{") for line in lines)


async def test_health_checks_are_listed(api: APIClient) -> None:
    assert (await api.get("/livez/ping")).raw == b"ok"
    assert (await api.get("/livez/nope")).status == 404
    listed = (await api.get("/readyz?verbose")).raw.decode().splitlines()
    assert (listed[0], listed[-1]) == ("[+]ping ok", "readyz check passed")
    without = (await api.get("/livez?verbose&exclude=etcd")).raw.decode()
    assert "[+]etcd excluded: ok\n" in without
    assert 'no matches for "nope"' in (await api.get("/livez?verbose&exclude=nope")).raw.decode()
