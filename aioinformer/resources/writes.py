"""The verbs that change objects (client-go ``typed``, ``dynamic``, controller-runtime's ``client.Writer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

from .._core.checks import require_count
from ..errors import ConfigError
from ..objects.keys import resource_version_of, uid_of
from ..objects.kube_object import KubeObject
from ..objects.protobuf import kind_of
from .encoding import require_whole
from .endpoint import GIVE_KIND, Endpoint
from .finalizing import Finalizers, Settling, SpecFinalizers
from .patches import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

T = TypeVar("T")

Patch = Mapping[str, Any] | list[dict[str, Any]]
"""A merge patch, or the operations of a JSON patch."""

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]


class Writes(Generic[T]):
    """Changes objects of one resource. Base of Resource and CachedResource.

    A *target* is an object, or its key (``"namespace/name"``, or ``"name"`` where there are no namespaces). Objects
    are taken in every form: KubeObject, dict, Struct, model; answers are of the resource's object type.

    Each request is sent once. All verbs raise:

    Raises:
        RefusedError: The server refused: ForbiddenError, ObjectNotFoundError, ConflictError, AlreadyExistsError,
            InvalidError, TooManyRequestsError. It names the object, the fields, and what the server says.
        ApiError: It failed.
        TransportError: No answer came in time. Whether the change was made is not known.
        DecodeError: The answer is no object, or not of the object type. The change may have been made.
        ConfigError: The arguments cannot work. Nothing was asked.

    Cancellation: whether the change was made is not known.
    """

    def __init__(self, endpoint: Endpoint[T]) -> None:
        self._endpoint = endpoint
        self._finalizers = Finalizers(endpoint)
        self._spec_finalizers = SpecFinalizers(endpoint)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._endpoint}>"

    async def create(self, obj: Any) -> T:
        """Create an object; the server may be left to give it a name (``metadata.generateName``).

        Returns:
            The object as it is now.
        """
        endpoint = self._endpoint
        path, key = endpoint.addresses.for_new(obj)
        fields = endpoint.fields(obj)
        body = await endpoint.write("create", key, "POST", fields, path=path, query=endpoint.managed())
        return self._wrote("create", key, body)

    async def update(self, obj: Any) -> T:
        """Let an object take the place of the one that is there.

        With a resourceVersion, as every object has that was read, it is refused with ConflictError if the object
        was changed since.

        Returns:
            The object as it is now.

        Raises:
            ConfigError: Also after asking, where the server has a KubeObject exactly so: it was not edited, as no
                KubeObject can be. Send the dict that was.
        """
        return await self._put(obj)

    async def update_status(self, obj: Any) -> T:
        """As ``update``, for the status alone."""
        return await self._put(obj, "status")

    async def finalize(self, namespace: Any) -> T:
        """As ``update``, for the ``spec.finalizers`` of a namespace, which no other verb changes."""
        return await self._put(namespace, "finalize")

    async def patch(
        self,
        target: Any,
        patch: Patch,
        *,
        strategic: bool = False,
        subresource: str = "",
    ) -> T:
        """Change parts of an object.

        Args:
            target: Which one.
            patch: A list of operations is a JSON patch (RFC 6902), a mapping a JSON merge patch (RFC 7386): null
                removes, lists are replaced as a whole. With ``metadata.resourceVersion`` in it, or a JSON patch's
                ``test``, it is refused if the object is another by now.
            strategic: A mapping is a strategic merge patch: lists are merged by their items' keys. Built-in
                resources only.
            subresource: Such as ``"status"`` or ``"scale"``.

        Returns:
            The object as it is now; of another subresource than the status, what that shows of it, such as a Scale.
        """
        if isinstance(patch, Mapping):
            kind: str = STRATEGIC_PATCH if strategic else MERGE_PATCH
        elif isinstance(patch, (list, tuple)) and not strategic:
            kind = JSON_PATCH
        else:
            raise ConfigError(f"a patch is a mapping, or a list of operations, not {type(patch).__name__}")
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(target)
        body = await endpoint.write(
            "patch",
            key,
            "PATCH",
            patch,
            subresource=subresource,
            content_type=kind,
            query=endpoint.managed(),
        )
        return self._wrote("patch", key, body)

    async def patch_status(self, target: Any, patch: Patch, *, strategic: bool = False) -> T:
        """As ``patch``, for the status alone; the patch is one of the object: ``{"status": {...}}``.

        With ``metadata.resourceVersion`` beside the status it is refused if the object is another by now.
        """
        if isinstance(patch, Mapping) and "status" not in patch:
            raise ConfigError(
                f"patch status of {self._endpoint} {self._endpoint.addresses.key_of(target)}: the patch is one of the "
                'object: {"status": {...}}'
            )
        return await self.patch(target, patch, strategic=strategic, subresource="status")

    async def apply(
        self, obj: Any, *, force: bool = False, field_manager: str | None = None, subresource: str = ""
    ) -> T:
        """Server-side apply: let an object have these fields, and create it if there is none.

        What the manager applied before and leaves out now is removed. An object that was read has all fields and
        more: apply one of your own making, with the fields that are your business. A Struct is well suited.

        Args:
            obj: With its name, and with its kind if that is a custom one; of fields that are None nothing is said.
            force: Take over fields that belong to other managers; else they make a ConflictError.
            field_manager: Who applies; None for the resource's.
            subresource: Such as ``"status"``.

        Returns:
            The object as it is now.
        """
        endpoint = self._endpoint
        key, fields = endpoint.addresses.key_of(obj), endpoint.fields(obj)
        collection = endpoint.addresses.collection
        kind = fields.get("kind") or kind_of(collection.api_version, collection.plural)
        if not kind:
            raise ConfigError(
                f"apply {endpoint} {key}: nothing says of which kind the object is: {GIVE_KIND}"
            )
        body = await endpoint.write(
            "apply",
            key,
            "PATCH",
            {**fields, "kind": kind},
            subresource=subresource,
            content_type=APPLY_PATCH,
            query=[*endpoint.managed(field_manager), ("force", str(force).lower())],
        )
        return self._wrote("apply", key, body)

    async def apply_status(self, obj: Any, *, force: bool = False, field_manager: str | None = None) -> T:
        """As ``apply``, for the status alone."""
        return await self.apply(obj, force=force, field_manager=field_manager, subresource="status")

    async def delete(
        self,
        target: Any,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation_policy: PropagationPolicy | None = None,
        grace_period: int | None = None,
    ) -> T | None:
        """Delete an object.

        Args:
            target: Which one. An object that says its uid is deleted only if it is that very one.
            uid: ConflictError if it is another one of that name; None for the target's.
            resource_version: ConflictError if it was changed since.
            propagation_policy: What becomes of what it owns; None leaves that to the server.
            grace_period: Whole seconds that a pod is given; 0 removes it at once, None leaves it to the object.

        Returns:
            What is left of it, waiting for finalizers or its grace time; None if it is gone.
        """
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(target)
        uid = uid_of(target) if uid is None else uid
        options = _delete_options(uid, resource_version, propagation_policy, grace_period)
        body = await endpoint.write("delete", key, "DELETE", options)
        with endpoint.asking("delete", key):
            seen = endpoint.seen(key, body, or_status=True)
        if seen.is_deleted and seen.is_kept:
            return self._wrote("delete", key, body)
        # Mostly the answer says none. A target's is one of this server where the uid was compared, but for restores.
        version = seen.version or resource_version or (resource_version_of(target) if uid_of(target) else "")
        self._record_removed(key, seen.uid or uid, version)
        return None

    async def evict(self, target: Any, *, uid: str | None = None, grace_period: int | None = None) -> None:
        """Have a pod deleted, unless a PodDisruptionBudget forbids it for now: that is a TooManyRequestsError.

        Args:
            target: Which pod; as for ``delete``.
            uid: As for ``delete``.
            grace_period: As for ``delete``.
        """
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(target)
        namespace, _, name = key.rpartition("/")
        options = _delete_options(uid if uid is not None else uid_of(target), None, None, grace_period)
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        await endpoint.write("evict", key, "POST", eviction, subresource="eviction")

    async def ensure_finalizer(self, target: Any, name: str) -> T | None:
        """See that an object has a finalizer, without touching what others write at the same time.

        A JSON patch whose ``test`` fails if the finalizers have changed; then the object is read and the patch made
        anew, for as long as one request may take. An object that is given and has it already is not asked for.

        Args:
            target: An object is meant by its uid as well: one that took its name since is left alone.
            name: Such as ``"example.com/cleanup"``.

        Returns:
            The object with the finalizer; None where it can have none any more: it is gone, or being deleted.
        """
        return await self._settle(self._finalizers, target, name, wanted=True)

    async def drop_finalizer(self, target: Any, name: str) -> T | None:
        """See that an object does not have a finalizer, without touching those of others. As ``ensure_finalizer``.

        Returns:
            The object as it is now, which others may still keep; None if it is gone.
        """
        return await self._settle(self._finalizers, target, name, wanted=False)

    async def ensure_spec_finalizer(self, target: Any, name: str) -> T | None:
        """As ``ensure_finalizer``, for a namespace's ``spec.finalizers``: what keeps it until it was emptied.

        It is read, and written through the ``finalize`` subresource at the version that was read.

        Returns:
            The namespace; None where it is gone or being deleted.
        """
        return await self._settle(self._spec_finalizers, target, name, wanted=True)

    async def drop_spec_finalizer(self, target: Any, name: str) -> T | None:
        """As ``drop_finalizer``, for a namespace's ``spec.finalizers``."""
        return await self._settle(self._spec_finalizers, target, name, wanted=False)

    async def _settle(self, settling: Settling, target: Any, name: str, *, wanted: bool) -> T | None:
        endpoint = self._endpoint
        found = await settling.settle(target, name, wanted=wanted)
        if found is None:
            return None
        if not isinstance(found, bytes):
            return endpoint.of_type(found)
        key, verb = endpoint.addresses.key_of(target), settling.verb(name, wanted=wanted)
        with endpoint.asking(verb, key):
            seen = endpoint.seen(key, found, or_status=True)
        if seen.is_gone:
            self._record_removed(key, seen.uid, seen.version)
            return None
        return self._wrote(verb, key, found)

    async def _put(self, obj: Any, subresource: str = "") -> T:
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(obj)
        require_whole(obj)
        body = await endpoint.write(
            "update",
            key,
            "PUT",
            endpoint.fields(obj),
            subresource=subresource,
            query=endpoint.managed(),
        )
        updated = self._wrote("update", key, body)
        if isinstance(obj, KubeObject) and obj.resource_version == resource_version_of(updated) != "":
            verb = f"update {subresource} of" if subresource else "update"
            raise ConfigError(
                f"{verb} {endpoint} {key}: nothing was changed: the server has this KubeObject exactly so, at version "
                f"{obj.resource_version}. A KubeObject cannot be edited: change the dict that obj.to_dict() gives, and "
                "send that dict"
            )
        return updated

    def _wrote(self, verb: str, key: str, body: bytes) -> T:
        """The object that an answer brings."""
        with self._endpoint.asking(verb, key):
            seen = self._endpoint.seen(key, body)
            obj = self._endpoint.codec.decode(body)
        if seen.is_gone:
            self._record_removed(seen.key, seen.uid, seen.version)
        else:
            self._record_written(obj)
        return obj

    def _record_written(self, obj: T) -> None:
        """An object was written."""

    def _record_removed(self, key: str, uid: str, version: str) -> None:
        """An object is gone by what was written; its uid and a version of it, where they are known."""


def _delete_options(
    uid: str | None,
    resource_version: str | None,
    propagation_policy: PropagationPolicy | None,
    grace_period: int | None,
) -> dict[str, Any]:
    """``metav1.DeleteOptions``."""
    if grace_period is not None:
        require_count("grace_period", grace_period)
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    options: dict[str, Any] = {
        "preconditions": {name: value for name, value in preconditions.items() if value},
        "propagationPolicy": propagation_policy,
        "gracePeriodSeconds": grace_period,
    }
    said = {name: value for name, value in options.items() if value not in (None, {})}
    return {"apiVersion": "v1", "kind": "DeleteOptions", **said}
