"""Webhooks over HTTPS, in other ASGI applications, and conversion reviews."""

from __future__ import annotations

import asyncio
import io
import logging
import ssl
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import trustme
import uvicorn
from fastapi import FastAPI

from aioinformer import ConfigError
from aioinformer.operator import AdmissionReview, Denied, Operator, WebhookServer
from aioinformer.operator.webhooks.server import default_drain
from aioinformer.testing import eventually
from tests.kubernetes.process import free_ports

from .certificates import Certificates
from .kinds import Object, SpecV1, SpecV2, WebsiteV1, WebsiteV2, post, review, site

PATH = "/validate/check.websites.hooks.example.com"


def make_denying() -> Operator:
    operator = Operator("sites")

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        raise Denied("no")

    return operator


async def certificate_of(port: int, context: ssl.SSLContext) -> str:
    """Return the certificate's number that a server shows."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    shown = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    await writer.wait_closed()
    return str(shown)


async def test_answers_over_https(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    async with (
        WebhookServer(
            make_denying().webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1"
        ) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=files.client_context())) as session,
    ):
        root = f"https://127.0.0.1:{server.port}"
        async with session.post(f"{root}{PATH}?timeout=10s", json=review(site())) as answer:
            assert (await answer.json())["response"]["status"]["message"] == "no"
        async with session.get(f"{root}{PATH}") as answer:
            assert answer.status == 405
        async with session.post(f"{root}/none", json={}) as answer:
            assert (answer.status, await answer.text()) == (404, "no webhook is at /none\n")
        async with session.post(
            f"{root}{PATH}", data=io.BytesIO(b" " * (8 << 20)), headers={"Content-Type": "application/json"}
        ) as answer:
            assert answer.status == 413


async def test_a_connection_that_shakes_hands_at_the_end_is_closed(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1") as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await certificate_of(server.port, files.client_context())  # it has accepted both connections
    with pytest.raises(ConnectionError):
        await writer.start_tls(files.client_context(), server_hostname="127.0.0.1")
    writer.close()


async def test_a_connection_that_is_lost_is_counted_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1") as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=files.client_context())
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
        )
        writer.write(head.encode() + b"half")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await eventually(lambda: [count.state.last_error for count in app.counts if count.failed])
    (error,) = [count.state.last_error for count in app.counts if count.failed]
    assert error == "check.websites.hooks.example.com: the connection was lost before the review was read"
    assert not caplog.records


async def test_new_certificates_are_served_and_broken_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Certificates(tmp_path)
    context = files.client_context()
    caplog.set_level(logging.INFO, "aioinformer.operator.webhooks")
    async with WebhookServer(
        make_denying().webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1", poll=0.01
    ) as server:
        first = await certificate_of(server.port, context)
        files.renew(broken=True)
        await eventually(lambda: "the last certificate is served until the files can be used" in caplog.text)
        assert await certificate_of(server.port, context) == first
        files.renew()
        await eventually(lambda: "has changed: new connections get the new one" in caplog.text)
        assert await certificate_of(server.port, context) != first
    assert caplog.text.count("the last certificate is served") == 1


async def test_a_renewed_certificate_of_another_type_of_key_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Certificates(tmp_path)
    caplog.set_level(logging.INFO, "aioinformer.operator.webhooks")
    async with WebhookServer(
        make_denying().webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1", poll=0.01
    ) as server:
        served = {await certificate_of(server.port, files.client_context())}
        for key_type in (trustme.KeyType.RSA, trustme.KeyType.ECDSA):
            caplog.clear()
            files.renew(key_type=key_type)
            await eventually(lambda: "has changed: new connections" in caplog.text)
            served.add(await certificate_of(server.port, files.client_context()))
    assert len(served) == 3


async def test_files_that_others_may_write_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1"):
        assert not caplog.messages
    files.key.chmod(0o622)
    async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1"):
        (warning,) = caplog.messages
    assert warning == f"{files.key} may be written by other users: chmod go-w {files.key}"


async def test_connections_are_accepted_for_a_while_after_the_end_began(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    server = WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1", drain=60)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server)
        ending = asyncio.create_task(stack.pop_all().aclose())
        await asyncio.sleep(0.05)
        assert await certificate_of(server.port, files.client_context())
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
    with pytest.raises(ConnectionRefusedError):
        await certificate_of(server.port, files.client_context())


async def test_a_failure_ends_it_at_once(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    with pytest.raises(KeyError):
        async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1", drain=60):
            raise KeyError


@pytest.mark.parametrize(("host", "seconds"), [("10.0.0.1", 5.0), ("", 0.0)], ids=["in a pod", "elsewhere"])
def test_the_api_server_learns_of_the_end_in_a_pod_only(
    host: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    assert default_drain() == seconds


async def test_a_review_that_comes_too_slowly_is_refused(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1") as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=files.client_context())
        head = f"POST {PATH}?timeout=0.1s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99"
        writer.write(head.encode() + b"\r\n\r\nhalf")
        await writer.drain()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b"the review was not read within 0.09 s\n")


async def test_an_expired_certificate_is_logged_once_until_it_is_renewed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Certificates(tmp_path, expired=True)
    caplog.set_level(logging.INFO, "aioinformer.operator.webhooks")
    async with WebhookServer(
        make_denying().webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1", poll=0.01
    ) as server:
        assert "cannot be used (certificate has expired): the API server calls no webhooks" in caplog.text
        files.renew()
        await eventually(lambda: "has changed: new connections" in caplog.text)
        await certificate_of(server.port, files.client_context())
    assert caplog.text.count("certificate has expired") == 1


async def test_a_certificate_that_no_handshake_accepts_is_logged_and_the_next_one_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Certificates(tmp_path)
    files.use_curve_without_tls()
    caplog.set_level(logging.INFO, "aioinformer.operator.webhooks")
    async with WebhookServer(
        make_denying().webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1", poll=0.01
    ) as server:
        assert caplog.text.count("no shared cipher") == 1
        assert "the API server calls no webhooks until it is renewed" in caplog.text
        files.renew()
        await eventually(lambda: "has changed" in caplog.text)
        files.use_curve_without_tls()
        await eventually(lambda: caplog.text.count("no shared cipher") == 2)
        caplog.clear()
        files.renew()
        await eventually(lambda: "has changed" in caplog.text)
        await certificate_of(server.port, files.client_context())


async def test_files_and_ports_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    app = make_denying().webhook_app()
    with pytest.raises(ConfigError, match=r"tls\.crt with the key /none cannot be used: No such file"):
        async with WebhookServer(app, port=0, cert=files.cert, key="/none"):
            pass
    with pytest.raises(ConfigError, match="cannot be used"):
        async with WebhookServer(app, port=0, cert=files.cert, key=files.cert):
            pass
    async with WebhookServer(app, port=0, cert=files.cert, key=files.key, host="127.0.0.1") as server:
        with pytest.raises(ConfigError, match=r"is in use: .* pass another --webhook-port"):
            async with WebhookServer(app, port=server.port, cert=files.cert, key=files.key, host="127.0.0.1"):
                pass


async def test_mounted_in_fastapi() -> None:
    service = FastAPI()
    service.mount("/webhooks", make_denying().webhook_app())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=service), base_url="http://service"
    ) as session:
        answer = await session.post(f"/webhooks{PATH}", json=review(site()))
    assert answer.json()["response"]["allowed"] is False


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_under_uvicorn_with_its_lifespan() -> None:
    (port,) = free_ports(1)
    config = uvicorn.Config(make_denying().webhook_app(), port=port, lifespan="on", log_level="warning")
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        await eventually(lambda: server.started)
        async with aiohttp.ClientSession() as session:
            async with session.post(f"http://127.0.0.1:{port}{PATH}", json=review(site())) as answer:
                assert (await answer.json())["response"]["allowed"] is False
            async with session.post(f"http://127.0.0.1:{port}{PATH}", data=b"x") as answer:
                assert answer.status == 415
        server.should_exit = True


def make_converting() -> Operator:
    operator = Operator("sites")

    @operator.convert(WebsiteV1, WebsiteV2)
    async def newer(old: WebsiteV1) -> WebsiteV2:
        if old.spec.host == "bad":
            raise Denied("is bad", field="spec.host")
        old.metadata.annotations = {"from": "v1"}
        return WebsiteV2(SpecV2(hosts=[old.spec.host]), metadata=old.metadata)

    @operator.convert(WebsiteV2, WebsiteV1)
    def older(old: WebsiteV2) -> WebsiteV1:
        return WebsiteV1(SpecV1(host=old.spec.hosts[0]))

    return operator


def conversion(desired: str, *objects: Object) -> Object:
    request = {"uid": "u-2", "desiredAPIVersion": desired, "objects": list(objects)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def convert(operator: Operator, asked: Object) -> Any:
    app = operator.webhook_app()
    answer = await post(app, app.paths[-1], asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["response"]


async def test_conversion_keeps_metadata() -> None:
    managed: Object = {"name": "a", "namespace": "default", "uid": "1", "managedFields": [{"manager": "x"}]}
    obj = {**site(), "metadata": {**managed, "labels": {"a": "b"}}}
    response = await convert(make_converting(), conversion("hooks.example.com/v2", obj, obj))
    assert response["result"] == {"status": "Success"}
    assert response["uid"] == "u-2"
    assert response["convertedObjects"] == 2 * [
        {
            "apiVersion": "hooks.example.com/v2",
            "kind": "Website",
            "metadata": {**managed, "labels": {"a": "b"}, "annotations": {"from": "v1"}},
            "spec": {"hosts": ["a.example"], "minReady": 1},
        }
    ]
    (back,) = (
        await convert(make_converting(), conversion("hooks.example.com/v1", response["convertedObjects"][0]))
    )["convertedObjects"]
    assert back["metadata"]["labels"] == {"a": "b"}, "without metadata, all of it stays"
    assert back["spec"] == {"host": "a.example"}


async def test_conversion_that_is_refused() -> None:
    response = await convert(make_converting(), conversion("hooks.example.com/v2", site(host="bad")))
    assert response == {"uid": "u-2", "result": {"status": "Failure", "message": "spec.host: is bad"}}


async def test_conversion_of_unknown_versions_fails(caplog: pytest.LogCaptureFixture) -> None:
    app = make_converting().webhook_app()
    answer = await post(app, app.paths[-1], conversion("hooks.example.com/v3", site()))
    assert answer.status_code == 500
    assert "no conversion from hooks.example.com/v1 to hooks.example.com/v3" in caplog.text


async def test_conversion_without_a_name_that_returns_another_type_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator = Operator("sites")
    up: Any = partial(lambda old: old)
    operator.convert(WebsiteV1, WebsiteV2)(up)
    operator.convert(WebsiteV2, WebsiteV1)(up)
    app = operator.webhook_app()
    answer = await post(app, app.paths[-1], conversion("hooks.example.com/v2", site()))
    assert "InvalidResultError" in answer.text
    assert "functools.partial" in caplog.text
    assert "not a WebsiteV2" in caplog.text


async def test_conversion_goes_through_versions_in_between() -> None:
    class WebsiteV3(WebsiteV2, version="v3"):
        spec: SpecV1  # type: ignore[assignment]

    operator = make_converting()
    operator.convert(WebsiteV2, WebsiteV3)(lambda old: WebsiteV3(SpecV1(host=f"{old.spec.hosts[0]}.v3")))
    operator.convert(WebsiteV3, WebsiteV2)(lambda old: WebsiteV2(SpecV2(hosts=[old.spec.host])))
    response = await convert(operator, conversion("hooks.example.com/v3", site()))
    assert response["convertedObjects"][0]["spec"] == {"host": "a.example.v3"}
