"""Short blocking calls to servers on loopback, for code outside an event loop."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT = 2.0


def answers_ok(url: str, *, ca_file: Path | None = None, token: str | None = None) -> bool:
    """Whether GET returns 200. False while the server does not listen or has not written its certificate."""
    try:
        connection = _connection(url, ca_file)
    except (FileNotFoundError, ssl.SSLError):
        return False
    try:
        connection.request("GET", urlsplit(url).path, headers=_headers(token))
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def post_json(
    url: str, body: dict[str, Any], *, ca_file: Path | None = None, token: str | None = None
) -> dict[str, Any]:
    connection = _connection(url, ca_file)
    try:
        headers = {"Content-Type": "application/json", **_headers(token)}
        connection.request("POST", urlsplit(url).path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"POST {url}: {answer.status} {text.decode(errors='replace')}")
        content: dict[str, Any] = json.loads(text)
        return content
    finally:
        connection.close()


def get_json(url: str, *, ca_file: Path | None = None, token: str | None = None) -> dict[str, Any]:
    connection = _connection(url, ca_file)
    try:
        connection.request("GET", urlsplit(url).path, headers=_headers(token))
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"GET {url}: {answer.status} {text.decode(errors='replace')}")
        content: dict[str, Any] = json.loads(text)
        return content
    finally:
        connection.close()


def _headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _connection(url: str, ca_file: Path | None) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT)
    context = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_TIMEOUT, context=context)
