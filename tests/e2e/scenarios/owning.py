"""Server-side apply of fields that have one owner for all that is in them."""

from __future__ import annotations

from collections.abc import Iterator

from ..api import APPLY, MERGE, STRATEGIC, Object
from ..clusters import pod_manifest
from ..definitions import definition
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, DEPLOYMENTS, PODS
from .patching import deployment

_SERVICES = "/api/v1/namespaces/NS/services"


async def _apply(
    server: AnswerRecorder, path: str, obj: Object, manager: str, *, force: bool = False
) -> None:
    name = path.rpartition("/")[2]
    obj = obj | {"metadata": {"name": name, **obj.get("metadata", {})}}
    query = {"fieldManager": manager} | ({"force": "true"} if force else {})
    await server.ask("PATCH", path, obj, query, content_type=APPLY)


async def owned_in_pods(server: AnswerRecorder) -> None:
    """Fields of a pod: another's value conflicts with the whole."""

    async def compare(name: str, first: Object, second: Object) -> None:
        kind: Object = {"apiVersion": "v1", "kind": "Pod"}
        whole = pod_manifest(name)["spec"] | first
        if "containers" in first:
            whole["containers"] = [pod_manifest(name)["spec"]["containers"][0] | first["containers"][0]]
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


async def owned_wholes(server: AnswerRecorder) -> None:
    """Fields of other kinds: another's value conflicts with the whole, and replaces it by force."""
    ports = [{"name": "http", "port": 80}]
    for force in (False, True):
        for manager, selector in (("me", {"a": "b"}), ("you", {"c": "d"})):
            service = {"apiVersion": "v1", "kind": "Service", "spec": {"selector": selector, "ports": ports}}
            await _apply(server, f"{_SERVICES}/web", service, manager, force=force)
    for path, kind, one, other in _wholes(server.namespace):
        own = path.replace("NS-", f"{server.namespace}-")
        await _apply(server, own, kind | one, "me")
        await _apply(server, own, kind | other, "you")
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    made = deployment("web", 1)
    await _apply(server, f"{DEPLOYMENTS}/web", kind | made, "me")
    twice = {"spec": {"containers": made["spec"]["template"]["spec"]["containers"] * 2}}
    for spec in ({"selector": {"matchLabels": {"other": "a"}}}, {"template": twice}):
        await _apply(server, f"{DEPLOYMENTS}/web", kind | {"spec": spec}, "you")


def _wholes(namespace: str) -> Iterator[tuple[str, Object, Object, Object]]:
    """Paths and kinds of objects, and two that differ within one field."""

    def specs(*fields: Object) -> tuple[Object, Object]:
        one, other = ({"spec": spec} for spec in fields)
        return one, other

    def terms(key: str) -> list[Object]:
        return [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]

    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    path = "/apis/networking.k8s.io/v1/namespaces/NS"
    policies = ({"podSelector": {"matchLabels": {label: "a"}}} for label in ("a", "b"))
    yield f"{path}/networkpolicies/web", kind, *specs(*policies)
    kind = kind | {"kind": "Ingress"}
    backends = ({"defaultBackend": {"service": {"name": "a", "port": {"number": port}}}} for port in (80, 81))
    yield f"{path}/ingresses/port", kind, *specs(*backends)
    backends = ({"defaultBackend": {"resource": {"kind": "A", "name": name}}} for name in ("a", "b"))
    yield f"{path}/ingresses/resource", kind, *specs(*backends)

    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings/web"
    yield path, kind, {"roleRef": role}, {"roleRef": role | {"name": "b"}}

    kind = {"apiVersion": "v1", "kind": "ResourceQuota"}
    scopes = (
        {"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": "Exists"}]}}
        for scope in ("Terminating", "NotTerminating")
    )
    yield "/api/v1/namespaces/NS/resourcequotas/web", kind, *specs(*scopes)

    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    needed: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    sources = (
        needed | {"dataSource": {"kind": "PersistentVolumeClaim", "name": name}} for name in ("a", "b")
    )
    yield "/api/v1/namespaces/NS/persistentvolumeclaims/web", kind, *specs(*sources)

    about = {"kind": "Pod", "namespace": namespace, "name": "a"}
    kind = {"apiVersion": "v1", "kind": "Event"}
    other = {"involvedObject": about | {"name": "b"}}
    yield "/api/v1/namespaces/NS/events/web", kind, {"involvedObject": about}, other
    kind = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "reportingController": "example.com/a",
        "reportingInstance": "a",
        "action": "A",
        "reason": "A",
        "type": "Normal",
    }
    for field in ("regarding", "related"):
        path = f"/apis/events.k8s.io/v1/namespaces/NS/events/{field}"
        yield path, kind | {"regarding": about}, {field: about}, {field: about | {"name": "b"}}

    kind = {"apiVersion": "v1", "kind": "Node"}
    keys = ("node.kubernetes.io/not-ready", "b")  # the first is added to any
    taints = ({"taints": [{"key": key, "effect": "NoSchedule"}]} for key in keys)
    yield "/api/v1/nodes/NS-tainted", kind, *specs(*taints)

    kind = {"apiVersion": "v1", "kind": "PersistentVolume"}
    path = "/api/v1/persistentvolumes/NS-"
    needed = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    anywhere = needed | {"hostPath": {"path": "/a"}}
    required = (
        anywhere | {"nodeAffinity": {"required": {"nodeSelectorTerms": terms(key)}}} for key in ("a", "b")
    )
    yield f"{path}affinity", kind, *specs(*required)
    claim = {"claimRef": {"namespace": "a", "name": "a"}}  # whose parts have owners each
    yield f"{path}claim", kind, *specs(anywhere | claim, {"claimRef": {"name": "b"}})
    secret, another = {"name": "a", "namespace": "a"}, {"name": "b"}
    flex = needed | {"flexVolume": {"driver": "a", "secretRef": secret}}
    yield f"{path}flex", kind, *specs(flex, {"flexVolume": {"secretRef": another}})
    for field in (
        "controllerExpandSecretRef",
        "controllerPublishSecretRef",
        "nodeExpandSecretRef",
        "nodePublishSecretRef",
        "nodeStageSecretRef",
    ):
        driver = needed | {"csi": {"driver": "a", "volumeHandle": "a", field: secret}}
        yield f"{path}{field.lower()}", kind, *specs(driver, {"csi": {field: another}})


async def owned_metadata(server: AnswerRecorder) -> None:
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


async def owned_empties(server: AnswerRecorder) -> None:
    """An empty applied field has an owner, although it is not stored."""
    cases: tuple[tuple[str, Object, Object], ...] = (
        ("labels", {"metadata": {"labels": {}}}, {"metadata": {"labels": {"x": "y"}}}),
        ("null", {"metadata": {"annotations": None}}, {"metadata": {"annotations": {"x": "y"}}}),
        ("list", {"metadata": {"finalizers": []}}, {"metadata": {"finalizers": ["example.com/a"]}}),
        ("data", {"data": {}}, {"data": {"x": "y"}}),
    )
    for name, empty, filled in cases:
        for content, manager, force in (
            (empty, "me", False),
            (empty, "me", False),
            (filled, "you", False),
            (empty, "you", False),
            ({}, "you", False),
            (filled, "another", False),
            (filled, "another", True),
            (empty, "me", False),
            (filled, "you", False),
            ({}, "another", False),
            ({}, "you", False),
            ({}, "me", False),
        ):
            obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", **content}
            await _apply(server, f"{CONFIGMAPS}/{name}", obj, manager, force=force)


async def owned_status(server: AnswerRecorder) -> None:
    """Metadata in an apply of a status: ignored parts get no owner."""
    group = f"status.{server.namespace}.example.com"
    await server.define(definition(group, "Relic"))
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    daemons = "/apis/apps/v1/namespaces/NS/daemonsets"
    spec = {name: value for name, value in deployment("web", 1)["spec"].items() if name != "replicas"}
    annotations = {"deprecated.daemonset.template.generation": "1"}  # the real server's
    made = {"metadata": {"name": "web", "annotations": annotations}, "spec": spec}
    await server.ask("POST", daemons, made)
    counted: Object = {"apiVersion": "apps/v1", "kind": "DaemonSet", "status": {"numberReady": 1}}
    await _apply(server, f"{daemons}/web/status", counted | {"metadata": {"name": "web"}}, "you")
    for path, api_version, kind, content in (
        (relics, f"{group}/v1", "Relic", {"spec": {"depth": 1}}),
        (DEPLOYMENTS, "apps/v1", "Deployment", deployment("web", 1)),
        (PODS, "v1", "Pod", pod_manifest("web")),
    ):
        obj: Object = {"apiVersion": api_version, "kind": kind}
        own, labels = f"{path}/web", {"labels": {"x": "1"}}
        await _apply(server, own, obj | {"spec": content["spec"], "metadata": labels}, "me")
        for metadata in (
            {"labels": {"x": "2"}},
            {"labels": {"x": "1", "z": "1"}},
            {"annotations": {"y": "1"}},
            {"finalizers": ["example.com/a"]},
            {"resourceVersion": "1"},
            {},
        ):
            status = {"status": {"observedGeneration": 1}, "metadata": metadata}
            await _apply(
                server, f"{path}/web/status", obj | status | {"metadata": {"name": "web", **metadata}}, "you"
            )
        for manager in ("another", "me"):
            metadata = {"labels": {"x": "1", "z": "2"}, "annotations": {"y": "2"}}
            await _apply(server, own, obj | {"spec": content["spec"], "metadata": metadata}, manager)


async def replaced_lists(server: AnswerRecorder) -> None:
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


async def reset_owners(server: AnswerRecorder) -> None:
    """`managedFields: [{}]` removes the owners; the next apply meets fields of `before-first-apply`."""
    path = f"{CONFIGMAPS}/reset"
    reset: Object = {"metadata": {"managedFields": [{}]}}
    for value in ("1", "2", "1"):
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "reset"}, "data": {"k": value}}
        await _apply(server, path, obj, "me")
        for change in (reset, reset, {"data": {"j": value}}, reset | {"data": {"i": value}}):
            await server.ask("PATCH", path, change, content_type=MERGE)
