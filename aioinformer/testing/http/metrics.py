"""`/metrics`: the few of the real server's metrics that mean the same here."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.requests import Request

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

_VERBS = {"create": "POST", "update": "PUT"}


class _Labels(NamedTuple):
    """The labels of a request, in the alphabetical order in which they are written."""

    component: str
    group: str
    resource: str
    scope: str
    subresource: str
    verb: str
    version: str


class _Counted(NamedTuple):
    """The labels that a counted request has besides."""

    code: int
    dry_run: str
    labels: _Labels


class Metrics:
    """Counts requests, and writes the metrics in the format of Prometheus.

    Args:
        cluster: The objects to count.
        watches: Returns the requests of the open watches.
    """

    def __init__(self, cluster: Cluster, watches: Callable[[], Iterable[Request]]) -> None:
        self._cluster = cluster
        self._watches = watches
        self._requests: Counter[_Counted] = Counter()

    def count(self, request: Request, *, applied: bool) -> None:
        """Count an answered request."""
        labels = _labels(request)
        if applied:
            labels = labels._replace(verb="APPLY")
        self._requests[_Counted(request.status, request.query.get("dryRun", ""), labels)] += 1

    def text(self, version: dict[str, str]) -> str:
        """Return all metrics; `version` is what `/version` shows."""
        running = Counter(_labels(request) for request in self._watches())
        objects = {
            f'{{group="{group}",resource="{plural}"}}': len(collection.objects)
            for (group, plural), collection in self._cluster.storage.collections()
        }
        build = ",".join(f'{label}="{version[name]}"' for label, name in _BUILD.items())
        return "".join(
            [
                *_family("apiserver_longrunning_requests", "gauge", "Open watches.", _show(running)),
                *_family(
                    "apiserver_request_total",
                    "counter",
                    "Answered requests.",
                    {
                        f'{{code="{request.code}",dry_run="{request.dry_run}",{_text(request.labels)}}}': number
                        for request, number in self._requests.items()
                    },
                ),
                *_family("apiserver_resource_objects", "gauge", "Stored objects.", objects),
                *_family("kubernetes_build_info", "gauge", "The version.", {f"{{{build}}}": 1}),
            ]
        )


_BUILD = {
    "build_date": "buildDate",
    "compiler": "compiler",
    "git_commit": "gitCommit",
    "git_tree_state": "gitTreeState",
    "git_version": "gitVersion",
    "go_version": "goVersion",
    "major": "major",
    "minor": "minor",
    "platform": "platform",
}


def _labels(request: Request) -> _Labels:
    if not request.resource:
        return _Labels("", "", "", "", request.path.rstrip("/"), request.method, "")
    verb = _VERBS.get(request.verb, request.verb.upper())
    scope = "namespace" if request.namespace else "cluster"
    if request.name or request.verb == "create":
        scope = "resource"
    return _Labels(
        "apiserver", request.group, request.resource, scope, request.subresource, verb, request.version
    )


def _text(labels: _Labels) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels._asdict().items())


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _show(counted: Counter[_Labels]) -> dict[str, int]:
    return {f"{{{_text(labels)}}}": number for labels, number in counted.items()}


def _family(name: str, kind: str, meaning: str, values: dict[str, int]) -> Iterable[str]:
    if values:
        yield f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
        yield from (f"{name}{labels} {number}\n" for labels, number in sorted(values.items()))
