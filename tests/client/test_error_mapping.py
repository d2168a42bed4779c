from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import aiohttp
import pytest
from kubernetes_asyncio.client.exceptions import ApiException

from aioinformer import AioInformerError, ApiError, TransportError
from aioinformer.cache import TypeMeta
from aioinformer.client.error_mapping import (
    add_detail,
    api_error,
    name_request,
    network_error,
    safe_cause,
    status_error,
)
from aioinformer.errors import DecodeError

from ..objects.protobuf.samples import envelope
from ..objects.protobuf.test_envelope import STATUS


def status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}).encode()


def test_status_becomes_an_api_error() -> None:
    error = api_error(410, status(code=410, reason="Expired", message="too old", details={"kind": "pods"}))
    assert (error.status, error.reason, error.message) == (410, "Expired", "too old")
    assert error.details == {"kind": "pods"}
    assert error.is_expired


def test_protobuf_status_becomes_an_api_error() -> None:
    error = api_error(410, envelope(STATUS, TypeMeta("v1", "Status")))
    assert (error.status, error.reason, error.message) == (410, "Expired", "too old resource version")
    assert api_error(500, envelope(b"\xff", TypeMeta("v1", "Status"))).reason == "InternalError"


def test_status_without_a_code_has_the_http_status() -> None:
    assert api_error(403, status(reason="Forbidden")).status == 403


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (410, "Gone"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (502, ""),
        (503, "ServiceUnavailable"),
    ],
)
def test_an_answer_of_text_has_the_reason_of_its_code(code: int, reason: str) -> None:
    error = api_error(code, b"no JSON at all\n")
    assert (error.status, error.reason, error.message) == (code, reason, "no JSON at all")


def test_html_page_becomes_a_short_message() -> None:
    page = (
        b"<html><head><title>x</title><style>p {}</style></head><h1>502 &amp; Bad</h1>\n<p>nginx" + b"!" * 900
    )
    error = api_error(502, page)
    assert error.message.startswith("502 & Bad nginx!!")
    assert len(error.message) < 400


@pytest.mark.parametrize(
    "page",
    [
        b"<h1>502</h1> nginx <script>a()",
        b"<head><title>x</title><style>p {}</style><body class='b'><h1>502</h1>nginx</body>",
        b"<style>p {}</style>502<script>if (a<b) {}</script> nginx<style",
    ],
)
def test_html_that_is_not_closed(page: bytes) -> None:
    assert api_error(502, page).message == "502 nginx"


@pytest.mark.parametrize("piece", [b"<script", b"<head>", b"<", b"<a ", b"<head><script></style>"])
def test_html_is_read_in_linear_time(piece: bytes) -> None:
    begin = time.process_time()
    api_error(502, piece * (200_000 // len(piece)))
    assert time.process_time() - begin < 5  # a quadratic search takes minutes


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xff", b"[1]", b'{"kind":"Pod"}', b"[" * 4000, b"<p>&#" + b"9" * 5000],
    ids=lambda body: body[:10],
)
def test_any_body_becomes_an_api_error(body: bytes) -> None:
    assert api_error(500, body).status == 500


def test_retry_after_is_seconds_or_a_date() -> None:
    assert api_error(429, b"", "3").retry_after == 3
    assert 90 < (api_error(503, b"", formatdate(time.time() + 100, usegmt=True)).retry_after or 0) <= 100
    assert api_error(503, b"", "Wed, 21 Oct 2015 07:28:00 GMT").retry_after is None
    assert api_error(429, b"", "soon").retry_after is None
    assert api_error(429, b"", "-5").retry_after is None
    assert api_error(429, b"", "Fri, 31 Dec 99999 23:59:59 GMT").retry_after is None
    assert api_error(429, status(details={"retryAfterSeconds": 7}), "3").retry_after == 7


@pytest.mark.parametrize(
    "error", [OSError("reset"), TimeoutError(), ConnectionResetError(), aiohttp.ClientError("odd")]
)
def test_errors_of_the_network_are_transport_errors(error: Exception) -> None:
    with pytest.raises(TransportError, match=r"^list pods: ") as caught, name_request("list pods"):
        raise error
    assert caught.value.__cause__ is error


def test_an_api_exception_is_an_api_error() -> None:
    raised: Any = ApiException(status=410, reason="Gone")
    raised.body = status(code=410, reason="Expired", message="too old").decode()
    raised.headers = {"Retry-After": "2"}
    with pytest.raises(ApiError) as caught, name_request("list pods"):
        raise raised
    assert caught.value.is_expired
    assert caught.value.retry_after == 2
    assert str(caught.value) == "list pods: 410 Expired: too old"
    bare = network_error(ApiException(status=503, reason="Service Unavailable"))
    assert isinstance(bare, ApiError)
    assert (bare.status, bare.message) == (503, "Service Unavailable")


def test_errors_of_this_package_name_the_request() -> None:
    with pytest.raises(ApiError, match=r"^list pods: 404"), name_request("list pods"):
        raise ApiError(404)
    with pytest.raises(DecodeError, match=r"^list pods: bad"), name_request("list pods"):
        raise DecodeError("bad")
    with pytest.raises(ApiError, match=r"^first: 404"), name_request("second"), name_request("first"):
        raise ApiError(404)


@pytest.mark.parametrize("error", [TransportError("refused"), DecodeError("bad"), OSError("refused")])
def test_request_is_named_once(error: Exception) -> None:
    once = pytest.raises(AioInformerError, match=r"^list pods, a further page: (refused|bad)$")
    with once, name_request("list pods"), name_request("list pods, a further page"):
        raise error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ApiError(302), "302 Unknown: moved"),
        (ApiError(404, "NotFound", "no page"), "404 NotFound: no page; moved"),
        (TransportError("refused"), "refused; moved"),
    ],
)
def test_add_detail(error: ApiError | TransportError, says: str) -> None:
    add_detail(error, "moved")
    assert str(error) == says


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match=r"^mine$"), name_request("list pods"):
        raise ValueError("mine")


def test_the_status_of_an_error_event() -> None:
    assert str(status_error({"code": 410, "reason": "Gone", "message": "old"})) == "410 Gone: old"
    assert status_error(b'{"code": 410, "reason": "Gone"}').is_expired


@pytest.mark.parametrize(
    "sent", [b"garbage", None, 17, ["x"], {"kind": "Pod", "code": 500}, b'{"kind": "Pod"}']
)
def test_an_error_event_without_a_status_says_what_was_sent_and_is_no_internal_error(sent: Any) -> None:
    error = status_error(sent)
    assert not error.is_internal_error
    said = {"kind": "Pod"} if isinstance(sent, bytes) and sent.startswith(b"{") else sent
    assert str(error) == f"Unknown: the watch sent an ERROR event that is not a Status: {said!r}"


@pytest.mark.parametrize("code", [None, 0, -1, 10**30, "503"])
def test_a_status_without_a_code_has_that_of_its_answer_if_it_is_one(code: Any) -> None:
    status = {"kind": "Status", "message": "busy", "code": code}
    assert api_error(503, json.dumps(status).encode()).status == 503
    assert str(status_error(status)) == "Unknown: busy"


def test_error_contains_no_password_of_a_url() -> None:
    """As aiohttp's messages may hold them."""
    url = "https://ada:secret@proxy:3128"
    for error in (
        aiohttp.ClientConnectionError(f"no TLS by an HTTPS proxy {url} ssl:True"),
        aiohttp.InvalidURL(url.replace("secret", "se cret"), "no URL"),
    ):
        converted = network_error(error)
        assert isinstance(converted, TransportError)
        assert "https://proxy:3128" in str(converted)
        assert "cret" not in str(converted)
        assert safe_cause(error) is None
    harmless = aiohttp.ClientConnectionError("ada@example.com has no https://proxy:3128")
    assert str(network_error(harmless)) == str(harmless)
    assert safe_cause(harmless) is harmless
