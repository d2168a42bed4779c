"""Server-side apply of fields that have one owner for all that is in them."""

from __future__ import annotations

from typing import Any

from ..api import APPLY, STRATEGIC, Object
from ..clusters import pod
from ..definitions import definition
from ..recording import Recorder
from .common import CONFIGMAPS, DEPLOYMENTS, PODS
from .patching import deployment

_VOLUMES = "/api/v1/persistentvolumes"
_SERVICES = "/api/v1/namespaces/NS/services"


async def _apply(server: Recorder, path: str, obj: Object, manager: str, *, force: bool = False) -> None:
    name = path.rpartition("/")[2]
    obj = obj | {"metadata": {"name": name, **obj.get("metadata", {})}}
    query = {"fieldManager": manager} | ({"force": "true"} if force else {})
    await server.ask("PATCH", path, obj, query, content_type=APPLY)


async def owned_in_pods(server: Recorder) -> None:
    """Fields of a pod: another's value conflicts with the whole."""

    async def compare(name: str, first: Object, second: Object) -> None:
        kind: Object = {"apiVersion": "v1", "kind": "Pod"}
        whole = pod(name)["spec"] | first
        if "containers" in first:
            whole["containers"] = [pod(name)["spec"]["containers"][0] | first["containers"][0]]
        await _apply(server, f"{PODS}/{name}", kind | {"spec": whole}, "me")
        await _apply(server, f"{PODS}/{name}", kind | {"spec": second}, "you")

    def required(key: str) -> Object:
        terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]
        return {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }

    def spread(label: str) -> list[Object]:
        selector = {"matchLabels": {label: "a"}}
        how = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return [how | {"labelSelector": selector}]

    for name, first, second in (
        ("nodeSelector", {"a": "b"}, {"c": "d"}),
        ("affinity", required("a"), required("b")),
        ("topologySpreadConstraints", spread("a"), spread("b")),
    ):
        await compare(name.lower(), {name: first}, {name: second})
    for name, one, other in (
        ("configMapKeyRef", {"name": "a", "key": "k"}, {"name": "b"}),
        ("secretKeyRef", {"name": "a", "key": "k"}, {"name": "b"}),
        ("fieldRef", {"fieldPath": "metadata.name"}, {"fieldPath": "metadata.namespace"}),
        ("resourceFieldRef", {"resource": "limits.cpu"}, {"resource": "limits.memory"}),
    ):
        first, second = (
            {"containers": [{"name": "main", "env": [{"name": "A", "valueFrom": {name: value}}]}]}
            for value in (one, other)
        )
        await compare(name.lower(), first, second)
    volumes = [
        {"volumes": [{"name": "v", "csi": {"driver": "a", "nodePublishSecretRef": {"name": name}}}]}
        for name in ("a", "b")
    ]
    await compare("volumes", *volumes)
    for manager, address in (("me", "10.0.0.1"), ("you", "10.0.0.2")):
        seen = {"hostIP": address, "hostIPs": [{"ip": address}]}
        status = {"apiVersion": "v1", "kind": "Pod", "status": seen}
        await _apply(server, f"{PODS}/volumes/status", status | {"metadata": {"name": "volumes"}}, manager)


async def owned_wholes(server: Recorder) -> None:
    """Fields of other kinds: another's value conflicts with the whole, and replaces it by force."""

    def kind(api_version: str, kind: str, **content: Any) -> Object:
        return {"apiVersion": api_version, "kind": kind, **content}

    def event(**content: Any) -> Object:
        made = {"namespace": server.namespace, "name": "a", "kind": "Pod"}
        needed = {
            "regarding": made,
            "eventTime": "2020-01-01T00:00:00.000000Z",
            "reportingController": "example.com/a",
            "reportingInstance": "a",
            "action": "A",
            "reason": "A",
            "type": "Normal",
        }
        return kind("events.k8s.io/v1", "Event", **needed | content)

    def volume(**content: Any) -> Object:
        return kind("v1", "PersistentVolume", spec=content)

    def new(**content: Any) -> Object:
        return content | {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}

    ports = [{"name": "http", "port": 80}]
    for force in (False, True):
        for manager, selector in (("me", {"a": "b"}), ("you", {"c": "d"})):
            service = kind("v1", "Service", spec={"selector": selector, "ports": ports})
            await _apply(server, f"{_SERVICES}/web", service, manager, force=force)
    networking = "networking.k8s.io/v1"
    for path, first, second in (
        (
            f"/apis/{networking}/namespaces/NS/networkpolicies/web",
            *(
                kind(networking, "NetworkPolicy", spec={"podSelector": {"matchLabels": {label: "a"}}})
                for label in ("a", "b")
            ),
        ),
        (
            f"/apis/{networking}/namespaces/NS/ingresses/port",
            *(
                kind(
                    networking,
                    "Ingress",
                    spec={"defaultBackend": {"service": {"name": "a", "port": {"number": number}}}},
                )
                for number in (80, 81)
            ),
        ),
        (
            f"/apis/{networking}/namespaces/NS/ingresses/resource",
            *(
                kind(
                    networking, "Ingress", spec={"defaultBackend": {"resource": {"kind": "A", "name": name}}}
                )
                for name in ("a", "b")
            ),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings/web",
            *(
                kind(
                    "rbac.authorization.k8s.io/v1",
                    "RoleBinding",
                    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                )
                for name in ("a", "b")
            ),
        ),
        (
            "/api/v1/namespaces/NS/resourcequotas/web",
            *(
                kind(
                    "v1",
                    "ResourceQuota",
                    spec={
                        "scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": "Exists"}]}
                    },
                )
                for scope in ("Terminating", "NotTerminating")
            ),
        ),
        (
            "/api/v1/namespaces/NS/persistentvolumeclaims/web",
            *(
                kind(
                    "v1",
                    "PersistentVolumeClaim",
                    spec={
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        "dataSource": {"kind": "PersistentVolumeClaim", "name": name},
                    },
                )
                for name in ("a", "b")
            ),
        ),
        (
            "/api/v1/namespaces/NS/events/web",
            *(
                kind(
                    "v1", "Event", involvedObject={"kind": "Pod", "namespace": server.namespace, "name": name}
                )
                for name in ("a", "b")
            ),
        ),
        *(
            (
                f"/apis/events.k8s.io/v1/namespaces/NS/events/{name}",
                event(**{name: {"kind": "Pod", "namespace": server.namespace, "name": "a"}}),
                event(**{name: {"name": "b"}}),
            )
            for name in ("regarding", "related")
        ),
        (
            "/api/v1/nodes/NS-tainted",
            *(
                kind("v1", "Node", spec={"taints": [{"key": key, "effect": "NoSchedule"}]})
                for key in ("node.kubernetes.io/not-ready", "b")  # the first is added to any
            ),
        ),
        (
            f"{_VOLUMES}/NS-claim",  # whose parts have owners each
            volume(**new(hostPath={"path": "/a"}, claimRef={"namespace": "a", "name": "a"})),
            volume(claimRef={"name": "b"}),
        ),
        (
            f"{_VOLUMES}/NS-affinity",
            *(
                volume(
                    **new(hostPath={"path": "/a"}, nodeAffinity={"required": {"nodeSelectorTerms": terms}})
                )
                for terms in (
                    [{"matchExpressions": [{"key": key, "operator": "Exists"}]}] for key in ("a", "b")
                )
            ),
        ),
        (
            f"{_VOLUMES}/NS-flex",
            volume(**new(flexVolume={"driver": "a", "secretRef": {"name": "a", "namespace": "a"}})),
            volume(flexVolume={"secretRef": {"name": "b"}}),
        ),
        *(
            (
                f"{_VOLUMES}/NS-{name.lower()}",
                volume(
                    **new(csi={"driver": "a", "volumeHandle": "a", name: {"name": "a", "namespace": "a"}})
                ),
                volume(csi={name: {"name": "b"}}),
            )
            for name in (
                "controllerExpandSecretRef",
                "controllerPublishSecretRef",
                "nodeExpandSecretRef",
                "nodePublishSecretRef",
                "nodeStageSecretRef",
            )
        ),
    ):
        own = path.replace("NS-", f"{server.namespace}-")
        await _apply(server, own, first, "me")
        await _apply(server, own, second, "you")
    path = f"{DEPLOYMENTS}/web"
    made = deployment("web", 1)
    twice = made["spec"]["template"]["spec"]["containers"] * 2
    template = {"spec": {"template": {"spec": {"containers": twice}}}}
    await _apply(server, path, kind("apps/v1", "Deployment", **made), "me")
    other = {"spec": {"selector": {"matchLabels": {"other": "a"}}}}
    await _apply(server, path, kind("apps/v1", "Deployment", **other), "you")
    await _apply(server, path, kind("apps/v1", "Deployment", **template), "you")


async def owned_metadata(server: Recorder) -> None:
    """Owner references, of a built-in kind and of a custom resource, which has a schema for metadata too."""
    group = f"owned.{server.namespace}.example.com"
    await server.define(definition(group, "Relic"))
    mine, yours = ({"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid} for uid in ("u1", "u2"))
    for path, api_version, kind in (
        (f"{CONFIGMAPS}/owned", "v1", "ConfigMap"),
        (f"/apis/{group}/v1/namespaces/NS/relics/owned", f"{group}/v1", "Relic"),
    ):
        for manager, references in (
            ("me", [mine]),
            ("you", [yours]),
            ("you", [mine | {"controller": True}]),
            ("you", [mine, yours | {"controller": True}]),
            ("me", []),
            ("you", []),
        ):
            obj = {"apiVersion": api_version, "kind": kind, "metadata": {"ownerReferences": references}}
            await _apply(server, path, obj, manager)


async def replaced_lists(server: Recorder) -> None:
    """Strategic patches of lists that others of their name merge, and of items without a key."""
    for path, created, patch in (
        (
            "/apis/discovery.k8s.io/v1/namespaces/NS/endpointslices",
            {"addressType": "IPv4", "endpoints": [], "ports": [{"name": "a", "port": 80, "protocol": "TCP"}]},
            {"ports": [{"name": "b", "port": 81, "protocol": "TCP"}]},
        ),
        (
            "/api/v1/namespaces/NS/serviceaccounts",
            {"imagePullSecrets": [{"name": "a"}], "secrets": [{"name": "a"}]},
            {"imagePullSecrets": [{"name": "b"}], "secrets": [{"name": "b"}]},
        ),
        (
            DEPLOYMENTS,
            deployment("web", 1),
            {"spec": {"template": {"spec": {"containers": [{"image": "nokey"}]}}}},
        ),
    ):
        await server.ask("POST", path, {"metadata": {"name": "web"}} | created)
        await server.ask("PATCH", f"{path}/web", patch, content_type=STRATEGIC)
