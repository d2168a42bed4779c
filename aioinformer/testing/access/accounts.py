"""Tokens of service accounts: the TokenRequest that issues one, and the user that it authenticates."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.jwt import SigningKey
from aioinformer.testing.errors import StatusError, TestingError, bad_request, field_invalid, invalid
from aioinformer.testing.objects import Object, timestamp
from aioinformer.testing.schema.gotext import group_version, quote
from aioinformer.testing.storage.builtin import NODES, PODS, SECRETS, SERVICE_ACCOUNTS
from aioinformer.testing.storage.codec import load
from aioinformer.testing.users import User, user_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType

ISSUER = "https://kubernetes.default.svc"
"""The issuer of the tokens, and the audience of those that are for the API server."""

_GROUP = "authentication.k8s.io"
_SHORTEST, _LONGEST = 600, 1 << 32
_BOUND = {"pod": PODS, "node": NODES, "secret": SECRETS}
_EXTRA = "authentication.kubernetes.io"


class TokenError(TestingError):
    """A token is refused; the message is that of a TokenReview."""


class Accounts:
    """Issues and verifies the tokens of service accounts.

    Args:
        cluster: The service accounts and what tokens are bound to.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._key = SigningKey()

    @property
    def keys(self) -> Object:
        """The keys that verify the tokens, as a JSON web key set."""
        return {"keys": [self._key.public]}

    def issue(self, namespace: str, name: str, request: Object) -> Object:
        """Return a TokenRequest with its token.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        metadata, spec = request["metadata"], request["spec"]
        if (other := metadata.get("name")) not in (None, "", name):
            why = "must match the service account name if specified"
            raise invalid("TokenRequest", _GROUP, name, [field_invalid("metadata.name", other, why)])
        account = self._cluster.get(SERVICE_ACCOUNTS, namespace, name)
        seconds, audiences = spec["expirationSeconds"], spec.get("audiences") or [ISSUER]
        _check_duration(seconds)
        bound = self._claims_of_bound(namespace, name, spec.get("boundObjectRef"))
        now = int(self._cluster.time())
        token = self._key.sign(
            {
                "aud": audiences,
                "exp": now + seconds,
                "iat": now,
                "iss": ISSUER,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": {
                    "namespace": namespace,
                    "serviceaccount": {"name": name, "uid": account.uid},
                    **bound,
                },
                "nbf": now,
                "sub": f"system:serviceaccount:{namespace}:{name}",
            }
        )
        given = {
            "name": name,
            "namespace": namespace,
            "uid": account.uid,
            "creationTimestamp": timestamp(now),
        }
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {**given, **metadata},
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": timestamp(now + seconds)},
        }

    def user(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, list[str]]:
        """Return the user of a token, and those of the audiences that the token is for.

        Args:
            token: The token.
            audiences: The audiences that may use it; the API server's own if empty.

        Raises:
            TokenError: It is no token of this server, or it has expired, is for other audiences, or bound to an object
                that is gone.
        """
        claims = self._key.claims(token) if token.count(".") == 2 else None
        if claims is None:
            raise TokenError("invalid bearer token")
        wanted = audiences or [ISSUER]
        shared = [audience for audience in claims["aud"] if audience in wanted]
        if not shared:
            ours, theirs = quote(wanted), quote(claims["aud"])
            raise _token_error(f"token audiences {theirs} is invalid for the target audiences {ours}")
        if claims["exp"] <= self._cluster.time():
            raise _token_error("service account token has expired")
        own = claims["kubernetes.io"]
        self._check_account(own["namespace"], own["serviceaccount"])
        extra = {f"{_EXTRA}/credential-id": (f"JTI={claims['jti']}",)}
        for kind, resource in _BOUND.items():
            if kind not in own:
                continue
            if kind != "node" or "pod" not in own:  # the node of a pod only informs
                self._check_bound(resource, own["namespace"], own[kind])
            if kind != "secret":
                extra |= {f"{_EXTRA}/{kind}-{part}": (value,) for part, value in own[kind].items()}
        return user_of(claims["sub"], uid=own["serviceaccount"]["uid"], extra=extra), shared

    def _check_account(self, namespace: str, claim: dict[str, str]) -> None:
        stored = self._cluster.find(SERVICE_ACCOUNTS, namespace, claim["name"])
        if stored is None:
            raise _token_error(f'serviceaccounts "{claim["name"]}" not found')
        if stored.uid != claim["uid"]:
            raise _token_error(f"service account UID ({stored.uid}) does not match claim ({claim['uid']})")

    def _check_bound(self, resource: ResourceType, namespace: str, claim: dict[str, str]) -> None:
        stored = self._cluster.find(resource, namespace if resource.namespaced else "", claim["name"])
        if stored is None:
            raise _token_error("service account token has been invalidated")
        if stored.uid != claim["uid"]:
            kind = resource.kind.lower()
            raise _token_error(
                f"{kind} UID ({stored.uid}) does not match service account {kind} ref claim ({claim['uid']})"
            )

    def _claims_of_bound(self, namespace: str, account: str, reference: Any) -> dict[str, dict[str, str]]:
        """Return the claims about the object that a token is bound to."""
        if not reference:
            return {}
        kind, api_version = reference.get("kind") or "", reference.get("apiVersion") or ""
        resource = _BOUND.get(kind.lower())
        if resource is None or resource.kind != kind or "/" in api_version:
            given = f"{group_version(api_version)}, Kind={kind}"
            raise bad_request(f"cannot bind token to object of type {given}")
        if not (name := reference.get("name")):
            raise bad_request("Name parameter required.")
        stored = self._cluster.get(resource, namespace if resource.namespaced else "", name)
        claims = {kind.lower(): {"name": name, "uid": stored.uid}}
        if resource is PODS:
            spec = load(PODS, stored).get("spec") or {}
            if spec.get("serviceAccountName") != account:
                raise bad_request(
                    f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount '
                    "name."
                )
            if node := spec.get("nodeName"):
                at = self._cluster.find(NODES, "", node)
                claims["node"] = {"name": node, **({} if at is None else {"uid": at.uid})}
        if (uid := reference.get("uid")) and uid != stored.uid:
            raise _replaced_error(kind, name, uid)
        return claims


def _check_duration(seconds: int) -> None:
    why = ""
    if seconds < _SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        raise invalid("TokenRequest", _GROUP, "", [field_invalid("spec.expirationSeconds", seconds, why)])


def _replaced_error(kind: str, name: str, uid: str) -> StatusError:
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference ({uid}) does not '
        "match the UID in record. The object might have been deleted and then recreated",
        details={"name": name, "kind": kind},
    )


def _token_error(why: str) -> TokenError:
    return TokenError(f"[invalid bearer token, {why}]")
