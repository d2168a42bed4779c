"""Short blocking calls to servers on loopback, for code outside an event loop."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple
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


class Answer(NamedTuple):
    """An answer in JSON, with its Warning headers."""

    status: int
    body: dict[str, Any]
    warnings: list[str]


def ask(
    method: str,
    url: str,
    body: dict[str, Any] | None = None,
    *,
    ca_file: Path | None = None,
    token: str | None = None,
) -> Answer:
    """Return the answer to a request in JSON."""
    connection, parts = _connection(url, ca_file), urlsplit(url)
    try:
        headers = {"Content-Type": "application/json", **_headers(token)}
        sent = None if body is None else json.dumps(body)
        connection.request(method, f"{parts.path}?{parts.query}", sent, headers)
        answer = connection.getresponse()
        return Answer(answer.status, json.loads(answer.read()), answer.headers.get_all("Warning", []))
    finally:
        connection.close()


def post_json(
    url: str, body: dict[str, Any], *, ca_file: Path | None = None, token: str | None = None
) -> dict[str, Any]:
    return _successful(url, ask("POST", url, body, ca_file=ca_file, token=token))


def get_json(url: str, *, ca_file: Path | None = None, token: str | None = None) -> dict[str, Any]:
    return _successful(url, ask("GET", url, ca_file=ca_file, token=token))


def _successful(url: str, answer: Answer) -> dict[str, Any]:
    if answer.status not in (200, 201):
        raise RuntimeError(f"{url}: {answer.status} {answer.body}")
    return answer.body


def _headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _connection(url: str, ca_file: Path | None) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT)
    context = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_TIMEOUT, context=context)
