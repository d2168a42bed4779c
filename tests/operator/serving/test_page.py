"""The debug page in a browser."""

from __future__ import annotations

import asyncio
import re
import shutil
import struct
import zlib
from pathlib import Path

import pytest

from aioinformer import Client, KubeObject
from aioinformer.operator import AdmissionReview, Denied, Operator, Request
from aioinformer.operator.serving import Debug, Serving, Tokens
from aioinformer.sharding import Sharding
from aioinformer.testing import APIServer, eventually
from tests.kubernetes.process import free_ports
from tests.sharding.written_leases import write_table

from ..webhooks.kinds import WebsiteV1, post, review, site
from .test_serving import failing_operator

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium")


async def browse(url: str, profile: Path, *options: str) -> str:
    """Return the page's elements after some of its polls."""
    assert BROWSER is not None
    process = await asyncio.create_subprocess_exec(
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
        "--window-size=1300,1500", "--virtual-time-budget=10000", *options, url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(90):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode()


def corner_of(picture: bytes) -> bytes:
    """Return the colour of a PNG's first pixel, which no filter changes."""
    at, pixels = 8, b""
    while at < len(picture):
        size, kind = struct.unpack(">I4s", picture[at : at + 8])
        pixels += picture[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return zlib.decompress(pixels)[1:4]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_shows_webhooks(tmp_path: Path, scheme: str) -> None:
    (port,) = free_ports(1)
    operator = Operator("sites", events=False)

    @operator.validate(WebsiteV1, operations=["CREATE", "DELETE"])
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        if review.object.spec.host == "denied":
            raise Denied("no")
        if review.object.spec.host == "broken":
            raise ValueError("no <i id=injected>markup</i>")

    async with APIServer() as server, Client.from_url(server.url) as client:
        manager = operator.manager(client)
        app = operator.webhook_app(manager)
        for host, number in (("a.example", 1234), ("denied", 17), ("broken", 3)):
            for _ in range(number):
                await post(app, "/validate/check.websites.hooks.example.com", review(site(host=host)))
        async with Serving(Debug(manager, "sites"), metrics_port=port, probe_port=0, host="127.0.0.1"):
            prefers = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
            url = f"http://127.0.0.1:{port}/debug"
            page = await browse(url, tmp_path, prefers, "--dump-dom")
            picture = tmp_path / "page.png"
            await browse(url, tmp_path, prefers, f"--screenshot={picture}")
    table = page.partition('<table id="webhooks">')[2].partition("</table>")[0]
    created, deleted = re.findall(r"<tr>(<td.*?)</tr>", table)
    assert re.findall(r'<td class="n[^"]*">([^<]*)</td>', created)[:5] == ["0", "1,234", "17", "3", "0"]
    assert "ago: ValueError: no &lt;i id=injected&gt;markup&lt;/i&gt;" in created
    assert re.search(r">≤ [\d.]+ ms<", created)
    assert "DELETE" in deleted
    assert "webhook calls" in page
    assert corner_of(picture.read_bytes()) == (b"\x11\x16\x1d" if scheme == "dark" else b"\xf6\xf7\xf9")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_shows_a_thousand_failing_keys(tmp_path: Path, scheme: str) -> None:
    (port,) = free_ports(1)
    operator = failing_operator("no <i id=injected>markup</i>")
    async with APIServer() as server, Client.from_url(server.url) as client:
        for number in range(1000):
            server.create("v1", "configmaps", {"metadata": {"name": f"bad-{number}"}})
        manager = operator.manager(client)
        async with (
            Serving(Debug(manager, "failing"), metrics_port=port, probe_port=0, host="127.0.0.1"),
            manager,
        ):
            await eventually(lambda: manager.controllers[0].state.failing == 1000)
            prefers = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
            url = f"http://127.0.0.1:{port}/debug"
            page = await browse(url, tmp_path, prefers, "--dump-dom")
            picture = tmp_path / "page.png"
            await browse(url, tmp_path, prefers, f"--screenshot={picture}")
    assert '<h1 id="name">failing</h1>' in page
    assert "1,000, 200 shown" in page
    assert len(re.findall(r"default/bad-\d+", page)) >= 200
    assert "no &lt;i id=injected&gt;markup&lt;/i&gt;" in page, "texts of errors are no markup"
    assert page.count("<polyline") == 4
    assert not re.search(r"(src|href)=\"(?!data:)", page), "no external assets"
    assert corner_of(picture.read_bytes()) == (b"\x11\x16\x1d" if scheme == "dark" else b"\xf6\xf7\xf9")


async def test_page_shows_the_owners_of_slots(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    operator = Operator("shared", events=False)
    operator.controller("configmaps")(do_nothing)
    owners = {"<i id=injected>": [0, 1, 2, 7]}
    async with APIServer() as server, Client.from_url(server.url) as client:
        for number in range(40):
            server.create("v1", "configmaps", {"metadata": {"name": f"c{number}"}})
        write_table(server, "shared", 8, owners)
        sharding = Sharding(client, "shared", "default", slots=8, lease_duration=120.0)
        manager = operator.manager(client, sharding=sharding)
        async with (
            Serving(Debug(manager, "shared"), metrics_port=port, probe_port=0, host="127.0.0.1"),
            manager,
        ):
            await eventually(
                lambda: sharding.state.owned == (3, 4, 5, 6) and len(sharding.state.objects) == 4, within=30
            )
            load = sharding.state.load
            assert load is not None
            url = f"http://127.0.0.1:{port}/debug"
            page = await browse(url, tmp_path, "--dump-dom")
            identity = sharding.state.identity
    part = page.partition('<div id="slots-part">')[2].partition('<div id="webhooks-part"')[0]
    assert "this replica owns 4 of 8; 4 moves, the last " in part
    assert f"objects per slot: {load.least} to {load.most} (slot {load.fullest}), median" in part
    assert "the server does not select slots" in part
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(<td.*?)</tr>", part)]
    assert ["&lt;i id=injected&gt;", "4", "0-2, 7", ""] in rows
    assert [identity, "4", "3-6", "this replica"] in rows
    assert part.count("<rect") == 8
    assert f"slot {load.fullest}: {identity}, {load.most} objects" in part
    assert "4 of 8 slots</span>" in page


async def do_nothing(request: Request[KubeObject]) -> None: ...


async def test_page_sends_the_token_of_its_address_or_asks_for_one(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with APIServer(token="administrator", rbac=True) as server:
        server.users["reader's"] = "reader"
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
        reader = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}
        rules = [{"nonResourceURLs": ["/debug.json"], "verbs": ["get"]}]
        group = "rbac.authorization.k8s.io/v1"
        server.create(group, "clusterroles", {"metadata": {"name": "reader"}, "rules": rules})
        binding = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [reader]}
        server.create(group, "clusterrolebindings", binding)
        async with Client.from_url(server.url, "administrator") as client:
            manager = failing_operator().manager(client)
            async with Serving(
                Debug(manager, "guarded"),
                metrics_port=port,
                probe_port=0,
                host="127.0.0.1",
                tokens=Tokens(client),
            ):
                url = f"http://127.0.0.1:{port}/debug"
                refused = await browse(url, tmp_path, "--dump-dom")
                shown = await browse(f"{url}#token=reader's", tmp_path, "--dump-dom")
    field = re.compile(r'<input id="token"[^>]*\bhidden\b')
    assert not field.search(refused), "it asks"
    assert "needs a token</span>" in refused
    assert field.search(shown)
    assert '<h1 id="name">guarded</h1>' in shown
