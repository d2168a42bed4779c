"""Verbs that change objects (client-go ``typed``, ``dynamic``, controller-runtime's ``client.Writer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, cast

from .._core.checks import require_count
from ..errors import AmbiguousEditError, ApiError, ConfigError, DecodeError, ObjectNotFoundError
from ..objects.decoders import decoder_of
from ..objects.keys import resource_version_of, uid_of
from ..objects.kube_object import KubeObject
from ..objects.nesting import decode_any
from ..objects.protobuf import kind_of
from ..objects.undecodable import UndecodableObject, undecodable
from .endpoint import APPLY_YOURS, GIVE_KIND, Endpoint
from .finalizing import FinalizerEditor, Finalizers, SpecFinalizers
from .merging import find_lost_when_applied, is_partial, with_unknown_fields
from .patches import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from .refusals import raise_refusals

T = TypeVar("T")

Patch = Mapping[str, Any] | list[dict[str, Any]]
"""A merge patch, or the operations of a JSON patch."""

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]


class Writes(Generic[T]):
    """Changes objects of one resource. Base of Resource and CachedResource.

    A *target* is an object, or its key (``"namespace/name"``, or ``"name"`` for cluster-scoped kinds). Objects may be
    of any type: KubeObject, dict, Struct, model. Answers have the resource's object type. If the target of a patch, a
    deletion or a finalizer is an UndecodableObject, the answer may be one, too.

    Each request is sent once. All verbs raise:

    Raises:
        RefusedError: The server refused: ForbiddenError, ObjectNotFoundError, ConflictError, AlreadyExistsError,
            InvalidError, TooManyRequestsError. The error has the object's key, the fields and the server's message.
        ApiError: The server failed.
        TransportError: No answer arrived in time. The change may have been made.
        DecodeError: The answer is not an object, or does not fit the object type. The change may have been made.
        ConfigError: The arguments are invalid. No request was sent.

    Cancellation: the change may have been made.
    """

    def __init__(self, endpoint: Endpoint[T]) -> None:
        self._endpoint = endpoint
        self._finalizers = Finalizers(endpoint)
        self._spec_finalizers = SpecFinalizers(endpoint)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._endpoint}>"

    async def create(self, obj: Any) -> T:
        """Create an object. The server can generate its name (``metadata.generateName``).

        Returns:
            The object as the server has it now.
        """
        endpoint = self._endpoint
        path, key = endpoint.addresses.for_new(obj)
        fields = endpoint.fields(obj)
        body = await endpoint.write("create", key, "POST", fields, path=path, query=endpoint.manager_query())
        return self._wrote("create", key, body)

    async def update(self, obj: Any) -> T:
        """Replace an object.

        With a resourceVersion, which every object from the server has, the server refuses the update with
        ConflictError if the object has changed since.

        Of a Struct that lacks fields of the object, these stay as they are: the object is read first, which takes a
        second request. Items of lists keep their fields: they are found by their keys, else by equality.

        Returns:
            The object as the server has it now.

        Raises:
            AmbiguousEditError: The Struct does not say which item of a list was changed, and its class lacks fields of
                these items. Nothing was written.
            ConfigError: Also after the request, if a KubeObject was sent that the server has already. A KubeObject
                cannot be edited: send the edited dict.
        """
        return await self._put(obj)

    async def update_status(self, obj: Any) -> T:
        """Replace the status of an object. Otherwise as ``update``."""
        return await self._put(obj, "status")

    async def finalize(self, namespace: Any) -> T:
        """Replace the ``spec.finalizers`` of a namespace, which no other verb changes. Otherwise as ``update``."""
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
            target: The object or its key.
            patch: A list of operations for a JSON patch (RFC 6902), or a mapping for a JSON merge patch (RFC 7386):
                null removes a field, lists are replaced as a whole. With ``metadata.resourceVersion`` in a mapping, or
                a ``test`` in a JSON patch, the server refuses it if the object has changed.
            strategic: Send a mapping as a strategic merge patch: lists are merged by their items' keys. For built-in
                resources only.
            subresource: Such as ``"status"`` or ``"scale"``.

        Returns:
            The object as the server has it now; for subresources other than the status, the subresource's object, such
            as a Scale.
        """
        if isinstance(patch, Mapping):
            kind: str = STRATEGIC_PATCH if strategic else MERGE_PATCH
        elif isinstance(patch, (list, tuple)) and not strategic:
            kind = JSON_PATCH
        else:
            raise ConfigError(
                f"a patch must be a mapping or a list of operations, not {type(patch).__name__}"
            )
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(target)
        body = await endpoint.write(
            "patch",
            key,
            "PATCH",
            patch,
            subresource=subresource,
            content_type=kind,
            query=endpoint.manager_query(),
        )
        return self._wrote("patch", key, body, target)

    async def patch_status(self, target: Any, patch: Patch, *, strategic: bool = False) -> T:
        """Change the status of an object. Pass a patch of the whole object: ``{"status": {...}}``.

        With ``metadata.resourceVersion`` beside the status, the server refuses it if the object has changed.
        """
        if isinstance(patch, Mapping) and "status" not in patch:
            raise ConfigError(
                f"patch status of {self._endpoint} {self._endpoint.addresses.key_of(target)}: pass a patch of the "
                'whole object: {"status": {...}}'
            )
        return await self.patch(target, patch, strategic=strategic, subresource="status")

    async def apply(
        self, obj: Any, *, force: bool = False, field_manager: str | None = None, subresource: str = ""
    ) -> T:
        """Server-side apply: set these fields, and create the object if it does not exist.

        Fields that this manager applied before and omits now are removed. An object that was read contains fields of
        others: apply a new object with only the fields that you own. A Struct is well suited. If a Struct has a
        resourceVersion, the object is read first: it is not applied if fields would be lost that its class lacks.

        Args:
            obj: The object, with its name, and its kind for custom resources. Fields that are None are omitted.
            force: Take over fields that other managers own; otherwise they cause a ConflictError.
            field_manager: The field manager; None for the resource's.
            subresource: Such as ``"status"``.

        Returns:
            The object as the server has it now.
        """
        endpoint = self._endpoint
        key, fields = endpoint.addresses.key_of(obj), endpoint.fields(obj)
        await self._require_no_loss(key, obj)
        collection = endpoint.addresses.collection
        kind = fields.get("kind") or kind_of(collection.api_version, collection.plural)
        if not kind:
            raise ConfigError(f"apply {endpoint} {key}: the object's kind is missing: {GIVE_KIND}")
        body = await endpoint.write(
            "apply",
            key,
            "PATCH",
            {**fields, "kind": kind},
            subresource=subresource,
            content_type=APPLY_PATCH,
            query=[*endpoint.manager_query(field_manager), ("force", str(force).lower())],
        )
        return self._wrote("apply", key, body)

    async def apply_status(self, obj: Any, *, force: bool = False, field_manager: str | None = None) -> T:
        """Apply the status of an object. Otherwise as ``apply``."""
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
            target: The object or its key. If the object has a uid, only the object with that uid is deleted.
            uid: ConflictError if the object has another uid; None for the target's.
            resource_version: ConflictError if the object has changed since this version.
            propagation_policy: What happens to the objects that it owns; None for the server's default.
            grace_period: Grace period of a pod in whole seconds; 0 removes it at once, None for the pod's own.

        Returns:
            The object if finalizers or its grace period keep it; None if it is gone.
        """
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(target)
        uid = uid_of(target) if uid is None else uid
        options = _delete_options(uid, resource_version, propagation_policy, grace_period)
        body = await endpoint.write("delete", key, "DELETE", options)
        with endpoint.name_request("delete", key):
            seen = endpoint.read_lifecycle(key, body, or_status=True)
        if seen.is_deleted and seen.is_kept:
            return self._wrote("delete", key, body, target)
        # Most answers lack the version. The target's belongs to the deleted object, since the uid was compared.
        version = seen.version or resource_version or (resource_version_of(target) if uid_of(target) else "")
        self._record_removed(key, seen.uid or uid, version)
        return None

    async def evict(self, target: Any, *, uid: str | None = None, grace_period: int | None = None) -> None:
        """Evict a pod. Raises TooManyRequestsError while a PodDisruptionBudget forbids it.

        Args:
            target: The pod, as for ``delete``.
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
        body = await endpoint.write("evict", key, "POST", eviction, subresource="eviction")
        with endpoint.name_request("evict", key):
            endpoint.read_lifecycle(key, body, or_status=True)

    async def ensure_finalizer(self, target: Any, name: str) -> T | None:
        """Add a finalizer to an object if it is missing, without overwriting concurrent writes.

        It sends a JSON patch with a ``test`` that fails if the finalizers have changed; then it reads the object and
        tries again, until the timeout of one request is over. If the target has the finalizer already, it sends none.

        Args:
            target: The object or its key. If the object has a uid, another object of its name is not changed.
            name: Such as ``"example.com/cleanup"``.

        Returns:
            The object with the finalizer; None if it is gone or being deleted, and so cannot get one.
        """
        return await self._edit(self._finalizers, target, name, wanted=True)

    async def drop_finalizer(self, target: Any, name: str) -> T | None:
        """Remove a finalizer from an object if it is there, as ``ensure_finalizer``. Keeps those of others.

        Returns:
            The object as the server has it now, which other finalizers may keep; None if it is gone.
        """
        return await self._edit(self._finalizers, target, name, wanted=False)

    async def ensure_spec_finalizer(self, target: Any, name: str) -> T | None:
        """Add a finalizer to a namespace's ``spec.finalizers``, which keep it until its contents are deleted.

        It reads the namespace, and writes through the ``finalize`` subresource at the version that it read.

        Returns:
            The namespace; None if it is gone or being deleted.
        """
        return await self._edit(self._spec_finalizers, target, name, wanted=True)

    async def drop_spec_finalizer(self, target: Any, name: str) -> T | None:
        """Remove a finalizer from a namespace's ``spec.finalizers``. Otherwise as ``drop_finalizer``."""
        return await self._edit(self._spec_finalizers, target, name, wanted=False)

    async def _edit(self, editor: FinalizerEditor, target: Any, name: str, *, wanted: bool) -> T | None:
        endpoint = self._endpoint
        edited = await editor.edit(target, name, wanted=wanted)
        if edited is None:
            return None
        if isinstance(edited, UndecodableObject):
            return cast("T", edited)
        if not isinstance(edited, bytes):
            return endpoint.of_type(edited)
        key, verb = endpoint.addresses.key_of(target), editor.verb(name, wanted=wanted)
        with endpoint.name_request(verb, key):
            seen = endpoint.read_lifecycle(key, edited, or_status=True)
        if seen.is_gone:
            self._record_removed(key, seen.uid, seen.version)
            return None
        return self._wrote(verb, key, edited, target)

    async def _put(self, obj: Any, subresource: str = "") -> T:
        endpoint = self._endpoint
        key, fields = endpoint.addresses.key_of(obj), endpoint.fields(obj)
        if self._is_partial(obj):
            fields = await self._with_unknown_fields(key, obj)
        body = await endpoint.write(
            "update",
            key,
            "PUT",
            fields,
            subresource=subresource,
            query=endpoint.manager_query(),
        )
        updated = self._wrote("update", key, body)
        if isinstance(obj, KubeObject) and obj.resource_version == resource_version_of(updated) != "":
            verb = f"update {subresource} of" if subresource else "update"
            raise ConfigError(
                f"{verb} {endpoint} {key}: nothing was changed: the server has this KubeObject already, at version "
                f"{obj.resource_version}. A KubeObject cannot be edited: edit the dict that obj.to_dict() returns, and "
                "send that dict"
            )
        return updated

    async def _with_unknown_fields(self, key: str, obj: Any) -> dict[str, Any]:
        """Return the fields of a Struct, and those that only the server's object has."""
        endpoint = self._endpoint
        version = resource_version_of(obj)
        if not version:
            raise ConfigError(
                f"update {endpoint} {key}: {type(obj).__name__} has only some of an object's fields, and no "
                "resourceVersion that tells from which object it comes: update an object that was read, in a Struct "
                "whose metadata has `resource_version: str`, or use apply or patch"
            )
        body = await endpoint.read(key)
        with endpoint.name_request("get", key):
            current = endpoint.read_lifecycle(key, body).version
            known = self._as_read(key, body, type(obj))
        if version != current:  # others' changes would look like edits
            with raise_refusals("update", str(endpoint), key):
                raise ApiError(
                    409,
                    "Conflict",
                    f"the object has changed: it is at version {current}, and was read at {version}",
                )
        try:
            return with_unknown_fields(body, obj, known=known)
        except AmbiguousEditError as error:
            error.request = f"update {endpoint} {key}"
            raise

    async def _require_no_loss(self, key: str, applied: Any) -> None:
        """Check that the apply of an object that was read keeps what its class lacks.

        Raises:
            ConfigError: It does not: the server replaces lists without keys, and some objects.
        """
        if not (is_partial(applied) and resource_version_of(applied)):
            return
        endpoint = self._endpoint
        try:
            body = await endpoint.read(key)
        except ObjectNotFoundError:
            return
        with endpoint.name_request("get", key):
            original = decode_any(body)
        if lost := find_lost_when_applied(original, applied):
            raise ConfigError(
                f"apply {endpoint} {key}: nothing was written: the server would not keep {lost}, which "
                f"{type(applied).__name__} lacks: it replaces lists without keys, and some objects, and finds the "
                f"items of other lists by their keys. {APPLY_YOURS[0].upper()}{APPLY_YOURS[1:]}"
            )

    def _is_partial(self, obj: Any) -> bool:
        """Return whether an object may lack fields that the server's has."""
        return is_partial(obj)

    def _as_read(self, key: str, body: bytes, object_type: type[Any]) -> Any:
        """Return the server's object as a reader gets it."""
        return decoder_of(object_type)(body, None)

    def _wrote(self, verb: str, key: str, body: bytes, target: Any = None) -> T:
        """Decode an answer, and record the write for reads that wait, also if the answer does not fit the type."""
        obj: Any
        unfit: DecodeError | None = None
        with self._endpoint.name_request(verb, key):
            seen = self._endpoint.read_lifecycle(key, body)
            try:
                obj = self._endpoint.codec.decode(body)
            except DecodeError as error:
                obj, unfit = undecodable(body, None, str(error)), error
            if seen.is_gone:
                self._record_removed(seen.key, seen.uid, seen.version)
            else:
                self._record_written(obj)
            if unfit is not None and not isinstance(target, UndecodableObject):
                raise unfit
        return cast("T", obj)

    def _record_written(self, obj: T | UndecodableObject) -> None:
        """Called after an object was written."""

    def _record_removed(self, key: str, uid: str, version: str) -> None:
        """Called after a write removed an object, with its uid and a version, as far as they are known."""


def _delete_options(
    uid: str | None,
    resource_version: str | None,
    propagation_policy: PropagationPolicy | None,
    grace_period: int | None,
) -> dict[str, Any]:
    """Return a ``metav1.DeleteOptions``."""
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
