"""Who asks: tokens of service accounts, impersonation, and the reviews that tell."""

from __future__ import annotations

from ..api import Object
from ..recording import AnswerRecorder

_ACCOUNTS = "/api/v1/namespaces/NS/serviceaccounts"
_IDENTITY = "/apis/authentication.k8s.io/v1"
_ACCESS = "/apis/authorization.k8s.io/v1"


async def tokens(server: AnswerRecorder) -> None:
    """Tokens that a TokenRequest issues, and what authenticates with them."""
    token = f"{_ACCOUNTS}/robot/token"
    await server.ask("POST", token, {})
    await server.ask("POST", _ACCOUNTS, {"metadata": {"name": "robot"}})
    spec: Object = {"containers": [{"name": "main", "image": "example.com/main"}]}
    for name, account in (("owned", {"serviceAccountName": "robot"}), ("other", {})):
        await server.ask(
            "POST", "/api/v1/namespaces/NS/pods", {"metadata": {"name": name}, "spec": spec | account}
        )
    await server.ask("POST", "/api/v1/namespaces/NS/secrets", {"metadata": {"name": "kept"}})
    for odd in (
        {"spec": {"expirationSeconds": 60}},
        {"spec": {"expirationSeconds": 1 << 33}},
        {"spec": {"expirationSeconds": "60"}},
        {"metadata": {"name": "other"}},
        {"metadata": {"namespace": "other"}},
        {"kind": "Pod", "apiVersion": "v1"},
        *({"spec": {"boundObjectRef": reference}} for reference in _REFERENCES),
    ):
        await server.ask("POST", token, odd)
    await server.ask("GET", token)
    review = f"{_IDENTITY}/tokenreviews"
    for wanted in (
        {},
        {"audiences": ["a", "b"]},
        *({"boundObjectRef": reference} for reference in _REFERENCES[:2]),
    ):
        answer = await server.ask("POST", token, {"spec": wanted})
        given = answer.body["status"]["token"]
        who = {"Authorization": f"Bearer {given}"}
        await server.ask("POST", f"{_IDENTITY}/selfsubjectreviews", {}, headers=who)
        for audiences in ([], ["a"], ["https://kubernetes.default.svc"]):
            await server.ask("POST", review, {"spec": {"token": given, "audiences": audiences}})
    unused = await server.ask(
        "POST", token, {}
    )  # the real server remembers for ten seconds those that it has seen
    await server.ask("DELETE", f"{_ACCOUNTS}/robot")
    await server.until_refused(unused.body["status"]["token"])
    await server.ask("POST", review, {"spec": {"token": unused.body["status"]["token"]}})
    for odd_review in ({}, {"spec": {"token": "a.b.c"}}):
        await server.ask("POST", review, odd_review)


_REFERENCES: tuple[Object, ...] = (
    {"kind": "Pod", "apiVersion": "v1", "name": "owned"},
    {"kind": "Secret", "name": "kept"},
    {"kind": "Pod", "apiVersion": "v1", "name": "other"},
    {"kind": "Pod", "apiVersion": "v1", "name": "missing"},
    {"kind": "Pod", "apiVersion": "v1", "name": "owned", "uid": "7"},
    {"kind": "Node", "apiVersion": "v1", "name": "missing"},
    {"kind": "Secret", "apiVersion": "v1"},
    {"kind": "ConfigMap", "apiVersion": "v1", "name": "kept"},
)


async def impersonation(server: AnswerRecorder) -> None:
    """Requests that act as another user."""
    account = "system:serviceaccount:default:robot"
    for headers in (
        {"Impersonate-User": "ada"},
        {"Impersonate-User": "ada", "Impersonate-Group": "devs", "Impersonate-Uid": "7"},
        {
            "Impersonate-User": "ada",
            "Impersonate-Extra-Scopes": "read",
            "Impersonate-Extra-a.example%2fb": "c",
        },
        {"Impersonate-User": account},
        {"Impersonate-User": account, "Impersonate-Group": "devs"},
        {"Impersonate-User": "system:serviceaccount:default"},
        {"Impersonate-User": "system:node:a"},
        {"Impersonate-Group": "devs"},
        {"Impersonate-Uid": "7"},
        {"Impersonate-Extra-Scopes": "read"},
    ):
        await server.ask("POST", f"{_IDENTITY}/selfsubjectreviews", {}, headers=headers)
    masters = {"Impersonate-User": "ada", "Impersonate-Group": "system:masters"}
    pods = {"verb": "list", "resource": "pods", "namespace": "default"}
    await server.ask(
        "POST", f"{_ACCESS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": pods}}, headers=masters
    )
    await server.ask("GET", "/api/v1/namespaces/NS/configmaps", headers=masters)
