"""Reviews: a client creates an object, and its status has the answer; nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.errors import bad_request, field_invalid, invalid
from aioinformer.testing.objects import Object, timestamp
from aioinformer.testing.requests import Request
from aioinformer.testing.rules.validation import check_kind
from aioinformer.testing.rules.values import decode_values
from aioinformer.testing.users import User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.access.authentication import Authenticator
    from aioinformer.testing.access.authorization import Authorizer
    from aioinformer.testing.resources import ResourceType

_ATTRIBUTES = ("resourceAttributes", "nonResourceAttributes")


class Reviews:
    """Answers reviews.

    Args:
        authenticator: Knows the users of bearer tokens.
        authorizer: Decides which requests are permitted.
    """

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def answer(self, request: Request, resource: ResourceType, review: Object) -> Object:
        """Return a review with its status.

        Raises:
            StatusError: 400, 422.
        """
        check_kind(resource, review)
        review = decode_values(resource, review)
        metadata = review["metadata"]
        if resource.namespaced:
            metadata["namespace"] = request.namespace
        if resource.kind == "SelfSubjectReview":
            metadata["creationTimestamp"] = timestamp(request.time)
        spec = review.get("spec") or {}
        shown = {} if resource.kind == "SelfSubjectRulesReview" else spec
        return {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
            **({"spec": shown} if spec else {}),
            "status": self._status(request, resource, spec),
        }

    def _status(self, request: Request, resource: ResourceType, spec: Object) -> Object:
        match resource.kind:
            case "SelfSubjectReview":
                return {"userInfo": User(request.user, request.groups, request.uid, request.extra).info}
            case "TokenReview":
                if not (token := spec.get("token")):
                    raise bad_request("token is required for TokenReview in authentication")
                return self._authenticator.review(str(token), spec.get("audiences") or ())
            case "SelfSubjectRulesReview":
                if not (namespace := spec.get("namespace")):
                    raise bad_request("no namespace on request")
                resources, paths = self._authorizer.rules(request, namespace)
                return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
        if causes := list(_faults(resource, spec, request.namespace)):
            raise invalid("", resource.group, "", causes)
        asked = _request_in(spec)
        if resource.kind == "SelfSubjectAccessReview":
            asked.user, asked.groups = request.user, request.groups
        else:
            asked.user, asked.groups = spec.get("user") or "", tuple(spec.get("groups") or ())
        return self._authorizer.review(asked)


def _faults(resource: ResourceType, spec: Object, namespace: str) -> Iterator[dict[str, str]]:
    of_resource, of_path = (spec.get(name) for name in _ATTRIBUTES)
    if of_resource is None and of_path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield field_invalid("spec.resourceAttributes", None, why)
    if of_path is not None and (of_resource is not None or resource.namespaced):
        both = "cannot be specified in combination with resourceAttributes"
        why = "disallowed on this kind of request" if resource.namespaced else both
        shown = {"Path": of_path.get("path") or "", "Verb": of_path.get("verb") or ""}
        yield field_invalid("spec.nonResourceAttributes", shown, why)
    if resource.kind != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        yield field_invalid("spec.user", "", "at least one of user or group must be specified")
    if resource.namespaced and of_resource is not None and of_resource.get("namespace") != namespace:
        why = "must match metadata.namespace"
        yield field_invalid("spec.resourceAttributes.namespace", of_resource.get("namespace") or "", why)


def _request_in(spec: Object) -> Request:
    """Return the request that a review asks about."""
    wanted: Object = next(spec[name] for name in _ATTRIBUTES if spec.get(name) is not None)
    request = Request(method="", path=str(wanted.get("path") or ""))
    for name in ("verb", "group", "version", "resource", "namespace", "name", "subresource"):
        setattr(request, name, str(wanted.get(name) or ""))
    return request
