"""A declared webhook for admission: its checks, and its answer to a review."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar

from ..._core.cancellation import maybe_await
from ..._core.checks import is_subdomain, require_flag
from ..._core.texts import valid_text
from ...errors import ConfigError, DecodeError, Denied, InvalidResultError
from ...objects.api_resources import APIResource
from ...objects.codec import Codec, codec_for
from ...objects.kube_object import KubeObject
from ...objects.nested_encoding import encode_nested
from ...typed import CustomResource
from ..context import Context
from ..declarations import require_handler, takes_context, with_context
from ..kinds import Kind, ResourceReference, resource_named, resource_of, show
from ..mistakes import Mistakes
from ..rights import LEASES
from .patching import Step, json_patch
from .review import AdmissionRequest, AdmissionReview, Operation

T = TypeVar("T")

OTHER_KINDS = ("scale", "eviction", "binding", "token")
"""Subresources whose objects are of another kind than the resource's."""
SCALED = {
    ("", "replicationcontrollers"),
    *(("apps", plural) for plural in ("deployments", "replicasets", "statefulsets")),
}
"""Kubernetes' own kinds that have a scale subresource."""
OPERATIONS: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE")
LONGEST_TIMEOUT = 30
"""Seconds that the API server allows."""


class AdmissionOptions(TypedDict, total=False):
    """Options of a webhook for admission.

    Attributes:
        operations: What it is called for; CREATE and UPDATE if not given.
        subresource: The subresource that it is called for, such as ``"status"``; the objects themselves if not given.
        name: Its name; the function's if not given.
        failure_policy: What the API server does if the webhook fails or is unavailable: ``"Fail"`` (refuse the request)
            or ``"Ignore"``.
        timeout: Seconds that the API server waits, 1 to 30; 10 if not given. The function gets nine tenths.
        side_effects: Whether it writes anything elsewhere. It must not if ``review.dry_run``.
        object_selector: A label selector for the objects, as in the configuration.
        namespace_selector: A label selector for the namespaces.
        match_conditions: CEL expressions by name: it is called if all are true.
        deleting: Whether it is also called for updates of objects that are being deleted that change only the metadata.
            Otherwise it allows them, so that finalizers can be removed from objects that it would refuse.
        kube_system: Whether it is also called in the namespace ``kube-system``. Webhooks for Kubernetes' own kinds are
            not, so that the cluster's own pods start while the webhook is down; those for other kinds are.
    """

    operations: Sequence[Operation]
    subresource: str
    name: str | None
    failure_policy: Literal["Fail", "Ignore"]
    timeout: int
    side_effects: bool
    object_selector: Mapping[str, Any] | None
    namespace_selector: Mapping[str, Any] | None
    match_conditions: Mapping[str, str]
    deleting: bool
    kube_system: bool | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Admission:
    """A webhook as it was declared: see AdmissionOptions."""

    operator: str
    mutates: bool
    resource: ResourceReference
    function: Callable[..., Any]
    operations: Sequence[Operation] = ("CREATE", "UPDATE")
    subresource: str = ""
    name: str | None = None
    failure_policy: str = "Fail"
    timeout: int = 10
    side_effects: bool = False
    object_selector: Mapping[str, Any] | None = None
    namespace_selector: Mapping[str, Any] | None = None
    match_conditions: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    kube_system: bool | None = None

    @property
    def of(self) -> APIResource:
        """The resource that it is called for."""
        return resource_of(self.resource)

    @property
    def excludes_kube_system(self) -> bool:
        """Whether it is not called in the namespace kube-system."""
        if self.kube_system is None:
            group = self.of.group
            return "." not in group or group.endswith(".k8s.io")
        return not self.kube_system

    @property
    def misses_scale(self) -> bool:
        """Whether the kind has a scale subresource whose updates it is not called for."""
        if self.subresource or "UPDATE" not in self.operations:
            return False
        if isinstance(self.resource, type) and issubclass(self.resource, CustomResource):
            declaration = self.resource.__declaration__
            return declaration is not None and declaration.scale is not None
        return (self.of.group, self.of.plural) in SCALED

    @property
    def verb(self) -> str:
        """``"mutate"`` or ``"validate"``."""
        return "mutate" if self.mutates else "validate"

    @property
    def title(self) -> str:
        """Its name at the server, which has at least three parts: ``"check.websites.example.com"``."""
        own = self.name or getattr(self.function, "__name__", self.verb).strip("_").lower().replace("_", "-")
        return f"{own}.{self.of.plural}.{self.of.group or self.operator}"

    @property
    def path(self) -> str:
        """Where the API server calls it."""
        return f"/{self.verb}/{self.title}"

    # -- checks --------------------------------------------------------------------------------------------

    def check(self, others: Sequence[Admission]) -> None:
        """Check the declaration.

        Raises:
            ConfigError: It is invalid; the message has all mistakes.
        """
        called = getattr(self.function, "__name__", repr(self.function))
        mistakes = Mistakes(f"{self.operator}: {self.verb}({show(self.resource)}) {called}")
        mistakes.of(require_handler, self.verb, self.function, "review")
        if isinstance(self.resource, Kind):
            mistakes.add(
                f"a webhook takes a class or a name, not {self.resource!r}: pass {show(self.resource)}"
            )
        resource = mistakes.of(resource_named, self.resource)
        if resource is not None:
            self._check_resource(mistakes, resource, others)
        mistakes.of(require_flag, "side_effects", self.side_effects)
        mistakes.of(require_flag, "deleting", self.deleting)
        if self.kube_system is not None:
            mistakes.of(require_flag, "kube_system", self.kube_system)
        if self.failure_policy not in ("Fail", "Ignore"):
            mistakes.add(f"failure_policy must be 'Fail' or 'Ignore', not {self.failure_policy!r}")
        if type(self.timeout) is not int or not 1 <= self.timeout <= LONGEST_TIMEOUT:
            mistakes.add(
                f"timeout must be 1 to {LONGEST_TIMEOUT} whole seconds, as the API server asks, not {self.timeout!r}"
            )
        self._check_operations(mistakes)
        for name in ("object_selector", "namespace_selector", "match_conditions"):
            if not isinstance(getattr(self, name) or {}, Mapping):
                mistakes.add(f"{name} must be a dict, not {getattr(self, name)!r}")
        mistakes.raise_if_any()

    def _check_resource(self, mistakes: Mistakes, resource: APIResource, others: Sequence[Admission]) -> None:
        if (resource.group, resource.plural) == (LEASES.group, LEASES.plural):
            mistakes.add(
                "a webhook for Leases can stop every leader election, and so its own operator: choose another resource"
            )
        if not is_subdomain(self.title):
            mistakes.add(
                f"its name {self.title!r} must have lower-case letters, digits and hyphens only: pass name="
            )
        if isinstance(self.resource, type) and self.subresource in OTHER_KINDS:
            mistakes.add(
                f"the objects of {resource.plural}/{self.subresource} are no {self.resource.__name__}: name it "
                f"by the text {str(resource)!r}, not by the class"
            )
        if any((other.mutates, other.title) == (self.mutates, self.title) for other in others):
            mistakes.add(f"another webhook is named {self.title} already: pass name= to one of them")

    def _check_operations(self, mistakes: Mistakes) -> None:
        if isinstance(self.operations, str) or not self.operations:
            mistakes.add(f"operations must be a list such as ['CREATE'], not {self.operations!r}")
            return
        for operation in self.operations:
            if operation not in OPERATIONS:
                mistakes.add(f"operations has {operation!r}: use {', '.join(OPERATIONS)}")
        if self.mutates and "DELETE" in self.operations:
            mistakes.add("mutate has the operation DELETE: there is nothing to change; use validate")

    # -- answers -------------------------------------------------------------------------------------------

    def bind(self, context: Context | None) -> Callable[[AdmissionRequest], Awaitable[dict[str, Any]]]:
        """Return a function that answers requests with an AdmissionResponse.

        Args:
            context: Of the run; None for none.

        Raises:
            ConfigError: The webhook takes a context, and there is none.
        """
        if context is None and takes_context(self.function):
            raise ConfigError(
                f"{self.title} takes a context: pass the manager of the run, as in operator.webhook_app(manager), or "
                "in a test the client, as in operator.review(obj, client=client)"
            )
        function = self.function if context is None else with_context(self.function, context)
        codec: Codec[Any] = codec_for(self.resource if isinstance(self.resource, type) else KubeObject)
        return lambda request: self._answer(function, AdmissionReview(request, codec.decode))

    async def _answer(
        self, function: Callable[[AdmissionReview[Any]], Any], review: AdmissionReview[Any]
    ) -> dict[str, Any]:
        if review.operation not in self.operations:
            raise ConfigError(f"{self.title} was called for {review.operation}, which it does not declare")
        if isinstance(self.resource, type) and review.kind not in ("", self.of.kind):
            raise ConfigError(f"{self.title} was called for a {review.kind}, not a {self.of.kind}")
        if isinstance(self.resource, type) and review.version not in ("", self.of.version):
            raise ConfigError(
                f"{self.title} was called for {review.version}, not {self.of.version}: another release registered it, "
                "as during a rolling update"
            )
        if not self.deleting and review.is_being_deleted and review.changes_only_metadata:
            return {"uid": review.uid, "allowed": True}
        patch = None
        unread = None
        try:
            patch = await self._call(function, review)
        except Denied as denial:
            review.denials.append(denial)
        except DecodeError as error:
            if error not in review.unread.values():
                raise
            unread = error
        # A function that swallows the error has not read the object, so its verdict does not count.
        unread = review.unread.get("object", unread)
        if unread is not None:
            if review.changes_only_metadata:  # as of an object from before its class became stricter
                return {"uid": review.uid, "allowed": True}
            review.denials.append(_denial_of(unread, "" if unread is review.unread.get("object") else "old"))
        response: dict[str, Any] = {"uid": review.uid, "allowed": not review.denials}
        if review.warnings:
            response["warnings"] = [*map(valid_text, review.warnings)]
        if review.denials:
            response["status"] = self._status(review)
        elif patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(encode_nested(patch)).decode()
        return response

    async def _call(
        self, function: Callable[[AdmissionReview[Any]], Any], review: AdmissionReview[Any]
    ) -> list[Step] | None:
        """Call the function, and return the patch that it wants; None for none."""
        returned = await maybe_await(function(review))
        if not self.mutates:
            if returned is None:
                return None
            raise InvalidResultError(
                f"{self.title} returned {returned!r:.200}, not None: to refuse, raise Denied"
            )
        if returned is None and not review.was_read:
            return None
        return json_patch(review.raw, self._result_of(review, returned))

    def _result_of(self, review: AdmissionReview[Any], returned: object) -> object:
        """Return the object as the function wants it: what it returned, or the review's, changed in place."""
        if returned is None:
            return review.object
        if isinstance(self.resource, type):
            if not isinstance(returned, self.resource):
                raise InvalidResultError(
                    f"{self.title} returned {returned!r:.200}, neither a {self.resource.__name__} nor None"
                )
        elif not isinstance(returned, (KubeObject, dict)):
            raise InvalidResultError(
                f"{self.title} returned {returned!r:.200}, neither a KubeObject nor a dict nor None"
            )
        return returned

    def _status(self, review: AdmissionReview[Any]) -> dict[str, Any]:
        """Return why the request is denied: Invalid with causes if fields are named, else Forbidden."""
        causes = [
            {"reason": "FieldValueInvalid", "message": denial.message, "field": denial.field}
            for denial in review.denials
            if denial.field
        ]
        status: dict[str, Any] = {
            "status": "Failure",
            "message": "; ".join(map(str, review.denials)),
            "reason": "Invalid" if causes else "Forbidden",
            "code": 422 if causes else 403,
        }
        if causes:
            of = self.of
            details = {"name": review.name, "group": of.group, "kind": of.kind, "causes": causes}
            status["details"] = {name: value for name, value in details.items() if value}
        return status


def _denial_of(error: DecodeError, which: str) -> Denied:
    """Return the denial of an object that cannot be read: it names the field.

    Args:
        error: Why it cannot be read.
        which: ``"old"`` for the stored object.
    """
    text = error.problem or "the object does not fit the class by which this webhook reads it"
    return Denied(f"{text} (in the object as it is stored)" if which else text, field=error.field)
