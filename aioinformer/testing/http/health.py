"""Health: `/livez`, `/readyz`, `/healthz`, and their single checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from aioinformer.testing.requests import Request

_HOOKS = (
    *("start-apiserver-admission-initializer", "generic-apiserver-start-informers"),
    *("priority-and-fairness-config-consumer", "priority-and-fairness-filter"),
    *("storage-object-count-tracker-hook", "start-apiextensions-informers"),
    *("start-apiextensions-controllers", "crd-informer-synced", "start-system-namespaces-controller"),
    *("peer-endpoint-reconciler-controller", "start-cluster-authentication-info-controller"),
    *("start-kube-apiserver-identity-lease-controller",),
    *("start-kube-apiserver-identity-lease-garbage-collector", "storage-readiness"),
    *("start-legacy-token-tracking-controller", "start-service-ip-repair-controllers"),
    *("rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"),
    *("priority-and-fairness-config-producer", "bootstrap-controller"),
    *("start-kubernetes-service-cidr-controller", "start-kube-aggregator-informers"),
    *("apiservice-status-local-available-controller", "apiservice-status-remote-available-controller"),
    *("apiservice-registration-controller", "apiservice-discovery-controller"),
    *("kube-apiserver-autoregistration", "autoregister-completion"),
    *("apiservice-openapi-controller", "apiservice-openapiv3-controller"),
)
_STARTED = tuple(each if each == "autoregister-completion" else f"poststarthook/{each}" for each in _HOOKS)
_CHECKS = {
    "livez": ("ping", "log", "etcd", *_STARTED),
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_STARTED, "shutdown"),
    "healthz": ("ping", "log", "etcd", *_STARTED),
}
"""The checks of the real server."""


def health(request: Request) -> web.Response | None:
    """Return the answer to a path of a health check, or None for another path.

    Every check passes: a server that answers is healthy.
    """
    name, _, check = request.path.strip("/").partition("/")
    if name not in _CHECKS or (check and check not in _CHECKS[name]):
        return None
    if check or "verbose" not in request.query:
        return web.Response(text="ok")
    excluded = request.query.get("exclude")
    lines = [f"[+]{each} excluded: ok" if each == excluded else f"[+]{each} ok" for each in _CHECKS[name]]
    if excluded and excluded not in _CHECKS[name]:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"')
    return web.Response(text="\n".join([*lines, f"{name} check passed"]) + "\n")
