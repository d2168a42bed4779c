"""Authorization: what `forbid` refuses, and, with `APIServer(rbac=True)`, what no role permits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from aioinformer.objects.labels import LabelSelector
from aioinformer.testing import errors
from aioinformer.testing.access.impersonation import permissions, refused_verb
from aioinformer.testing.objects import Object
from aioinformer.testing.resources import ResourceType
from aioinformer.testing.storage.builtin import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from aioinformer.testing.storage.codec import read
from aioinformer.testing.users import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.requests import Request
    from aioinformer.testing.storage.storage import StoredObject
    from aioinformer.testing.users import User

Rule = Object
MASTERS = "system:masters"
"""The group whose users may do everything."""
PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version"})
"""Paths that need no token."""

_ROLES = {"Role": ROLES, "ClusterRole": CLUSTER_ROLES}


class Access(NamedTuple):
    """What a request needs to be permitted.

    Attributes:
        verb: ``"patch"``.
        group: The API group.
        resource: The plural, with the subresource: ``"pods/status"``; empty for a path without a resource.
        name: The object's name; empty if the request has none.
        path: The path, if there is no resource.
    """

    verb: str
    group: str
    resource: str
    name: str = ""
    path: str = ""

    @classmethod
    def of(cls, request: Request) -> Access:
        """Return what a request needs; the name in a field selector counts as the request's name."""
        resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
        name = request.name or _selected_name(request)
        return cls(request.verb, request.group, resource, name, "" if resource else request.path)

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def permits(rule: Mapping[str, Any], access: Access) -> bool:
    """Return whether a rule of a Role or ClusterRole permits an access."""
    if not _has(rule, "verbs", access.verb):
        return False
    if access.path:
        paths = rule.get("nonResourceURLs") or ()
        return any(
            access.path.startswith(path[:-1]) if path.endswith("*") else access.path == path for path in paths
        )
    names: Collection[str] = rule.get("resourceNames") or ()
    _, slash, subresource = access.resource.partition("/")
    resources = rule.get("resources") or ()
    return (
        _has(rule, "apiGroups", access.group)
        and (_has(rule, "resources", access.resource) or f"*{slash}{subresource}" in resources)
        and (not names or access.name in names)
    )


def _has(rule: Mapping[str, Any], field: str, value: str) -> bool:
    values: Collection[str] = rule.get(field) or ()
    return value in values or "*" in values


def _selected_name(request: Request) -> str:
    terms = request.query.get("fieldSelector", "").split(",")
    names = [term.partition("=")[2].lstrip("=") for term in terms if term.startswith("metadata.name=")]
    return names[0] if names else ""


class _Forbidden(Protocol):
    """Requests that a test has forbidden."""

    def meets(self, request: Request) -> bool:
        """Return whether a request is one of them."""
        ...

    def use(self, request: Request) -> bool:
        """Return whether a request is one of them, and count it."""
        ...


class Authorizer:
    """Decides which requests are permitted.

    Args:
        cluster: The roles and their bindings.
        forbidden: The requests that tests forbid, at any time.
        needs_token: Whether requests need a token.
        rbac: Whether roles decide; otherwise every request is permitted that `forbidden` does not match.
    """

    def __init__(
        self, cluster: Cluster, *, forbidden: Sequence[_Forbidden], needs_token: bool, rbac: bool
    ) -> None:
        self._cluster = cluster
        self._needs_token = needs_token
        self._rbac = rbac
        self._forbidden = forbidden

    def check(
        self, request: Request, token: str | None, user: User, wanted: User | None, *, may_create: bool
    ) -> None:
        """Refuse a request that is not permitted.

        Args:
            request: The request.
            token: Its bearer token.
            user: The user of the token.
            wanted: The user to impersonate.
            may_create: Whether this update or patch creates a missing object, which needs the right to create.

        Raises:
            StatusError: 400, 401, 403.
        """
        public = token is None and request.path.rstrip("/") in PUBLIC
        unknown = user.name == ANONYMOUS and (self._needs_token or (self._rbac and token is not None))
        if unknown and not public:
            raise errors.StatusError(401, message="Unauthorized")
        if wanted is not None:
            self._check_impersonation(request, user, wanted)
        if any(rule.use(request) for rule in list(self._forbidden)):
            raise _forbidden_error(request)
        needed = [request]
        if may_create and self._rbac and self._is_missing(request):
            needed.append(replace(request, verb="create"))
        for permission in needed:
            if self._reason(permission) is None:
                raise _forbidden_error(permission)

    def review(self, request: Request) -> Object:
        """Return the status of a review that asks whether a request is permitted."""
        reason = self._reason(request)
        if reason is None or any(rule.meets(request) for rule in self._forbidden):
            return {"allowed": False}
        return {"allowed": True, **({"reason": reason} if reason else {})}

    def rules(self, request: Request, namespace: str) -> tuple[list[Rule], list[Rule]]:
        """Return the rules about resources and those about paths for a request's user in a namespace."""
        rules = list(self.rules_for(replace(request, namespace=namespace)))
        if not self._rbac:
            rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
            rules.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
        return [rule for rule in rules if "resources" in rule], [
            rule for rule in rules if "nonResourceURLs" in rule
        ]

    def permits(self, request: Request) -> bool:
        """Return whether roles permit a request."""
        return self._reason(request) is not None

    def rules_for(self, request: Request) -> Iterator[Rule]:
        """Yield the rules for a request's user in its namespace."""
        return (rule for _, rule in self._rules(request))

    def role(self, reference: Object, namespace: str) -> StoredObject | None:
        """Return the role that a binding in a namespace refers to, or None."""
        resource = _ROLES.get(reference["kind"])
        if resource is None:
            return None
        return self._cluster.find(resource, namespace if resource is ROLES else "", reference["name"])

    def _check_impersonation(self, request: Request, user: User, wanted: User) -> None:
        if not wanted.name:
            raise errors.bad_request("requested to impersonate a group, uid or extra without a user name")
        for needed in permissions(wanted, user.name):
            needed.groups = user.groups
            if any(rule.use(needed) for rule in list(self._forbidden)) or self._reason(needed) is None:
                verb = refused_verb(wanted, request.verb)
                raise _forbidden_error(replace(request, user=user.name, verb=verb))

    def _is_missing(self, request: Request) -> bool:
        resource = self._cluster.registry.find(request.group, request.version, request.resource)
        return resource is not None and not self._cluster.find(resource, request.namespace, request.name)

    def _reason(self, request: Request) -> str | None:
        """Return why a request is permitted, which may be empty, or None if it is not."""
        if not self._rbac or MASTERS in request.groups:
            return ""
        access = Access.of(request)
        return next((reason for reason, rule in self._rules(request) if permits(rule, access)), None)

    def _rules(self, request: Request) -> Iterator[tuple[str, Rule]]:
        """Yield the rules for a request's user in its namespace, and what grants them."""
        for bindings, namespace in ((CLUSTER_ROLE_BINDINGS, ""), (ROLE_BINDINGS, _namespace(request))):
            for stored in self._cluster.collection(bindings).objects.values():
                if stored.namespace != namespace:
                    continue
                binding = read(bindings, stored)
                subject = _subject(binding, request, namespace)
                if subject is None:
                    continue
                role = binding["roleRef"]
                where = f"{stored.name}/{namespace}" if namespace else stored.name
                reason = f'{bindings.kind} "{where}" of {role["kind"]} "{role["name"]}" to {subject}'
                for rule in self.rules_of(role, namespace):
                    yield f"RBAC: allowed by {reason}", rule

    def rules_of(self, reference: Object, namespace: str) -> Iterator[Rule]:
        """Yield the rules of a role that a binding in a namespace refers to."""
        bound_role = self.role(reference, namespace)
        pending = [] if bound_role is None else [bound_role]
        seen = {*pending}
        for stored in pending:  # it grows by the roles that a role aggregates
            role = read(_ROLES[reference["kind"]], stored)
            yield from role.get("rules") or ()
            for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
                selected = LabelSelector.of(selector)
                for other in self._cluster.collection(CLUSTER_ROLES).objects.values():
                    if other not in seen and selected.matches(other.labels):
                        seen.add(other)
                        pending.append(other)


def _namespace(request: Request) -> str:
    """Return the namespace in which the rights must be; a request for a namespace is in it."""
    is_namespace = request.resource == "namespaces" and not request.group
    return request.name if is_namespace else request.namespace


def _subject(binding: Object, request: Request, namespace: str) -> str | None:
    """Return the subject of a binding that the user of a request is, or None."""
    for subject in binding.get("subjects") or ():
        kind, name = subject["kind"], subject["name"]
        if kind == "ServiceAccount":
            of = subject.get("namespace") or namespace
            if request.user == f"system:serviceaccount:{of}:{name}":
                return f'{kind} "{name}/{of}"'
        elif (kind == "User" and name == request.user) or (kind == "Group" and name in request.groups):
            return f'{kind} "{name}"'
    return None


def _forbidden_error(request: Request) -> errors.StatusError:
    if not request.resource:
        why = f'User "{request.user}" cannot {request.verb} path "{request.path}"'
        return errors.StatusError(403, "Forbidden", f"forbidden: {why}", details={})
    asked = Access.of(request).resource
    namespace = _namespace(request)
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    resource = ResourceType(request.group, request.version, request.resource, "")
    why = f'User "{request.user}" cannot {request.verb} resource "{asked}" in API group "{request.group}" {where}'
    return errors.forbidden(resource, request.name, why)
