"""The paths without a resource: discovery, health, metrics, OpenAPI, the version, and the keys of tokens."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing import errors
from aioinformer.testing.access.accounts import ISSUER
from aioinformer.testing.access.authorization import PUBLIC
from aioinformer.testing.http.answers import headers
from aioinformer.testing.http.discovery import Discovery, show_json
from aioinformer.testing.http.encodings import JSON
from aioinformer.testing.http.health import health
from aioinformer.testing.http.metrics import CONTENT_TYPE
from aioinformer.testing.http.negotiation import encoding_of_document
from aioinformer.testing.http.openapi import OpenAPI
from aioinformer.testing.schema.builtin import kubernetes_version

if TYPE_CHECKING:
    from aioinformer.testing.access.accounts import Accounts
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.http.metrics import Metrics
    from aioinformer.testing.requests import Request


@cache
def _version() -> dict[str, str]:
    """Return what `/version` shows: the version that the schemas are of."""
    version = kubernetes_version()
    major, minor, _ = version.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{version}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "aioinformer/testing",
    }


_PATHS = (
    *("/.well-known/openid-configuration", "/api", "/apis", "/metrics"),
    *("/openapi/v2", "/openapi/v3", "/openid/v1/jwks"),
)


class Paths:
    """Answers the paths without a resource.

    Args:
        cluster: The resources.
        accounts: Knows the keys of tokens.
        metrics: Writes the metrics.
    """

    def __init__(self, cluster: Cluster, accounts: Accounts, metrics: Metrics) -> None:
        self._accounts = accounts
        self._metrics = metrics
        self._discovery = Discovery(cluster.registry)
        self._openapi = OpenAPI(cluster)

    def answer(self, request: Request, accept: str, url: str) -> web.Response:
        """Return the answer to a path, or a 404.

        Args:
            request: The request.
            accept: Its Accept header.
            url: The server's URL, as the client sees it.

        Raises:
            StatusError: 405 for writing methods, 406.
        """
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        match request.path.rstrip("/"):
            case "":
                return show_json({"paths": sorted([*PUBLIC, *_PATHS])})
            case "/version":
                encoding_of_document(accept, (JSON,))
                return show_json(_version())
            case "/metrics":
                return web.Response(
                    body=self._metrics.text(_version()).encode(), headers=headers(CONTENT_TYPE)
                )
            case "/openapi/v2":
                return self._openapi.answer_v2(accept, _version()["gitVersion"])
            case "/.well-known/openid-configuration":
                return show_json(_openid_configuration(url))
            case "/openid/v1/jwks":
                return show_json(self._accounts.keys, "application/jwk-set+json")
            case path if path.startswith("/openapi/v3"):
                answer = self._openapi.answer(request, accept)
            case _:
                answer = health(request)
        return self._discovery.answer(request, accept, url) if answer is None else answer


def _openid_configuration(url: str) -> dict[str, Any]:
    return {
        "issuer": ISSUER,
        "jwks_uri": f"{url}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
