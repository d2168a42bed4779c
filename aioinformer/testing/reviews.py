"""Reviews: a client creates an object, and its status has the answer; nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import field_invalid, invalid
from aioinformer.testing.objects import Object, metadata_of
from aioinformer.testing.requests import ANONYMOUS, Request
from aioinformer.testing.validation import check_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.resources import ResourceType

_ATTRIBUTES = ("resourceAttributes", "nonResourceAttributes")


class Reviews:
    """Answers reviews.

    Args:
        identify: Returns the user of a bearer token.
        allowed: Returns whether a request is permitted.
    """

    def __init__(self, *, identify: Callable[[str | None], str], allowed: Callable[[Request], bool]) -> None:
        self._identify = identify
        self._allowed = allowed

    def answer(self, request: Request, resource: ResourceType, review: Object) -> Object:
        """Return a review with its status.

        Raises:
            StatusError: 400, 422.
        """
        check_kind(resource, review)
        metadata = metadata_of(review)
        if resource.namespaced:
            metadata["namespace"] = request.namespace
        spec = review.get("spec") or {}
        return {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
            **({"spec": spec} if spec else {}),
            "status": self._status(request, resource, spec),
        }

    def _status(self, request: Request, resource: ResourceType, spec: Object) -> Object:
        match resource.kind:
            case "SelfSubjectReview":
                return {"userInfo": _user(request.user)}
            case "TokenReview":
                user = self._identify(str(spec.get("token")))
                if user == ANONYMOUS:
                    return {"user": {}, "error": "invalid bearer token"}
                return {"authenticated": True, "user": _user(user)}
            case "SelfSubjectRulesReview":
                everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
                paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
                return {"resourceRules": [everything], "nonResourceRules": [paths], "incomplete": False}
        user = spec.get("user") or request.user
        return {"allowed": self._allowed(_asked(resource, spec, user))}


def _asked(resource: ResourceType, spec: Object, user: str) -> Request:
    """Return the request that a review asks about."""
    given = [spec[name] for name in _ATTRIBUTES if spec.get(name) is not None]
    if len(given) != 1 or not isinstance(given[0], dict):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes = [field_invalid("spec.resourceAttributes", None, why)]
        raise invalid(resource.kind, resource.group, "", causes)
    wanted: dict[str, Any] = given[0]
    request = Request(method="", path=str(wanted.get("path") or ""), user=user)
    for name in ("verb", "group", "version", "resource", "namespace", "name", "subresource"):
        setattr(request, name, str(wanted.get(name) or ""))
    return request


def _user(name: str) -> Object:
    group = "system:unauthenticated" if name == ANONYMOUS else "system:authenticated"
    return {"username": name, "groups": [group]}
