# part: main
"""Websites with kopf: a Website is a ConfigMap, a Deployment, a Service and a DNS record.

    kopf run --standalone --all-namespaces website.py

``DNS_URL``, ``WEBHOOK_HOST``, ``WEBHOOK_PORT`` and ``CERTS``, a folder, are environment variables.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import kopf
import kubernetes
import requests

APPLY: dict[str, Any] = {
    "field_manager": "websites",
    "force": True,
    "_content_type": "application/apply-patch+yaml",
}


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_config()  # type: ignore[no-untyped-call, unused-ignore]
    settings.persistence.finalizer = "example.com/dns"
    certs = os.environ.get("CERTS", "/certs")
    settings.admission.managed = "websites.example.com"
    settings.admission.server = kopf.WebhookServer(
        port=int(os.environ.get("WEBHOOK_PORT", "9443")),
        host=os.environ.get("WEBHOOK_HOST", "websites.websites.svc"),
        certfile=f"{certs}/tls.crt",
        pkeyfile=f"{certs}/tls.key",
        cafile=f"{certs}/ca.crt",
    )


# part: reconcile
@kopf.index("websites.example.com")
def sites(namespace: str | None, name: str, body: kopf.Body, **_: Any) -> Any:
    return {(namespace, name): body}


@kopf.on.create("websites.example.com")
def announce(body: kopf.Body, spec: kopf.Spec, **_: Any) -> None:
    kopf.event(body, type="Normal", reason="Created", message=f"http://{spec['host']} is being published")


@kopf.on.create("websites.example.com")
@kopf.on.update("websites.example.com", field="spec")
@kopf.on.resume("websites.example.com")
def reconcile(body: kopf.Body, spec: kopf.Spec, **_: Any) -> None:
    dns("PUT", body)
    publish(body)


@kopf.on.event("configmaps", labels={"website": kopf.PRESENT})
@kopf.on.event("deployments", labels={"website": kopf.PRESENT})
@kopf.on.event("services", labels={"website": kopf.PRESENT})  # type: ignore[arg-type, unused-ignore]
def correct(namespace: str | None, name: str, sites: kopf.Index[Any, Any], **_: Any) -> None:
    for body in sites.get((namespace, name), ()):
        if "deletionTimestamp" not in body["metadata"]:
            publish(body)


def publish(body: kopf.Body) -> None:
    """Make what a Website owns."""
    name, namespace, spec = body["metadata"]["name"], body["metadata"]["namespace"], body["spec"]
    labels = {"website": name}
    container = {
        "name": "web",
        "image": spec["image"],
        "ports": [{"containerPort": 80}],
        "volumeMounts": [{"name": "html", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "html", "configMap": {"name": name}}]}
    workload = {
        "replicas": spec["replicas"],
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"index.html": spec["html"]}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": workload}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    children = [config, deployment, service]
    for child in children:
        child["metadata"] = {"name": name, "namespace": namespace, "labels": labels}
    kopf.append_owner_reference(children, owner=body)
    core, apps = kubernetes.client.CoreV1Api(), kubernetes.client.AppsV1Api()
    core.patch_namespaced_config_map(name, namespace, config, **APPLY)
    applied: Any = apps.patch_namespaced_deployment(name, namespace, deployment, **APPLY)
    core.patch_namespaced_service(name, namespace, service, **APPLY)
    write_status(body, applied.status.ready_replicas or 0)


def write_status(body: kopf.Body, ready: int) -> None:
    """Write the status if it differs."""
    metadata, spec, old = body["metadata"], body["spec"], body.get("status", {})
    is_ready = ready >= spec["replicas"]
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": "Available" if is_ready else "Progressing",
        "message": f"{ready} of {spec['replicas']} replicas are ready",
        "observedGeneration": metadata["generation"],
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    for known in old.get("conditions", ()):
        if known["type"] == "Ready" and known["status"] == condition["status"]:
            condition["lastTransitionTime"] = known["lastTransitionTime"]
    status = {"url": f"http://{spec['host']}", "readyReplicas": ready, "conditions": [condition]}
    if status != {name: old.get(name) for name in status}:
        where = ("example.com", "v1", metadata["namespace"], "websites", metadata["name"])
        patch = {"status": status}
        kubernetes.client.CustomObjectsApi().patch_namespaced_custom_object_status(*where, patch)


# part: finalizer
@kopf.on.delete("websites.example.com")
def remove_dns(body: kopf.Body, **_: Any) -> None:
    dns("DELETE", body)


def dns(method: str, body: kopf.Body) -> None:
    """Send a request to the DNS API. A failure is an Event, and is retried."""
    try:
        url = f"{os.environ['DNS_URL']}/{body['spec']['host']}"
        requests.request(method, url, timeout=10).raise_for_status()
    except requests.RequestException as error:
        kopf.event(body, type="Warning", reason="DNSFailed", message=str(error))
        raise kopf.TemporaryError(str(error), delay=1) from error


# part: webhook
@kopf.on.validate("websites.example.com", operations=["CREATE", "UPDATE"])  # type: ignore[arg-type, unused-ignore]
def check_host(
    namespace: str | None, name: str, spec: kopf.Spec, sites: kopf.Index[Any, Any], **_: Any
) -> None:
    for key, bodies in sites.items():
        if key != (namespace, name) and any(body["spec"]["host"] == spec["host"] for body in bodies):
            raise kopf.AdmissionError(f"spec.host: is taken by {'/'.join(key)}", code=422)


# part: end
