"""Databases with aioinformer: a Database is a Secret, a PersistentVolumeClaim, a Deployment, a Service and a CronJob.

    aioinformer run examples.migrations.kopf.after:operator --tls-cert tls.crt --tls-key tls.key

``AGENT_URL`` and ``DATABASES_HEALTH_SECONDS`` are environment variables.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta

from aioinformer import NotFoundError
from aioinformer.operator import (
    AdmissionReview,
    Context,
    Denied,
    GenerationChanged,
    Kind,
    Operator,
    Owned,
    Request,
    Result,
    Watched,
    controller_of,
)
from aioinformer.typed import CamelStruct, CustomResource, Rule

from . import agent, children


# part: types
class DatabaseClassSpec(CamelStruct):
    """What databases of a class have in common."""

    image: str
    version: str
    storage_class: Annotated[str, Rule("self == oldSelf", "cannot change")]
    max_storage: int


class DatabaseClass(CustomResource, group="example.com", version="v1", namespaced=False):
    """A class of databases."""

    spec: DatabaseClassSpec

    def image_of(self, spec: DatabaseSpec) -> str:
        return f"{self.spec.image}:{spec.version or self.spec.version}"


class DatabaseSpec(CamelStruct, kw_only=True):
    """The wanted state of a database."""

    class_name: Annotated[str, Rule("self == oldSelf", "cannot change")]
    version: str | None = None
    storage: Annotated[int, Meta(ge=1, description="In GiB.")]
    replicas: Annotated[int, Meta(ge=0, le=5)] = 1
    backup: Annotated[str | None, Meta(description="A cron schedule.")] = None
    rotate_seconds: Annotated[int, Meta(ge=1)] | None = None


class DatabaseStatus(CamelStruct, kw_only=True):
    """The observed state."""

    phase: str = ""
    image: str = ""
    storage: int = 0
    health: str = ""
    rotated_at: str = ""


class Database(CustomResource, group="example.com", version="v1"):
    """A database with backups."""

    spec: DatabaseSpec
    status: DatabaseStatus | None = None


# part: start
class Settings(msgspec.Struct):
    """Environment variables ``DATABASES_...``."""

    health_seconds: float = 10.0


# part: indexes
DATABASES = Kind(Database, indexers={"class": "spec.className"})
SECRETS = Kind("secrets", label_selector="app.kubernetes.io/managed-by=databases")
DEPLOYMENTS = Owned("deployments", GenerationChanged())
JOBS = Owned("cronjobs", verbs=("create", "patch", "delete"))

# part: start
operator = Operator("databases", settings=Settings)


# part: admission
@operator.mutate(Database)
async def fill(review: AdmissionReview[Database], context: Context) -> None:
    """Take the version of the class."""
    spec = review.object.spec
    known = await find_class(spec, context)
    if known is not None and not spec.version:
        spec.version = known.spec.version


@operator.validate(Database)
async def check(review: AdmissionReview[Database], context: Context) -> None:
    """Refuse what the class does not allow, and to shrink."""
    spec = review.object.spec
    known = await find_class(spec, context)
    if known is None:
        raise Denied(f"no DatabaseClass {spec.class_name}", field="spec.className")
    if spec.storage > known.spec.max_storage:
        review.deny(f"at most {known.spec.max_storage} GiB", field="spec.storage")
    if review.old is not None and spec.storage < review.old.spec.storage:
        review.deny("cannot shrink", field="spec.storage")


# part: delete
async def release(request: Request[Database], context: Context) -> None:
    """Remove the bucket of a Database that is being deleted."""
    database = request.object
    assert database is not None
    try:
        await agent.remove_bucket(request.namespace, request.name)
    except agent.FAILURES as error:
        context.events.event(database, "Warning", "ReleaseFailed", str(error))
        raise


# part: changes of the class
def databases_of(known: DatabaseClass, context: Context) -> list[Request[Database]]:
    """Return the Databases of a class that changed."""
    index = context.resource(DATABASES).informer.indexer
    return [Request.of(database) for database in index.by_index("class", known.name)]


# part: create, update, resume
@operator.controller(
    DATABASES,
    owns=[SECRETS, "persistentvolumeclaims", "services", DEPLOYMENTS, JOBS],
    watches=[Watched(DatabaseClass, databases_of)],
    predicate=GenerationChanged(),
    finalizer="databases.example.com/bucket",
    cleanup=release,
    concurrency=4,
)
async def reconcile(request: Request[Database], context: Context) -> Result | None:
    """Make what a Database needs; it has a new password in time."""
    database = request.object
    if database is None:
        return None
    spec, status = database.spec, database.status or DatabaseStatus()
    known = await find_class(spec, context)
    if known is None:
        await patch_status(request.key, context, phase="WaitingForClass")
        return None  # the class triggers it
    if not status.phase:
        context.events.event(database, "Normal", "Created", f"of the class {spec.class_name}")
    await agent.make_bucket(request.namespace, request.name)
    image = known.image_of(spec)
    claim = children.claim_fields(spec.storage, known.spec.storage_class)
    await context.apply_owned(database, "persistentvolumeclaims", claim)
    if 0 < status.storage < spec.storage:
        message = f"from {status.storage} to {spec.storage} GiB"
        context.events.event(database, "Normal", "Grown", message)
    await context.apply_owned(database, "services", children.service_fields(request.name))
    made_at, due = await keep_secret(database, context)
    deployment = children.deployment_fields(request.name, image, spec.replicas, made_at)
    await context.apply_owned(database, "deployments", deployment)
    await keep_backup(database, image, context)
    await patch_status(
        request.key,
        context,
        phase="Running",
        image=image,
        storage=spec.storage,
        rotatedAt=made_at,
    )
    return None if due is None else Result(requeue_after=max(0.01, due - time.time()))


# part: timer
async def keep_secret(database: Database, context: Context) -> tuple[str, float | None]:
    """Make the password, or a new one if it is due.

    Returns:
        When it was made, as the Secret has it; and when the next one is due, in seconds since 1970.
    """
    seconds = database.spec.rotate_seconds
    with suppress(NotFoundError):
        secret = await context.resource(SECRETS).get(database.key)
        due = children.password_due_at(secret.metadata.annotations, seconds)
        if due is None or time.time() < due:
            return children.password_made_at(secret.metadata.annotations), due
        context.events.event(database, "Normal", "Rotated", "the password is new")
    secret = await context.apply_owned(database, SECRETS, children.secret_fields(time.time()))
    annotations = secret.metadata.annotations
    return children.password_made_at(annotations), children.password_due_at(annotations, seconds)


# part: fields
async def keep_backup(database: Database, image: str, context: Context) -> None:
    """Make the CronJob, or remove it; never another one of its name."""
    if database.spec.backup:
        fields = children.backup_fields(database.name, image, database.spec.backup)
        await context.apply_owned(database, "cronjobs", fields)
        return
    jobs = context.resource("cronjobs")
    with suppress(NotFoundError):
        job = await jobs.get(database.key)
        if (owner := controller_of(job)) is not None and owner.uid == database.metadata.uid:
            await jobs.delete(job)


# part: daemon
@operator.task(Database)
async def watch_health(request: Request[Database], context: Context) -> None:
    """Read the health of a Database every few seconds."""
    database = request.object
    assert database is not None
    known = database.status.health if database.status else ""
    while True:
        health = await agent.read_health(request.namespace, request.name)
        if health != known:
            is_healthy = health == "Healthy"
            context.events.event(database, "Normal" if is_healthy else "Warning", health, "by its agent")
            await patch_status(request.key, context, health=health)
            known = health
        await asyncio.sleep(context.get(Settings).health_seconds)


# part: reads and writes
async def find_class(spec: DatabaseSpec, context: Context) -> DatabaseClass | None:
    try:
        return await context.resource(DatabaseClass).get(spec.class_name)
    except NotFoundError:
        return None


async def patch_status(key: str, context: Context, **status: str | int) -> None:
    """Write the fields of a Database's status that differ."""
    databases = context.resource(DATABASES)
    with suppress(NotFoundError):  # gone meanwhile
        database = await databases.get(key)
        if status.items() - msgspec.to_builtins(database.status or DatabaseStatus()).items():
            await databases.patch_status(database, {"status": status})
