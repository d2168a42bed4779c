"""Admission: what mutating and validating webhooks make of a request."""

from __future__ import annotations

import asyncio
import base64
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing import errors
from aioinformer.testing.apply.patches import JSON_PATCH, apply_patch
from aioinformer.testing.errors import StatusError
from aioinformer.testing.rules.scale import rescale, scale_of
from aioinformer.testing.storage.builtin import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from aioinformer.testing.webhooks.calls import Caller, CallError, decode_answer
from aioinformer.testing.webhooks.conversion import Conversions
from aioinformer.testing.webhooks.hooks import Configurations, Hook, is_exempt, namespace_labels

if TYPE_CHECKING:
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.objects import Object
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType

_API_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_LONGEST_WARNINGS, _LONGEST_WARNING = 4096, 256
"""Characters of all warnings of an answer, above which each is cut."""


class Webhooks:
    """All that the server asks of webhooks.

    Args:
        cluster: Has the configurations, and the definitions with conversions.
        admits: Whether to ask the webhooks of admission.

    Attributes:
        conversions: Converts custom resources between versions.
    """

    def __init__(self, cluster: Cluster, *, admits: bool = True) -> None:
        self.cluster = cluster
        self._admits = admits
        self.caller = Caller(cluster)
        self.conversions = Conversions(self.caller)
        self.mutating = Configurations(cluster, MUTATING_WEBHOOKS)
        self.validating = Configurations(cluster, VALIDATING_WEBHOOKS)

    def admission(self, request: Request) -> Admission | None:
        """Return what admits a request; None if there is no configuration of webhooks."""
        return Admission(self, request) if self._admits and (self.mutating or self.validating) else None

    async def close(self) -> None:
        """Close the connections to webhooks."""
        await self.caller.close()


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


class Admission:
    """Admits one request: asks the webhooks that match it.

    Attributes:
        warnings: What webhooks warned of.
    """

    def __init__(self, webhooks: Webhooks, request: Request) -> None:
        self._webhooks = webhooks
        self._request = request
        self._warned = 0
        self.warnings: list[str] = []

    async def admit(self, resource: ResourceType, obj: Object, *, dry_run: bool) -> Object:
        """Return an object that is created and not stored, such as a Binding, with the webhooks' changes.

        Raises:
            StatusError: A webhook denies the request or fails.
        """
        obj = await self.mutate(resource, obj, None, dry_run=dry_run)
        await self.validate(resource, obj, None, dry_run=dry_run)
        return obj

    async def admit_delete(self, resource: ResourceType, old: Object, *, dry_run: bool) -> None:
        """Ask about the deletion of an object.

        Raises:
            StatusError: A webhook denies the request or fails.
        """
        await self._mutate(resource, None, old, dry_run=dry_run)
        await self.validate(resource, None, old, dry_run=dry_run)

    async def mutate(
        self, resource: ResourceType, obj: Object, old: Object | None, *, dry_run: bool
    ) -> Object:
        """Return an object with the webhooks' changes.

        Raises:
            StatusError: A webhook denies the request or fails.
        """
        if self._request.subresource != "scale" or old is None:
            return await self._mutate(resource, obj, old, dry_run=dry_run) or obj
        scale = scale_of(resource, obj)
        changed = await self._mutate(resource, scale, scale_of(resource, old), dry_run=dry_run)
        return obj if changed in (None, scale) else rescale(resource, obj, lambda _: changed)

    async def validate(
        self, resource: ResourceType, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> None:
        """Ask the validating webhooks, all at once.

        Raises:
            StatusError: A webhook denies the request or fails.
        """
        if not self._webhooks.validating or is_exempt(resource):
            return
        if self._request.subresource == "scale" and obj is not None and old is not None:
            obj, old = scale_of(resource, obj), scale_of(resource, old)
        asked = [
            _Question(self._webhooks, self._request, hook, resource, obj, old, dry_run=dry_run)
            for hook in self._webhooks.validating
        ]
        answers = await asyncio.gather(*(question.ask() for question in asked), return_exceptions=True)
        for question in asked:
            self._warn(question.warnings)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _mutate(
        self, resource: ResourceType, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> Object | None:
        """Ask the mutating webhooks in their order, and some again that asked for it."""
        if not self._webhooks.mutating or is_exempt(resource):
            return obj
        called: set[tuple[str, int]] = set()
        outdated: set[tuple[str, int]] = set()
        hooks = list(self._webhooks.mutating)
        for is_again in (False, True):
            for hook in hooks:
                if is_again and hook.key not in outdated:
                    continue
                question = _Question(self._webhooks, self._request, hook, resource, obj, old, dry_run=dry_run)
                try:
                    changed = await question.ask(mutating=True)
                finally:
                    self._warn(question.warnings)
                if changed is not None and changed != obj:
                    outdated |= called
                    obj = changed
                if hook.spec["reinvocationPolicy"] == "IfNeeded" and question.was_called:
                    called.add(hook.key)
        return obj

    def _warn(self, texts: list[str]) -> None:
        for text in texts:
            shown = text[:_LONGEST_WARNING] if self._warned + len(text) > _LONGEST_WARNINGS else text
            if shown.isprintable() and shown not in self.warnings:
                self._warned += len(shown)
                self.warnings.append(shown)


class _Question:
    """A webhook, and a request that may match it."""

    def __init__(
        self,
        webhooks: Webhooks,
        request: Request,
        hook: Hook,
        resource: ResourceType,
        obj: Object | None,
        old: Object | None,
        *,
        dry_run: bool,
    ) -> None:
        self._webhooks = webhooks
        self._request = request
        self._hook = hook
        self._resource = resource
        self._obj, self._old = obj, old
        self._dry_run = dry_run
        self._operation = "CREATE" if old is None else "DELETE" if obj is None else "UPDATE"
        self.warnings: list[str] = []
        self.was_called = False

    async def ask(self, *, mutating: bool = False) -> Object | None:
        """Call the webhook if the request matches; return the changed object, or None.

        Raises:
            StatusError: It denies the request or fails.
        """
        seen_as = self._match()
        if seen_as is None:
            return None
        hook, conversions = self._hook, self._webhooks.conversions
        obj = await conversions.convert(self._resource, seen_as, self._obj)
        old = await conversions.convert(self._resource, seen_as, self._old)
        asked = self._review(seen_as, obj, old)
        if not self._meets_conditions(asked):
            return None
        if self._dry_run and hook.spec["sideEffects"] not in ("None", "NoneOnDryRun"):
            raise errors.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        self.was_called = True
        uid = str(uuid.uuid4())
        review = {"kind": _KIND, "apiVersion": _API_VERSION, "request": {"uid": uid, **asked}}
        try:
            response = await self._call(review, uid, mutating=mutating)
        except CallError as error:
            if hook.ignores_failures:
                return None
            raise _internal(f'failed calling webhook "{hook.name}": {error}') from error
        self.warnings += response.warnings or []
        if not response.allowed:
            raise _denial(hook.name, response.status or {})
        if not response.patch or obj is None:
            return None
        return await conversions.convert(seen_as, self._resource, self._patch(seen_as, obj, response.patch))

    def _match(self) -> ResourceType | None:
        """Return the resource, in the version that the webhook's rules name; None if the request does not match."""
        hook, cluster = self._hook, self._webhooks.cluster
        request, resource = self._request, self._resource
        namespace = request.namespace if resource.namespaced else ""
        labels = namespace_labels(cluster, resource, namespace, self._obj or self._old)
        if not hook.selects_namespace(labels) or not hook.selects(self._obj, self._old):
            return None
        if hook.has_rule(resource, request.subresource, self._operation):
            return resource
        if hook.spec["matchPolicy"] == "Exact":  # not in other versions
            return None
        for other in cluster.registry:
            if (
                (other.stored_group, other.plural) == (resource.stored_group, resource.plural)
                and other.api_version != resource.api_version
                and hook.has_rule(other, request.subresource, self._operation)
            ):
                return other
        return None

    def _review(self, seen_as: ResourceType, obj: Object | None, old: Object | None) -> Object:
        request, resource = self._request, self._resource
        shown: Object = obj or old or {}
        name = request.name
        if not name and self._operation == "CREATE":
            name = (shown.get("metadata") or {}).get("name") or ""
        namespace = request.namespace or (name if resource.kind == "Namespace" else "")
        asked_for: Object = self._obj or self._old or {}
        fields = {
            "kind": _group_version(shown["apiVersion"], "kind", shown["kind"]),
            "resource": _group_version(seen_as.api_version, "resource", seen_as.plural),
            "subResource": request.subresource,
            "requestKind": _group_version(asked_for["apiVersion"], "kind", asked_for["kind"]),
            "requestResource": _group_version(resource.api_version, "resource", resource.plural),
            "requestSubResource": request.subresource,
            "name": name,
            "namespace": namespace,
        }
        user: Object = {"username": request.user, "uid": request.uid, "groups": [*request.groups]}
        user["extra"] = {key: [*values] for key, values in request.extra.items()}
        return {
            **{key: value for key, value in fields.items() if value},
            "operation": self._operation,
            "userInfo": {key: value for key, value in user.items() if value},
            "object": obj,
            "oldObject": old,
            "dryRun": self._dry_run,
            "options": self._options(),
        }

    def _options(self) -> Object:
        kind = f"{self._operation.capitalize()}Options"
        options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        for name in ("fieldManager", "fieldValidation"):
            if (value := self._request.query.get(name)) and self._operation != "DELETE":
                options[name] = value
        if self._dry_run:
            options["dryRun"] = ["All"]
        return options

    def _meets_conditions(self, asked: Object) -> bool:
        """Return whether all match conditions are true.

        Raises:
            StatusError: 403 if one fails and no other is false; 500 if this server cannot evaluate it.
        """
        if not self._hook.conditions:
            return True
        from aioinformer.testing.schema.cel import (  # slow to import
            EvaluationError,
            InvalidRuleError,
            NotEnforcedError,
            condition,
        )

        request = {name: value for name, value in asked.items() if name not in ("object", "oldObject")}
        failed: list[str] = []
        for name, expression in self._hook.conditions:
            try:
                if not condition(expression)(asked["object"], asked["oldObject"], request):
                    return False
            except NotEnforcedError as error:
                raise _internal(
                    f'webhook "{self._hook.name}": this server cannot evaluate the match condition "{name}": {error}'
                ) from error
            except (InvalidRuleError, EvaluationError) as error:
                failed.append(f"expression '{expression}' resulted in error: {error}")
        if failed and not self._hook.ignores_failures:
            why = failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]"
            raise errors.forbidden(self._resource, self._request.name, why)
        return not failed

    async def _call(self, review: Object, uid: str, *, mutating: bool) -> _Response:
        """Return the webhook's response.

        Raises:
            CallError: It was not reached, or its answer is invalid.
        """
        config = self._hook.spec.get("clientConfig") or {}
        try:
            said = await self._webhooks.caller.post(config, review, self._hook.spec["timeoutSeconds"])
            answer: _Review = decode_answer(said, _Review)
        except CallError as error:
            raise CallError(f"failed to call webhook: {error}") from error
        if why := _fault(answer, uid, mutating=mutating):
            raise CallError(f"received invalid webhook response: {why}")
        assert answer.response is not None
        return answer.response

    def _patch(self, resource: ResourceType, obj: Object, encoded: str) -> Object:
        try:
            patch = msgspec.json.decode(base64.b64decode(encoded))
            return apply_patch(resource, obj, patch, JSON_PATCH)
        except (ValueError, StatusError) as error:
            why = error.message if isinstance(error, StatusError) else str(error)
            raise _internal(f'the patch of webhook "{self._hook.name}" cannot be applied: {why}') from error


def _fault(answer: _Review, uid: str, *, mutating: bool) -> str:
    """Return why an answer is invalid, as the real server says it; ``""`` if it is not."""
    response = answer.response
    if response is None:
        return "webhook response was absent"
    if response.uid != uid:
        return f'expected response.uid="{uid}", got "{response.uid}"'
    if (answer.api_version, answer.kind) != (_API_VERSION, _KIND):
        got = f"{answer.api_version}, Kind={answer.kind}"
        return f"expected webhook response of {_API_VERSION}, Kind={_KIND}, got {got}"
    if not mutating:
        if response.patch:
            return "validating webhook may not return response.patch"
        return "validating webhook may not return response.patchType" if response.patch_type else ""
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    if response.patch and response.patch_type != "JSONPatch":
        return f'webhook returned invalid response.patchType of "{response.patch_type}"'
    return ""


def _group_version(api_version: str, name: str, value: str) -> dict[str, str]:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, name: value}


def _internal(why: str) -> StatusError:
    return StatusError(
        500, "InternalError", f"Internal error occurred: {why}", details={"causes": [{"message": why}]}
    )


def _denial(name: str, status: Object) -> StatusError:
    """Return the refusal of a webhook, with code, reason and causes as it says."""
    code = status.get("code") or 0
    said = status.get("message") or status.get("reason")
    denied = f'admission webhook "{name}" denied the request'
    return StatusError(
        code if code >= 400 else 400,
        status.get("reason") or "",
        f"{denied}: {said}" if said else f"{denied} without explanation",
        details=status.get("details"),
    )
