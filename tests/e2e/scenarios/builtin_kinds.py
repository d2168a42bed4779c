"""Built-in kinds, valid and invalid: defaults, types, required and immutable fields, unknown fields."""

from __future__ import annotations

from typing import Any

from ..api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, DEPLOYMENTS, JOBS, PODS

_APPS, _CORE = "/apis/apps/v1/namespaces/NS", "/api/v1/namespaces/NS"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/NS"
_SERVICES, _CRON_JOBS = f"{_CORE}/services", "/apis/batch/v1/namespaces/NS/cronjobs"
_CONTAINER: Object = {"name": "main", "image": "example.com/main"}
_TEMPLATE: Object = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [_CONTAINER]}}
_ONCE: Object = {"spec": {"containers": [_CONTAINER], "restartPolicy": "Never"}}
_SELECTED: Object = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}

_NO_LABELS = ("a" * 64, "a.b", "a.B", "-" * 70)


def _pod(**fields: Any) -> Object:
    return {"spec": {"containers": [_CONTAINER | fields]}}


async def builtin_defaults(server: AnswerRecorder) -> None:
    """What the server fills in."""
    port = {"ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}}
    limits = {"resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}
    volumes = [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "x"}},
        {"name": "c", "hostPath": {"path": "/"}},
    ]
    for name, path, content in (
        ("plain", PODS, _pod()),
        ("ports", PODS, _pod(**port)),
        ("limits", PODS, _pod(**limits)),
        ("tagged", PODS, _pod(image="example.com:5000/main:1")),
        ("volumes", PODS, {"spec": {"containers": [_CONTAINER], "volumes": volumes}}),
        ("plain", DEPLOYMENTS, {"spec": _SELECTED}),
        ("recreated", DEPLOYMENTS, {"spec": _SELECTED | {"strategy": {"type": "Recreate"}}}),
        ("plain", f"{_APPS}/daemonsets", {"spec": _SELECTED}),
        ("plain", f"{_APPS}/statefulsets", {"spec": _SELECTED}),
        ("plain", JOBS, {"spec": {"template": _ONCE}}),
        ("parallel", JOBS, {"spec": {"template": _ONCE, "parallelism": 3}}),
        ("plain", _CRON_JOBS, {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": _ONCE}}}}),
        ("headless", _SERVICES, {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        ("sticky", _SERVICES, {"spec": {"clusterIP": "None", "sessionAffinity": "ClientIP"}}),
        ("named", _SERVICES, {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
        ("plain", "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies", {"spec": {"egress": [{}]}}),
    ):
        await server.ask("POST", path, {"metadata": {"name": name}} | content)
        await server.ask("GET", f"{path}/{name}")


async def builtin_mistakes(server: AnswerRecorder) -> None:
    """Wrong types, missing, unsupported and contradicting values."""
    pods: tuple[Any, ...] = (
        *({}, {"spec": {}}, {"spec": "x"}, {"spec": {"containers": "x"}}, {"spec": {"containers": [{}]}}),
        *(_pod(name="Bad_Name"), _pod(name=5), _pod(image=""), _pod(imagePullPolicy="x"), _pod(tty="x")),
        *(_pod(ports=[{"containerPort": port}]) for port in (0, 70000, "80", 80.5)),
        *(_pod(ports=[{"name": name, "containerPort": 80}]) for name in ("Bad_Name", "a" * 16)),
        *(_pod(resources={"limits": {"cpu": cpu}}) for cpu in ("x", "1kk", True)),
        *(_pod(volumeMounts=[{"name": "a", "mountPath": "/a"}]), _pod(env=[{"name": ""}]), _pod(env={})),
        {"spec": {"containers": [_CONTAINER, _CONTAINER]}},
        {"spec": {"containers": [_CONTAINER], "restartPolicy": "x"}},
        *(_pod(name=name) for name in _NO_LABELS),
        *({"spec": {"containers": [_CONTAINER], "volumes": [{"name": name}]}} for name in _NO_LABELS),
        {"spec": {"containers": [_CONTAINER | {"name": "a.b"}] * 2}},
    )
    for pod in pods:
        await server.ask("POST", PODS, {"metadata": {"name": "mistaken"}} | pod)
    for spec in (
        {},
        _SELECTED | {"selector": {}},
        _SELECTED | {"selector": {"matchLabels": {"app": "b"}}},
        *(
            _SELECTED | {"selector": {"matchExpressions": [{"key": "app"} | expression]}}
            for expression in (
                *({"operator": "Gt", "values": ["1"]}, {"operator": "in", "values": ["a"]}),
                *({"operator": "In"}, {"operator": "NotIn", "values": []}),
                *({"operator": "Exists", "values": ["a"]}, {"operator": "DoesNotExist", "values": ["a"]}),
            )
        ),
        _SELECTED | {"replicas": -1},
        _SELECTED | {"replicas": "1"},
        _SELECTED | {"template": _ONCE | {"metadata": _TEMPLATE["metadata"]}},
    ):
        await server.ask("POST", DEPLOYMENTS, {"metadata": {"name": "mistaken"}, "spec": spec})
    for schedule in ("x", "60 * * * *", "*/0 * * * *", "* * * FOO *", "TZ=UTC * * * * *", ""):
        spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": _ONCE}}}
        await server.ask("POST", _CRON_JOBS, {"metadata": {"name": "mistaken"}, "spec": spec})
    await server.ask("POST", JOBS, {"metadata": {"name": "mistaken"}, "spec": {"template": _TEMPLATE}})
    for ports in ([], [{"port": 0}], [{"port": 80}, {"port": 81}], [{"port": 80, "targetPort": "Bad_"}]):
        await server.ask("POST", _SERVICES, {"metadata": {"name": "mistaken"}, "spec": {"ports": ports}})
    for name in _NO_LABELS:
        ports = [{"name": name, "port": 80}]
        await server.ask("POST", _SERVICES, {"metadata": {"name": "mistaken"}, "spec": {"ports": ports}})
        for path in (_SERVICES, f"{_APPS}/statefulsets", PODS):
            await server.ask("POST", path, {"metadata": {"name": name}})
    await server.ask("POST", CONFIGMAPS, {"metadata": {"name": "mistaken"}, "data": {"a b": "c"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    path, subjects = f"{_RBAC}/rolebindings", [{"kind": "ServiceAccount", "name": "a"}]
    await server.ask("POST", path, {"metadata": {"name": "a"}, "roleRef": role, "subjects": subjects})


async def template_mistakes(server: AnswerRecorder) -> None:
    """Mistakes in a Deployment's pods, by the type of the value."""
    mounts = [{"name": "a", "mountPath": "/a"}]
    containers: tuple[Object, ...] = (
        {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {"env": [{"name": "A", "valueFrom": {}}]},
        {"envFrom": [{"configMapRef": {"name": ""}}]},
        {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}},
        {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": 1, "memory": "1Gi"}}},
        {"livenessProbe": {}},
        {"livenessProbe": {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}},
        {"livenessProbe": {"httpGet": {"port": 0}}},
        {"lifecycle": {"preStop": {}}},
        {"volumeMounts": mounts * 2},
        {"volumeMounts": mounts},
    )
    volumes: tuple[Object, ...] = ({"configMap": {}}, {"secret": {}}, {"secret": {"secretName": "a"}})
    for pod in (
        *({"containers": [_CONTAINER | container], "volumes": [{"name": "a"}]} for container in containers),
        *({"containers": [_CONTAINER], "volumes": [{"name": "a"} | volume]} for volume in volumes),
    ):
        await _dry(server, DEPLOYMENTS, _SELECTED | {"template": _TEMPLATE | {"spec": pod}})


async def service_mistakes(server: AnswerRecorder) -> None:
    """Addresses and ports that a Service cannot have."""
    specs: tuple[Object, ...] = (
        *({"clusterIP": address} for address in ("999", "10.96.0.300", "None")),
        {"clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.6"]},
        {"clusterIPs": ["10.0.0.6"]},
        *({"clusterIP": "None", "type": service_type} for service_type in ("NodePort", "LoadBalancer")),
        {"type": "ExternalName", "externalName": "a.example.com", "clusterIP": "10.0.0.5"},
        {"ports": [{"port": 80, "nodePort": 30080}]},
        {"externalTrafficPolicy": "Local", "externalIPs": ["1.2.3.4"]},
    )
    for spec in specs:
        await _dry(server, _SERVICES, {"ports": [{"port": 80}]} | spec)


async def service_types(server: AnswerRecorder) -> None:
    """A Service that changes its type loses what only the old type has."""
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    balancer = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    await server.ask("POST", _SERVICES, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    changes: tuple[Object, ...] = (
        *(
            {"spec": {"type": service_type}}
            for service_type in ("NodePort", "ClusterIP", "LoadBalancer", "ClusterIP")
        ),
        {"spec": {"type": "ExternalName", "externalName": "a.example.com"}},
        {"spec": {"type": "ClusterIP", "externalName": None}},
        {"spec": local},
        balancer,
        {"spec": {"type": "NodePort"}},
        balancer,
        {"spec": {"type": "ClusterIP"}},
        {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30081}]}},
    )
    for change in changes:
        path = f"{_SERVICES}/a" + ("/status" if "status" in change else "")
        await server.ask("PATCH", path, change, content_type=MERGE)
    await server.ask("PUT", f"{_SERVICES}/a", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}]}})
    await server.ask("DELETE", f"{_SERVICES}/a")


async def _dry(server: AnswerRecorder, path: str, spec: Object) -> None:
    await server.ask("POST", path, {"metadata": {"name": "mistaken"}, "spec": spec}, {"dryRun": "All"})


async def builtin_immutables(server: AnswerRecorder) -> None:
    """Fields that no update may change."""
    other = {"matchLabels": {"app": None, "tier": "b"}}
    moved = {"selector": other, "template": {"metadata": {"labels": {"tier": "b"}}}}
    for path, content, changes in (
        (DEPLOYMENTS, {"spec": _SELECTED}, ({"spec": moved}, {"spec": {"replicas": 2}})),
        (f"{_APPS}/statefulsets", {"spec": _SELECTED}, ({"spec": {"serviceName": "b"}},)),
        (JOBS, {"spec": {"template": _ONCE}}, ({"spec": {"completions": 3}}, {"spec": {"parallelism": 3}})),
        (CONFIGMAPS, {"immutable": True, "data": {"a": "b"}}, ({"data": {"a": "c"}}, {"immutable": False})),
        (_SERVICES, {"spec": {"ports": [{"port": 80}]}}, ({"spec": {"clusterIPs": None, "clusterIP": ""}},)),
    ):
        await server.ask("POST", path, {"metadata": {"name": "fixed"}} | content)
        for change in changes:
            await server.ask("PATCH", f"{path}/fixed", change, content_type=MERGE)


async def field_validation(server: AnswerRecorder) -> None:
    """Unknown and duplicate fields; what a patch adds."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "typing"}} | _pod()
    odd = {"spec": {"containers": [_CONTAINER | {"imag": "x"}], "foo": {"a": 1}}, "bar": 1}
    twice = b'{"metadata": {"name": "twice", "name": "twice"}, "data": {"a": "b", "a": "c"}}'
    for names in (
        [f"a{number}" for number in range(90)],
        [f"{number:300}".replace(" ", "b") for number in range(30)],
    ):
        many = {"metadata": {"name": "many"}} | dict.fromkeys(names, 1)
        await server.ask("POST", CONFIGMAPS, many, {"fieldValidation": "Warn", "dryRun": "All"})
    await server.ask("POST", PODS, pod)
    for validation in ("Strict", "Warn", "Ignore", "nonsense"):
        query = {"fieldValidation": validation, "dryRun": "All"}
        await server.ask("POST", PODS, pod | odd | {"metadata": {"name": "odd"}}, query)
        await server.ask("POST", CONFIGMAPS, twice, query)
        await server.ask("PUT", f"{PODS}/typing", pod | odd, query)
        await server.ask("PATCH", f"{PODS}/typing", {"spec": {"foo": 1}}, query, content_type=MERGE)
        await server.ask("PATCH", f"{PODS}/typing", {"spec": {"foo": 1}}, query, content_type=STRATEGIC)
        add = [{"op": "add", "path": "/spec/foo", "value": 1}]
        await server.ask("PATCH", f"{PODS}/typing", add, query, content_type=JSON_PATCH)
        applied = {**pod, "spec": {"foo": 1}}
        await server.ask(
            "PATCH", f"{PODS}/typing", applied, query | {"fieldManager": "me"}, content_type=APPLY
        )
