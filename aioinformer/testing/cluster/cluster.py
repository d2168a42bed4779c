"""The cluster behind the server: resources, objects and the rules for changing them.

It takes and returns decoded JSON and stores bytes. The HTTP layer calls the coroutines, which wait for webhooks and for
nothing else. The server's Python API and the controllers call the functions, which ask no webhooks.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from aioinformer.testing import errors
from aioinformer.testing.apply.apply import (
    apply_configuration,
    is_tracked,
    owners_of,
    track_write,
    without_times,
)
from aioinformer.testing.apply.last_applied import KUBECTL, synchronize
from aioinformer.testing.apply.versions import Versions
from aioinformer.testing.cluster.configuration import configuration
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.cluster.seeds import seeded_objects
from aioinformer.testing.cluster.strategy import Strategy, check_own_rules, faults_in, schema_of
from aioinformer.testing.objects import Object, timestamp
from aioinformer.testing.resources import Registry, ResourceType
from aioinformer.testing.rules.validation import (
    check_finalizers,
    check_immutable,
    check_kind,
    check_object,
    check_place,
)
from aioinformer.testing.rules.values import decode_values, patch_error
from aioinformer.testing.storage.builtin import BUILTIN, DEFINITIONS, LIMIT_RANGES, NAMESPACES
from aioinformer.testing.storage.codec import load, store, with_version
from aioinformer.testing.storage.storage import (
    Storage,
    StoredCollection,
    StoredEvent,
    StoredObject,
    Write,
    with_write,
)
from aioinformer.testing.strconv import parse_uint

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aioinformer.testing.cluster.protocols import Conversions

P = ParamSpec("P")
T = TypeVar("T")

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_BASE = 58
_DEFAULT_WRITE = WriteOptions()


class ChangedMeanwhileError(Exception):
    """An object changed while a webhook was asked about it, so the write has to start again."""


def _without_webhooks(
    write: Callable[Concatenate[Cluster, ResourceType, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Cluster, ResourceType, P], T]:
    """Return a write as a plain function: it asks no webhooks, and takes the object in the stored version."""

    def complete(cluster: Cluster, resource: ResourceType, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work = write(cluster, resource.stored_type, *args, **kwargs)
        cluster._is_plain = True
        try:
            work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            cluster._is_plain = False
        work.close()
        raise RuntimeError("this write would wait for a webhook")

    return complete


class Cluster:
    """Resources, objects and the rules for changing them.

    Args:
        history: How many changes of each resource a watch can go back.
        watch_buffer: How many changes a slow watch may lag behind.
        seed: Makes uids and generated names repeatable.
        clock: Returns the time for timestamps, in seconds.
        dates_tokens: Whether kube-system has the ConfigMap with the date since when old tokens are tracked.

    Attributes:
        conversions: Asks the conversion webhooks of definitions; for the coroutines only.
    """

    conversions: Conversions

    def __init__(
        self,
        *,
        history: int = 10_000,
        watch_buffer: int = 10_000,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
        dates_tokens: bool = False,
    ) -> None:
        self.registry = Registry(BUILTIN)
        self._is_plain = False
        """Whether a write asks no webhooks."""
        self.storage = Storage(history, watch_buffer)
        self.observers: list[Callable[[ResourceType, StoredEvent], None]] = []
        self._random = Random(seed)
        self._strategy = Strategy(self._limit_ranges)
        self._clock = clock
        self._seed(() if dates_tokens else ("v1/configmaps",))

    @property
    def resource_version(self) -> int:
        """The number of the latest change."""
        return self.storage.resource_version

    def collection(self, resource: ResourceType) -> StoredCollection:
        """Return the collection of a resource, shared by all its versions."""
        return self.storage.collection(resource.stored_group, resource.plural)

    def now(self) -> str:
        """Return the time in the format of metadata."""
        return timestamp(self._clock())

    def time(self) -> float:
        """Return the time in seconds."""
        return self._clock()

    # Reading

    def find(self, resource: ResourceType, namespace: str, name: str) -> StoredObject | None:
        """Return an object, or None."""
        return self.collection(resource).objects.get(f"{namespace}/{name}" if namespace else name)

    def get(self, resource: ResourceType, namespace: str, name: str) -> StoredObject:
        """Return an object.

        Raises:
            StatusError: 404.
        """
        stored = self.find(resource, namespace, name)
        if stored is None:
            raise errors.not_found(resource, name)
        return stored

    # Writing

    async def create_async(
        self,
        resource: ResourceType,
        namespace: str,
        obj: Object,
        options: WriteOptions = _DEFAULT_WRITE,
    ) -> StoredObject:
        """Create an object.

        Raises:
            StatusError: 400, 403 (namespace or definition is terminating), 404 (no such namespace), 409 (exists), 422,
                or what a webhook says.
        """
        check_kind(resource, obj, strict=not options.whole)
        obj = decode_values(resource, obj, fields=options.fields)
        metadata = obj["metadata"]
        check_place(resource, metadata, namespace, None)
        version = _number_or_none(metadata.pop("resourceVersion", ""))
        if version is not None and options.dry_run:
            metadata["resourceVersion"] = str(version)  # a dry run does not reach the real server's storage
        elif version and not options.whole:
            raise errors.StatusError(500, "", "resourceVersion should not be set on objects to be created")
        self._set_namespace(resource, namespace, metadata)
        if options.admission is not None:
            changed = await options.admission.mutate(resource, obj, None, dry_run=options.dry_run)
            if changed is not obj:
                obj = decode_values(resource, changed)
                metadata = obj["metadata"]
                check_place(resource, metadata, namespace, None)
        generated = bool(metadata.get("generateName"))
        if generated and not metadata.get("name"):
            metadata["name"] = self._generate_name(metadata["generateName"])
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(name, None)
        new = obj
        if resource.has_status and not options.whole:
            new.pop("status", None)
        if options.guard is not None:
            options.guard(resource, new, None)
        check_object(resource, metadata, faults_in(resource, None, new, options))
        metadata["uid"] = self._new_uid()
        metadata["creationTimestamp"] = self.now()
        if resource.generation:
            metadata["generation"] = 1
        self._strategy.prepare_for_create(resource, namespace, new, options)
        check_own_rules(resource, None, new, options)
        if options.admission is not None:
            await options.admission.validate(resource, new, None, dry_run=options.dry_run)
        writes = await self._track(resource, None, None, new, options)
        converted = await self._convert(resource, new)
        existing = self.find(resource, metadata.get("namespace", ""), metadata["name"])
        if existing is not None:
            raise errors.already_exists(
                resource, metadata["name"], generated=generated, terminating=existing.terminating
            )
        return self._commit(resource, None, new, writes, dry_run=options.dry_run, converted=converted)

    async def modify_async(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        options: WriteOptions = _DEFAULT_WRITE,
    ) -> StoredObject:
        """Modify an object: `change` gets a decoded copy and returns the new object.

        Without a difference the resourceVersion stays the same. Removing the last finalizer of a terminating object
        removes the object.

        Raises:
            StatusError: 400, 404, 409 (another version, another uid), 422, or what a webhook says.
            ChangedMeanwhileError: The object changed while a webhook was asked.
        """
        stored = self.get(resource, namespace, name)
        old = await self.show(resource, stored)
        new = change(load(resource, old))
        refused = patch_error(resource, new, options.strategic)
        new = decode_values(resource, new, refused, options.fields)
        return await self._replace(resource, stored, old, new, options)

    async def update_async(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions = _DEFAULT_WRITE,
    ) -> tuple[StoredObject, bool]:
        """Replace an object; return it and whether it was created, which some resources allow.

        Raises:
            StatusError: As for `modify_async` and `create_async`.
            ChangedMeanwhileError: As for `modify_async`.
        """
        obj = decode_values(resource, obj, fields=options.fields)
        metadata = obj["metadata"]
        check_place(resource, metadata, namespace, name)
        stored = self.find(resource, namespace, name)
        if stored is None and (options.subresource or not resource.create_on_update):
            raise errors.not_found(resource, name)
        uid, current = metadata.get("uid"), "" if stored is None else stored.uid
        if uid and uid != current:
            raise errors.other_object(resource, namespace, name, "UID", uid, current)
        if stored is not None:
            old = await self.show(resource, stored)
            return await self._replace(resource, stored, old, obj, options), False
        fresh = {key: value for key, value in metadata.items() if key != "resourceVersion"}
        obj = {**obj, "metadata": fresh}
        return await self.create_async(resource, namespace, obj, options), True

    async def apply_async(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        applied: Object,
        options: WriteOptions = _DEFAULT_WRITE,
        *,
        force: bool = False,
    ) -> tuple[StoredObject, bool]:
        """Apply a configuration (server-side apply); return the object and whether it was created.

        Raises:
            StatusError: 409 if another manager owns an applied field, 500 for a value that does not fit its field;
                otherwise as for `modify_async` and `create_async`.
            ChangedMeanwhileError: As for `modify_async`.
        """
        options = replace(options, applied=True)
        stored = self.find(resource, namespace, name)
        sent = configuration(resource, namespace, name, applied, options, is_new=stored is None)
        old = None if stored is None else await self.show(resource, stored)
        live = None if old is None else load(resource, old)
        if stored is not None and live is not None and (writes := _writes_of(resource, stored)):
            live["metadata"]["managedFields"] = owners_of(resource, schema_of(resource), writes, stored)
        result = await apply_configuration(
            resource,
            schema_of(resource),
            live,
            sent,
            manager=options.field_manager,
            subresource=options.subresource,
            force=force,
            now=self.now(),
            versions=self._versions(resource),
        )
        if options.field_manager == KUBECTL:
            synchronize(result, applied)
        result = decode_values(resource, result)
        if stored is None or old is None:
            if uid := result["metadata"].get("uid"):
                why = (
                    f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                )
                raise errors.conflict(resource, name, why)
            return await self.create_async(resource, namespace, result, options), True
        return await self._replace(resource, stored, old, result, options), False

    create = _without_webhooks(create_async)
    modify = _without_webhooks(modify_async)
    update = _without_webhooks(update_async)
    apply = _without_webhooks(apply_async)

    def remove(
        self, resource: ResourceType, stored: StoredObject, *, dry_run: bool = False
    ) -> StoredEvent | None:
        """Remove an object from the storage, regardless of its finalizers."""
        return None if dry_run else self._emit(resource.stored_type, None, stored)

    def commit(self, resource: ResourceType, stored: StoredObject, obj: Object) -> StoredObject:
        """Store a new version of an object without applying any rules."""
        return self._commit(resource, stored, obj, stored.writes, dry_run=False)

    async def show(self, resource: ResourceType, stored: StoredObject) -> StoredObject:
        """Return a stored object as the version of a resource has it.

        Raises:
            StatusError: 500 if its conversion webhook fails.
        """
        if not resource.is_converted:
            return stored
        (converted,) = await self.conversions.show(resource, [stored])
        return converted

    def record(
        self,
        resource: ResourceType,
        version: int,
        current: StoredObject | None,
        previous: StoredObject | None,
    ) -> StoredEvent:
        """Store a change under a version, and tell the observers. It applies no rules."""
        event = StoredEvent(version, current, previous, partial(with_version, resource))
        self.collection(resource).apply(event)
        for observer in self.observers:
            observer(resource, event)
        return event

    # Private

    async def _convert(self, resource: ResourceType, obj: Object) -> Object | None:
        """Return an object as it is stored, if a webhook has to convert it."""
        if not resource.is_converted:
            return None
        return await self.conversions.convert(resource, resource.stored_type, obj)

    def _versions(self, resource: ResourceType) -> Versions:
        """Return the versions of a resource's kind."""
        resources = {
            other.api_version: other
            for other in self.registry
            if (other.stored_group, other.plural) == (resource.stored_group, resource.plural)
        }

        async def convert(old: ResourceType, new: ResourceType, obj: Object) -> Object | None:
            if self._is_plain and resource.storage is not None:
                return {**obj, "apiVersion": new.api_version}
            return await self.conversions.convert(old, new, obj)

        return Versions(resources, schema_of, convert)

    def _seed(self, left_out: tuple[str, ...]) -> None:
        """Create what a new server has, without applying rules: the objects are the real server's.

        Only namespaces get versions of their own. So a test's versions do not depend on the number of seeded objects.
        """
        for path, objects in seeded_objects(self.now()).items():
            if path in left_out:
                continue
            resource = self.registry.find(*f"/{path}".split("/")[-3:])
            assert resource is not None
            for obj in objects:
                version = self.storage.next_version() if resource is NAMESPACES else self.resource_version
                obj["metadata"] |= {"uid": self._new_uid(), "resourceVersion": str(version)}
                self.record(resource, version, store(resource, obj), None)

    def _limit_ranges(self, namespace: str) -> list[Object]:
        return [
            load(LIMIT_RANGES, stored) for stored in self.collection(LIMIT_RANGES).in_namespace(namespace)
        ]

    def _new_uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    async def _replace(
        self,
        resource: ResourceType,
        stored: StoredObject,
        shown: StoredObject,
        new: Object,
        options: WriteOptions,
    ) -> StoredObject:
        """Replace an object; `shown` is it in the version of the write."""
        old = load(resource, shown)
        metadata = new["metadata"]
        check_kind(resource, new, strict=not options.whole)
        check_place(resource, metadata, stored.namespace, stored.name)
        self._check_version(resource, stored, metadata, options)
        check_immutable(resource, old["metadata"], metadata)
        if options.admission is not None:
            changed = await options.admission.mutate(resource, new, old, dry_run=options.dry_run)
            if changed is not new:
                new = decode_values(resource, changed)
                metadata = new["metadata"]
                check_place(resource, metadata, stored.namespace, stored.name)
                check_immutable(resource, old["metadata"], metadata)
        result = self._strategy.prepare_for_update(resource, old, new, options)
        if options.guard is not None:
            options.guard(resource, result, old)
        check_object(resource, result["metadata"], faults_in(resource, old, result, options))
        check_finalizers(resource, old["metadata"], result["metadata"])
        check_own_rules(resource, old, result, options)
        if options.admission is not None:
            await options.admission.validate(resource, result, old, dry_run=options.dry_run)
        if result == old or (options.applied and without_times(result) == without_times(old)):
            return shown
        writes = await self._track(resource, stored, old, result, options)
        converted = await self._convert(resource, result)
        if self.find(resource, stored.namespace, stored.name) is not stored:
            raise ChangedMeanwhileError
        ready = (
            stored.terminating
            and not result["metadata"].get("finalizers")
            and not result["metadata"].get("deletionGracePeriodSeconds")
            and not (resource is NAMESPACES and (result.get("spec") or {}).get("finalizers"))
        )
        if ready:
            self.remove(resource, stored, dry_run=options.dry_run)
            return store(resource, result)
        return self._commit(resource, stored, result, writes, dry_run=options.dry_run, converted=converted)

    async def _track(
        self,
        resource: ResourceType,
        stored: StoredObject | None,
        old: Object | None,
        new: Object,
        options: WriteOptions,
    ) -> tuple[Write, ...]:
        """Set the `managedFields` of a written object, or return the writes that they can come from later."""
        was_reset = old is not None and "managedFields" in old["metadata"].keys() - new["metadata"].keys()
        if options.applied or was_reset:
            return ()
        writes = () if stored is None else _writes_of(resource, stored)
        if is_tracked(old, options.field_manager):
            if stored is not None and writes and "managedFields" not in new["metadata"]:
                new["metadata"]["managedFields"] = owners_of(resource, schema_of(resource), writes, stored)
            new["metadata"]["managedFields"] = await track_write(
                resource,
                schema_of(resource),
                old,
                new,
                manager=options.field_manager,
                subresource=options.subresource,
                now=self.now(),
                versions=self._versions(resource),
            )
            return ()
        if not options.strict or resource.is_converted or (stored is not None and not writes):
            return writes
        now = new["metadata"]["creationTimestamp"] if stored is None else self.now()
        return with_write(writes, Write(options.field_manager, options.subresource, now, stored))

    def _commit(
        self,
        resource: ResourceType,
        previous: StoredObject | None,
        obj: Object,
        writes: tuple[Write, ...],
        *,
        dry_run: bool,
        converted: Object | None = None,
    ) -> StoredObject:
        """Store an object, or `converted`, what it is in the stored version; return it in its own."""
        if dry_run:
            return store(resource, obj)
        obj["metadata"]["resourceVersion"] = str(self.resource_version + 1)
        current = store(resource, obj)
        if converted is None:
            current.writes = writes
            self._emit(resource, current, previous)
            return current
        converted["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        self._emit(resource.stored_type, store(resource.stored_type, converted), previous)
        return current

    def _emit(
        self, resource: ResourceType, current: StoredObject | None, previous: StoredObject | None
    ) -> StoredEvent:
        return self.record(resource, self.storage.next_version(), current, previous)

    def _check_version(
        self, resource: ResourceType, stored: StoredObject, metadata: Object, options: WriteOptions
    ) -> None:
        """Refuse a write based on another resourceVersion."""
        version = _version_number(metadata.get("resourceVersion", ""))
        if version:
            if version != stored.resource_version:
                raise errors.conflict(resource, stored.name)
        elif not resource.unconditional_update and not options.whole:
            why = "must be specified for an update"
            causes = [errors.field_invalid("metadata.resourceVersion", 0, why)]
            raise errors.invalid(resource.plural, resource.group, stored.name, causes)

    def _set_namespace(self, resource: ResourceType, namespace: str, metadata: Object) -> None:
        """Set the namespace of a new object; refuse it if its namespace or definition takes none."""
        if resource.custom:
            self._check_definition(resource, metadata.get("name", ""))
        if resource.namespaced:
            metadata["namespace"] = namespace
            shown = metadata.get("name") or metadata.get("generateName", "")
            self._check_namespace(resource, namespace, shown)
        else:
            metadata.pop("namespace", None)

    def _check_namespace(self, resource: ResourceType, namespace: str, name: str) -> None:
        stored = self.collection(NAMESPACES).objects.get(namespace)
        if stored is None:
            raise errors.not_found(NAMESPACES, namespace)
        if stored.terminating:
            error = errors.forbidden(
                resource,
                name,
                f"unable to create new content in namespace {namespace} because it is being terminated",
            )
            why = f"namespace {namespace} is being terminated"
            assert error.details is not None
            error.details["causes"] = [errors.cause("NamespaceTerminating", why, "metadata.namespace")]
            raise error

    def _check_definition(self, resource: ResourceType, name: str) -> None:
        stored = self.collection(DEFINITIONS).objects.get(resource.group_resource)
        if stored is not None and stored.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(resource, name, why)

    def _generate_name(self, base: str) -> str:
        suffix = "".join(self._random.choices(_SUFFIX_LETTERS, k=5))
        return base[:_MAX_GENERATED_BASE] + suffix


def _version_number(version: str) -> int:
    """Return a resourceVersion as a number; 0 or empty matches any version."""
    try:
        return parse_uint(version or "0")
    except ValueError as error:
        raise errors.StatusError(500, "", str(error)) from error


def _number_or_none(version: str) -> int | None:
    try:
        return parse_uint(version)
    except ValueError:
        return None


def _writes_of(resource: ResourceType, stored: StoredObject) -> tuple[Write, ...]:
    """Return the writes that an object's owners can be computed from: none if it is stored in another version."""
    return () if resource.is_converted else stored.writes
