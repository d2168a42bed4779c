"""The kinds whose objects are edited: a custom resource, and built-in kinds with values that the server accepts."""

from __future__ import annotations

from typing import Any, NamedTuple

from .nodes import Anything, ListOf, MapOf, Node, Object, Scalar, SetOf

STR, INT = Scalar(str), Scalar(int, template=1)
LABELS = MapOf(Scalar(str), "example.com/k{}")
METADATA = Object({"labels": LABELS, "annotations": LABELS})


class EditedKind(NamedTuple):
    """A kind.

    Attributes:
        api_version: Such as ``"apps/v1"``.
        kind: Such as ``"Deployment"``.
        plural: Such as ``"deployments"``.
        spec: What objects have beside metadata, a ``status`` among it.
        map_of: Whether classes say the keys of lists, which the library knows for built-in kinds.
    """

    api_version: str
    kind: str
    plural: str
    node: Object
    map_of: bool = False

    @property
    def parts(self) -> list[str]:
        """The fields to edit: ``spec`` and ``metadata``, or of a Role its rules."""
        return [name for name in self.node.fields if name != "status"]


_PATHS = ListOf(
    Object(
        {
            "path": Scalar(str, template="/p{}"),
            "weight": Scalar(int, template=0),
            "backend": Object({"service": STR, "port": INT, "secure": Scalar(bool, (True, False))}),
        }
    )
)
_RULES = ListOf(
    Object(
        {
            "host": STR,
            "port": Scalar(int, (80, 443, 8080)),
            "secure": Scalar(bool, (True, False), default=False),
            "ratio": Scalar(float, template=0.0),
            "note": STR,
            "paths": _PATHS,
            "tags": ListOf(STR),
        }
    )
)
_PORTS = ListOf(
    Object(
        {
            "number": INT,
            "protocol": Scalar(str, ("TCP", "UDP")),
            "label": Scalar(str, template="l{}", default="none"),
            "extra": Object({"a": INT, "b": Anything()}),
            "rules": _RULES,
        },
        required=("number", "protocol"),
    ),
    keys=("number", "protocol"),
)
_NAMED = ListOf(
    Object({"name": STR, "value": INT, "source": Object({"secret": STR, "key": STR})}, required=("name",)),
    keys=("name",),
)

EVERYTHING = EditedKind(
    "edits.example.com/v1",
    "Everything",
    "everythings",
    Object(
        {
            "metadata": METADATA,
            "spec": Object(
                {
                    "name": STR,
                    "size": Scalar(int, template=0, default=7),
                    "ratio": Scalar(float, template=0.0),
                    "on": Scalar(bool, (True, False)),
                    "any": Anything(),
                    "labels": MapOf(STR),
                    "rules": _RULES,
                    "ports": _PORTS,
                    "named": _NAMED,
                    "hosts": SetOf(STR),
                    "numbers": SetOf(INT),
                    "words": ListOf(STR),
                    "groups": MapOf(_NAMED),
                    "inner": Object({"a": STR, "deep": Object({"c": INT, "named": _NAMED, "rules": _RULES})}),
                    "whole": MapOf(Anything()),
                },
            ),
            "status": Object(
                {
                    "phase": STR,
                    "count": INT,
                    "seen": SetOf(STR),
                    "conditions": ListOf(
                        Object(
                            {"type": STR, "status": Scalar(str, ("True", "False")), "reason": STR}, ("type",)
                        ),
                        keys=("type",),
                        is_conventional=True,
                    ),
                    "nodes": _NAMED,
                }
            ),
        },
        required=("metadata", "spec"),
    ),
    map_of=True,
)


def definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of ``EVERYTHING``."""
    properties = {name: EVERYTHING.node.fields[name].schema() for name in ("spec", "status")}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    names = {"plural": "everythings", "singular": "everything", "kind": "Everything"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "everythings.edits.example.com"},
        "spec": {"group": "edits.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _kind(api_version: str, kind: str, plural: str, spec: Node) -> EditedKind:
    node = Object({"metadata": METADATA, "spec": spec}, required=("metadata", "spec"))
    return EditedKind(api_version, kind, plural, node)


_BACKEND = Object(
    {
        "service": Object(
            {
                "name": Scalar(str, template="s{}"),
                "port": Object({"number": INT}, ("number",), is_atomic=True),
            },
            ("name", "port"),
        )
    },
    required=("service",),
)
INGRESS = _kind(
    "networking.k8s.io/v1",
    "Ingress",
    "ingresses",
    Object(
        {
            "ingressClassName": Scalar(str, template="c{}"),
            "defaultBackend": _BACKEND,
            "rules": ListOf(
                Object(
                    {
                        "host": Scalar(str, template="h{}.example"),
                        "http": Object(
                            {
                                "paths": ListOf(
                                    Object(
                                        {
                                            "path": Scalar(str, template="/p{}"),
                                            "pathType": Scalar(str, ("Prefix", "Exact")),
                                            "backend": _BACKEND,
                                        },
                                        required=("path", "pathType", "backend"),
                                    ),
                                    least=1,
                                )
                            },
                            required=("paths",),
                        ),
                    }
                )
            ),
            "tls": ListOf(
                Object(
                    {
                        "hosts": ListOf(Scalar(str, template="h{}.example")),
                        "secretName": Scalar(str, template="t{}"),
                    }
                )
            ),
        },
        required=("defaultBackend",),
    ),
)

_NETWORK_PORTS = ListOf(
    Object(
        {"port": Scalar(int, template=1), "protocol": Scalar(str, ("TCP", "UDP"))},
        required=("port", "protocol"),
    )
)
_PEERS = ListOf(
    Object(
        {
            "ipBlock": Object({"cidr": Scalar(str, ("10.1.0.0/16", "10.2.0.0/16", "0.0.0.0/0"))}, ("cidr",)),
        },
        required=("ipBlock",),
    )
)
NETWORK_POLICY = _kind(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    "networkpolicies",
    Object(
        {
            "podSelector": Object({"matchLabels": LABELS}, is_atomic=True),
            "policyTypes": ListOf(Scalar(str, ("Ingress", "Egress")), least=1, most=1),
            "ingress": ListOf(Object({"ports": _NETWORK_PORTS, "from": _PEERS})),
            "egress": ListOf(Object({"ports": _NETWORK_PORTS, "to": _PEERS})),
        },
        required=("podSelector", "policyTypes"),
    ),
)

ROLE = EditedKind(
    "rbac.authorization.k8s.io/v1",
    "Role",
    "roles",
    Object(
        {
            "metadata": METADATA,
            "rules": ListOf(
                Object(
                    {
                        "apiGroups": ListOf(Scalar(str, ("", "apps", "batch")), least=1, most=2),
                        "resources": ListOf(Scalar(str, template="things{}"), least=1, most=2),
                        "verbs": ListOf(Scalar(str, ("get", "list", "watch", "create")), least=1, most=3),
                        "resourceNames": ListOf(Scalar(str, template="n{}"), least=1, most=2),
                    },
                    required=("apiGroups", "resources", "verbs"),
                )
            ),
        },
        required=("metadata", "rules"),
    ),
)

SERVICE = _kind(
    "v1",
    "Service",
    "services",
    Object(
        {
            "selector": LABELS,
            "sessionAffinity": Scalar(str, ("None", "ClientIP")),
            "ports": ListOf(
                Object(
                    {
                        "name": Scalar(str, template="p{}"),
                        "port": INT,
                        "protocol": Scalar(str, ("TCP", "UDP"), default="TCP"),
                        "targetPort": INT,
                    },
                    required=("name", "port", "protocol"),
                ),
                keys=("port", "protocol"),
                least=1,
            ),
        },
        required=("ports",),
    ),
)

_SELECTED = {"app": "a"}
_CONTAINERS = ListOf(
    Object(
        {
            "name": Scalar(str, template="c{}"),
            "image": Scalar(str, template="image:{}"),
            "args": ListOf(STR),
            "imagePullPolicy": Scalar(str, ("Always", "Never", "IfNotPresent")),
            "ports": ListOf(
                Object(
                    {
                        "containerPort": INT,
                        "protocol": Scalar(str, ("TCP", "UDP")),
                        "name": Scalar(str, template="p{}"),
                    },
                    required=("containerPort", "protocol"),
                ),
                keys=("containerPort", "protocol"),
            ),
            "env": ListOf(
                Object({"name": Scalar(str, template="VAR_{}"), "value": STR}, required=("name",)),
                keys=("name",),
            ),
        },
        required=("name", "image"),
    ),
    keys=("name",),
    least=1,
)
DEPLOYMENT = _kind(
    "apps/v1",
    "Deployment",
    "deployments",
    Object(
        {
            "replicas": Scalar(int, (0, 1, 2, 3)),
            "paused": Scalar(bool, (True, False)),
            "template": Object(
                {
                    "spec": Object(
                        {
                            "containers": _CONTAINERS,
                            "tolerations": ListOf(
                                Object(
                                    {
                                        "key": Scalar(str, template="t{}"),
                                        "effect": Scalar(str, ("NoSchedule", "NoExecute")),
                                        "value": STR,
                                    },
                                    required=("key",),
                                )
                            ),
                            "hostAliases": ListOf(
                                Object(
                                    {
                                        "ip": Scalar(
                                            str, tuple(f"10.0.0.{number}" for number in range(1, 200))
                                        ),
                                        "hostnames": ListOf(Scalar(str, template="h{}.example"), least=1),
                                    },
                                    required=("ip",),
                                ),
                                keys=("ip",),
                            ),
                            "nodeSelector": LABELS,
                        },
                        required=("containers",),
                    ),
                },
                required=("spec",),
                always={"metadata": {"labels": _SELECTED}},
            ),
        },
        required=("template",),
        always={"selector": {"matchLabels": _SELECTED}},
    ),
)

BUILT_IN = [INGRESS, NETWORK_POLICY, ROLE, SERVICE, DEPLOYMENT]
