"""Databases with kopf: a Database is a Secret, a PersistentVolumeClaim, a Deployment, a Service and a CronJob.

    kopf run --standalone --namespace NAMESPACE before.py

``AGENT_URL``, ``HEALTH_SECONDS``, ``WEBHOOK_PORT`` and ``CERTS``, a folder, are environment variables.
"""

from __future__ import annotations

import os
import time
from typing import Any

import kopf
from kubernetes_asyncio import client, config

from examples.migrations.kopf import agent, children

HEALTH_SECONDS = float(os.environ.get("HEALTH_SECONDS", "10"))
CERTS = os.environ.get("CERTS", "/certs")
APPLY = {
    "field_manager": "databases",
    "force": True,
    "_content_type": "application/apply-patch+yaml",
}
MERGE = {"_content_type": "application/merge-patch+json"}


# part: start
@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    await config.load_config()
    memo.api = client.ApiClient()
    settings.persistence.finalizer = "databases.example.com/bucket"
    settings.admission.managed = "databases.example.com"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        port=int(os.environ.get("WEBHOOK_PORT", "9443")),
        certfile=f"{CERTS}/tls.crt",
        pkeyfile=f"{CERTS}/tls.key",
        cafile=f"{CERTS}/ca.crt",
    )


@kopf.on.cleanup()
async def close(memo: kopf.Memo, **_: Any) -> None:
    await memo.api.close()


# part: indexes
@kopf.index("databaseclasses")
def classes(name: str, spec: kopf.Spec, **_: Any) -> Any:
    return {name: dict(spec)}


@kopf.index("databases")
def databases_by_class(namespace: str, name: str, spec: kopf.Spec, body: kopf.Body, **_: Any) -> Any:
    return {spec["className"]: {(namespace, name): body}}


def class_of(spec: Any, classes: kopf.Index[str, Any]) -> Any:
    for known in classes.get(spec["className"], ()):
        return known
    return None


# part: admission
@kopf.on.mutate("databases", operations=["CREATE", "UPDATE"])
def fill(spec: kopf.Spec, patch: kopf.Patch, classes: kopf.Index[str, Any], **_: Any) -> None:
    known = class_of(spec, classes)
    if known is not None and not spec.get("version"):
        patch.spec["version"] = known["version"]


@kopf.on.validate("databases", operations=["CREATE", "UPDATE"])
def check(spec: kopf.Spec, meta: kopf.Meta, old: Any, classes: kopf.Index[str, Any], **_: Any) -> None:
    if meta.deletion_timestamp is not None:
        return  # the update that removes the finalizer must pass when the class is gone
    known = class_of(spec, classes)
    if known is None:
        raise kopf.AdmissionError(f"spec.className: no DatabaseClass {spec['className']}", code=422)
    if spec["storage"] > known["maxStorage"]:
        raise kopf.AdmissionError(f"spec.storage: at most {known['maxStorage']} GiB", code=422)
    if old and spec["storage"] < old["spec"]["storage"]:
        raise kopf.AdmissionError("spec.storage: cannot shrink", code=422)


# part: create, update, resume
@kopf.on.create("databases")
@kopf.on.resume("databases")
@kopf.on.update("databases", field="spec.version")
@kopf.on.update("databases", field="spec.replicas")
async def run(
    body: kopf.Body, patch: kopf.Patch, memo: kopf.Memo, classes: kopf.Index[str, Any], **_: Any
) -> None:
    metadata = body["metadata"]
    if not body.get("status", {}).get("phase"):
        kopf.info(body, reason="Created", message=f"of the class {body['spec']['className']}")
    try:
        await agent.make_bucket(metadata["namespace"], metadata["name"])
    except agent.FAILURES as error:
        raise kopf.TemporaryError(f"the bucket is not made: {error}", delay=1) from error
    await apply(memo, body, "Service", children.service_fields(metadata["name"]))
    patch.status.update(await deploy(memo, body, await find_secret(memo, body), classes))


# part: fields
@kopf.on.field("databases", field="spec.storage")
async def grow(
    old: int | None,
    new: int | None,
    body: kopf.Body,
    patch: kopf.Patch,
    memo: kopf.Memo,
    classes: kopf.Index[str, Any],
    **_: Any,
) -> None:
    if new is None:
        return
    known = class_of(body["spec"], classes)
    if known is None:
        raise kopf.TemporaryError("its class is missing", delay=1)
    await apply(memo, body, "PersistentVolumeClaim", children.claim_fields(new, known["storageClass"]))
    if old is not None:
        kopf.info(body, reason="Grown", message=f"from {old} to {new} GiB")
    patch.status["storage"] = new


@kopf.on.field("databases", field="spec.backup")
@kopf.on.field("databases", field="spec.version")
async def back_up(body: kopf.Body, memo: kopf.Memo, classes: kopf.Index[str, Any], **_: Any) -> None:
    metadata, spec = body["metadata"], body["spec"]
    known = class_of(spec, classes)
    if known is None:
        raise kopf.TemporaryError("its class is missing", delay=1)
    if spec.get("backup"):
        image = f"{known['image']}:{spec['version']}"
        await apply(memo, body, "CronJob", children.backup_fields(metadata["name"], image, spec["backup"]))
        return
    await remove_backup(memo, body)


# part: delete
@kopf.on.delete("databases")
async def release(namespace: str, name: str, body: kopf.Body, **_: Any) -> None:
    try:
        await agent.remove_bucket(namespace, name)
    except agent.FAILURES as error:
        kopf.warn(body, reason="ReleaseFailed", message=str(error))
        raise kopf.TemporaryError(str(error), delay=1) from error


# part: changes of the class
@kopf.on.update("databaseclasses", field="spec.image")
async def follow_class(
    name: str,
    memo: kopf.Memo,
    classes: kopf.Index[str, Any],
    databases_by_class: kopf.Index[str, Any],
    **_: Any,
) -> None:
    for databases in databases_by_class.get(name, ()):
        for (namespace, database), body in databases.items():
            secret = await find_secret(memo, body)
            status = await deploy(memo, body, secret, classes)
            await back_up(body=body, memo=memo, classes=classes)
            await patch_status(memo, namespace, database, status)


# part: timer
@kopf.timer("databases", interval=HEALTH_SECONDS, field="spec.rotateSeconds", value=kopf.PRESENT)
async def rotate(
    spec: kopf.Spec,
    body: kopf.Body,
    patch: kopf.Patch,
    memo: kopf.Memo,
    classes: kopf.Index[str, Any],
    **_: Any,
) -> None:
    secret = await find_secret(memo, body)
    due = children.password_due_at(secret, spec["rotateSeconds"])
    if due is None or time.time() < due:
        return
    secret = await make_secret(memo, body)
    kopf.info(body, reason="Rotated", message="the password is new")
    patch.status.update(await deploy(memo, body, secret, classes))


# part: daemon
@kopf.daemon("databases", cancellation_timeout=5.0)
async def watch_health(
    namespace: str,
    name: str,
    status: kopf.Status,
    body: kopf.Body,
    memo: kopf.Memo,
    stopped: kopf.DaemonStopped,
    **_: Any,
) -> None:
    known = status.get("health")
    while not stopped:
        health = await agent.read_health(namespace, name)
        if health != known:
            kopf.event(
                body,
                type="Normal" if health == "Healthy" else "Warning",
                reason=health,
                message="by its agent",
            )
            # kopf writes patch.status only when a daemon ends.
            await patch_status(memo, namespace, name, {"health": health})
            known = health
        await stopped.wait(HEALTH_SECONDS)


# part: reads and writes
KINDS: dict[str, tuple[str, Any, str]] = {
    "Secret": ("v1", client.CoreV1Api, "patch_namespaced_secret"),
    "PersistentVolumeClaim": ("v1", client.CoreV1Api, "patch_namespaced_persistent_volume_claim"),
    "Service": ("v1", client.CoreV1Api, "patch_namespaced_service"),
    "Deployment": ("apps/v1", client.AppsV1Api, "patch_namespaced_deployment"),
    "CronJob": ("batch/v1", client.BatchV1Api, "patch_namespaced_cron_job"),
}


async def apply(memo: kopf.Memo, owner: kopf.Body, kind: str, fields: children.Fields) -> Any:
    """Apply an object that a Database owns."""
    api_version, api, method = KINDS[kind]
    name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
    metadata = {**fields.get("metadata", {}), "name": name, "namespace": namespace}
    child = {**fields, "apiVersion": api_version, "kind": kind, "metadata": metadata}
    kopf.append_owner_reference(child, owner=owner)
    return await getattr(api(memo.api), method)(name, namespace, child, **APPLY)


async def find_secret(memo: kopf.Memo, owner: kopf.Body) -> dict[str, str]:
    """Return the annotations of a Database's Secret, which is made if it is missing."""
    try:
        secret = await client.CoreV1Api(memo.api).read_namespaced_secret(
            owner["metadata"]["name"], owner["metadata"]["namespace"]
        )
    except client.ApiException as error:
        if error.status != 404:
            raise
        return await make_secret(memo, owner)
    return dict(secret.metadata.annotations or {})


async def make_secret(memo: kopf.Memo, owner: kopf.Body) -> dict[str, str]:
    """Give a Database a new password."""
    secret = await apply(memo, owner, "Secret", children.secret_fields(time.time()))
    return dict(secret.metadata.annotations or {})


async def remove_backup(memo: kopf.Memo, owner: kopf.Body) -> None:
    """Delete the CronJob of a Database, and no other of its name."""
    metadata, api = owner["metadata"], client.BatchV1Api(memo.api)
    try:
        job = await api.read_namespaced_cron_job(metadata["name"], metadata["namespace"])
        if any(known.uid == metadata["uid"] for known in job.metadata.owner_references or ()):
            await api.delete_namespaced_cron_job(metadata["name"], metadata["namespace"])
    except client.ApiException as error:
        if error.status != 404:
            raise


async def deploy(
    memo: kopf.Memo, body: kopf.Body, secret: dict[str, str], classes: kopf.Index[str, Any]
) -> dict[str, Any]:
    """Apply the Deployment of a Database and return its status."""
    metadata, spec = body["metadata"], body["spec"]
    known = class_of(spec, classes)
    if known is None:
        raise kopf.TemporaryError("its class is missing", delay=1)
    image = f"{known['image']}:{spec['version']}"
    made_at = children.password_made_at(secret)
    fields = children.deployment_fields(metadata["name"], image, spec["replicas"], made_at)
    await apply(memo, body, "Deployment", fields)
    return {"phase": "Running", "image": image, "rotatedAt": made_at}


async def patch_status(memo: kopf.Memo, namespace: str, name: str, status: dict[str, Any]) -> None:
    """Patch the status of a Database; one that is gone has none."""
    where = ("example.com", "v1", namespace, "databases", name)
    try:
        await client.CustomObjectsApi(memo.api).patch_namespaced_custom_object_status(
            *where, {"status": status}, **MERGE
        )
    except client.ApiException as error:
        if error.status != 404:
            raise
