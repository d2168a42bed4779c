"""What the server says against specs: missing, unsupported, wrong and immutable values."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from aioinformer.testing import StatusError
from aioinformer.testing.apply.patches import merge_patch
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.objects import Object
from aioinformer.testing.rules.cron import schedule_fault
from aioinformer.testing.rules.immutable import immutable_faults
from aioinformer.testing.rules.spec_rules import spec_faults
from aioinformer.testing.storage.builtin import BUILTIN
from aioinformer.testing.storage.codec import load

KINDS = {resource.kind: resource for resource in BUILTIN if resource.group != "events.k8s.io"}
STRICT = WriteOptions(strict=True)
CONTAINERS = {"containers": [{"name": "a", "image": "a"}]}
TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
SELECTED: Object = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
ONCE_ONLY = {"restartPolicy": "Never"}
ONCE = TEMPLATE | {"spec": CONTAINERS | ONCE_ONLY}

ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
ACCOUNT = {"kind": "ServiceAccount", "name": "a"}
MOUNT = {"name": "v", "mountPath": "/v"}
AT_LEAST_0 = "must be greater than or equal to 0"


def faults(kind: str, content: Object, change: Object | None = None) -> list[str]:
    """Return the causes of the refusal of a new or a changed object."""
    cluster, resource = Cluster(), KINDS[kind]
    namespace = "default" if resource.namespaced else ""
    try:
        cluster.create(resource, namespace, {"metadata": {"name": "x"}} | content, STRICT)
        if change is not None:
            cluster.modify(resource, namespace, "x", lambda obj: merge_patch(obj, change), STRICT)
    except StatusError as refused:
        return [f"{cause['field']}: {cause['message']}" for cause in refused.status["details"]["causes"]]
    return []


@pytest.mark.parametrize(
    ("kind", "content", "causes"),
    [
        ("Pod", {}, ["spec.containers: Required value"]),
        (
            "Ingress",
            {"spec": {}},
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        ),
        (
            "Ingress",
            {"spec": {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}]}},
            [
                'spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required'
            ],
        ),
        (
            "LimitRange",
            {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}},
            ['spec.limits[1].type: Duplicate value: "Pod"'],
        ),
        (
            "NetworkPolicy",
            {"spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}},
            ["spec.ingress[0].from[0]: Required value: must specify a peer"],
        ),
        (
            "PersistentVolume",
            {"spec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"]}},
            ["spec: Required value: must specify a volume type"],
        ),
        (
            "Role",
            {"rules": [{"resources": ["pods"], "verbs": ["get"]}]},
            ["rules[0].apiGroups: Required value: resource rules must supply at least one api group"],
        ),
        (
            "Pod",
            {"spec": {"containers": [{}]}},
            ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
        ),
        (
            "Service",
            {"spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}},
            [
                'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
                '"TargetPort":0,"NodePort":0}'
            ],
        ),
        ("Service", {}, ["spec.ports: Required value"]),
        (
            "Service",
            {"spec": {"ports": [{"port": 80}, {"port": 0}]}},
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].name: Required value",
                "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[1].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            "Service",
            {"spec": {"clusterIP": "999", "ports": [{"port": 80, "nodePort": 30080}]}},
            [
                'spec.clusterIPs[0]: Invalid value: "999": must be a valid IP address, (e.g. 10.9.8.7 or '
                "2001:db8::ffff)",
                "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
            ],
        ),
        ("RoleBinding", {"roleRef": ROLE, "subjects": [ACCOUNT]}, []),
        (
            "ClusterRoleBinding",
            {"roleRef": ROLE | {"kind": "ClusterRole"}, "subjects": [ACCOUNT]},
            ["subjects[0].namespace: Required value"],
        ),
        ("NetworkPolicy", {}, []),
        ("ClusterRole", {}, []),
        ("LimitRange", {}, []),
    ],
)
def test_mistakes_are_refused(kind: str, content: Object, causes: list[str]) -> None:
    assert faults(kind, content) == causes


@pytest.mark.parametrize("kind", ["CronJob", "Deployment", "Pod"])
@pytest.mark.parametrize(
    ("container", "cause"),
    [
        (
            {"env": [{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
            'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        ({"envFrom": [{"secretRef": {"name": ""}}]}, "envFrom[0].secretRef.name: Required value"),
        (
            {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1000M"}}},
            'resources.requests: Invalid value: "1Gi": must be less than or equal to memory limit of 1G',
        ),
        ({"readinessProbe": {}}, "readinessProbe: Required value: must specify a handler type"),
        (
            {"startupProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}}},
            "startupProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 70000}}},
            "livenessProbe.tcpSocket.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"volumeMounts": [MOUNT, MOUNT]},
            'volumeMounts[1].mountPath: Invalid value: "/v": must be unique',
        ),
        ({"volumeMounts": [MOUNT], "readinessProbe": {"httpGet": {"port": "web"}}}, ""),
    ],
)
def test_mistakes_in_containers_are_refused_in_all_kinds(kind: str, container: Object, cause: str) -> None:
    spec = {"containers": [CONTAINERS["containers"][0] | container], "volumes": [{"name": "v"}]}
    path, content = {
        "CronJob": (
            "spec.jobTemplate.spec.template.spec",
            {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": spec | ONCE_ONLY}}}},
        ),
        "Deployment": ("spec.template.spec", SELECTED | {"template": TEMPLATE | {"spec": spec}}),
        "Pod": ("spec", spec),
    }[kind]
    assert faults(kind, {"spec": content}) == ([f"{path}.containers[0].{cause}"] if cause else [])


@pytest.mark.parametrize(
    ("kind", "content", "change", "cause"),
    [
        (
            "Service",
            {"spec": {"ports": [{"port": 80}]}},
            {"spec": {"clusterIP": "10.96.9.9"}},
            "spec.clusterIPs[0]: Invalid value: ",
        ),
        (
            "Pod",
            {"spec": CONTAINERS},
            {"spec": {"hostNetwork": True}},
            "spec: Forbidden: pod updates may not change fields other than",
        ),
        (
            "StorageClass",
            {"provisioner": "a"},
            {"provisioner": "b"},
            'provisioner: Invalid value: "b": field is immutable',
        ),
        ("PriorityClass", {"value": 1}, {"value": 2}, "value: Forbidden: may not be changed in an update."),
        (
            "ClusterRoleBinding",
            {"roleRef": {"kind": "ClusterRole", "name": "a"}},
            {"roleRef": {"name": "b"}},
            "roleRef: Invalid value: ",
        ),
    ],
)
def test_immutable_fields_are_refused(kind: str, content: Object, change: Object, cause: str) -> None:
    (only,) = faults(kind, content, change)
    assert only.startswith(cause)


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ("*/5 1,2 * JAN MON-FRI", ""),
        ("@daily", ""),
        ("@every 5m", ""),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-0 * * * *", "beginning of range (1) beyond end of range (0): 1-0"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * FOO *", 'failed to parse int from FOO: strconv.Atoi: parsing "FOO": invalid syntax'),
        ("TZ=UTC * * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        ("@never", "unrecognized descriptor: @never"),
    ],
)
def test_schedules(schedule: str, fault: str) -> None:
    assert schedule_fault(schedule) == fault


def create(kind: str, content: Object, options: WriteOptions = STRICT) -> Any:
    resource = KINDS[kind]
    namespace = "default" if resource.namespaced else ""
    stored = Cluster().create(resource, namespace, {"metadata": {"name": "x"}} | content, options)
    return load(resource, stored)


def test_services_get_addresses_and_ports() -> None:
    spec = create("Service", {"spec": {"type": "NodePort", "ports": [{"port": 80}]}})["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("10.96.0.10", ["10.96.0.10"])
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30000}]
    headless = create("Service", {"spec": {"clusterIP": "None", "selector": {"a": "b"}}})["spec"]
    assert (headless["clusterIPs"], headless["ipFamilies"]) == (["None"], ["IPv4"])


def test_a_service_loses_what_only_its_old_type_has() -> None:
    cluster, service = Cluster(), KINDS["Service"]
    status = WriteOptions(strict=True, subresource="status")
    ports: Object = {"ports": [{"port": 80}]}
    balancer = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    plain = load(
        service, cluster.create(service, "default", {"metadata": {"name": "x"}, "spec": ports}, STRICT)
    )

    def change(patch: Object, options: WriteOptions = STRICT) -> Any:
        stored = cluster.modify(service, "default", "x", lambda obj: merge_patch(obj, patch), options)
        return load(service, stored)

    ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    with pytest.raises(StatusError, match=r"may only be used when `spec\.type` is 'LoadBalancer'"):
        change(ingress, status)
    spec = change({"spec": balancer})["spec"]
    assert spec["ports"][0]["nodePort"]
    change(ingress, status)
    again = change({"spec": {"type": "ClusterIP"}})
    assert again["spec"] == plain["spec"]
    assert again["status"] == plain["status"]
    named = change({"spec": {"type": "ExternalName", "externalName": "a.example.com"}})["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies"} & named.keys()


def test_jobs_select_their_own_pods() -> None:
    job = create("Job", {"spec": {"template": ONCE}})
    uid = {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}
    assert job["spec"]["selector"] == {"matchLabels": uid}
    assert job["spec"]["template"]["metadata"]["labels"].items() >= (uid | {"a": "b"}).items()
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("r:5000/a", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_pull_policy_depends_on_the_tag(image: str, policy: str) -> None:
    pod = create("Pod", {"spec": {"containers": [{"name": "a", "image": image}]}})
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_only_requests_are_admitted() -> None:
    assert len(create("Pod", {"spec": CONTAINERS})["spec"]["tolerations"]) == 2
    assert "tolerations" not in create("Pod", {"spec": CONTAINERS}, WriteOptions(whole=True))["spec"]


@pytest.mark.parametrize(
    ("kind", "path", "why"),
    [
        ("Lease", "leaseDurationSeconds", "must be greater than 0"),
        ("Lease", "leaseTransitions", AT_LEAST_0),
        ("PodDisruptionBudget", "minAvailable", AT_LEAST_0),
        ("Deployment", "revisionHistoryLimit", AT_LEAST_0),
        ("Job", "ttlSecondsAfterFinished", AT_LEAST_0),
        ("CronJob", "failedJobsHistoryLimit", AT_LEAST_0),
        ("CronJob", "jobTemplate.spec.parallelism", AT_LEAST_0),
    ],
)
def test_counts_are_not_negative(kind: str, path: str, why: str) -> None:
    job = {"template": ONCE}
    base: Object = {
        "CronJob": {"schedule": "@daily", "jobTemplate": {"spec": job}},
        "Deployment": SELECTED,
        "Job": job,
    }.get(kind, {})
    change: Any = -1
    for step in reversed(path.split(".")):
        change = {step: change}
    assert faults(kind, {"spec": merge_patch(base, change)}) == [f"spec.{path}: Invalid value: -1: {why}"]


@pytest.mark.parametrize(
    ("kind", "part", "field"),
    [
        ("ConfigMap", "data", "data"),
        ("ConfigMap", "binaryData", "binaryData"),
        ("Secret", "data", "data"),
        ("Secret", "stringData", "data"),
    ],
)
def test_keys_of_data_are_checked(kind: str, part: str, field: str) -> None:
    for key in (".a", "a" * 253, "A_b-c.d"):
        assert not faults(kind, {part: {key: ""}})
    for key, why in (
        (".", "must not be '.'"),
        ("..", "must not be '..'"),
        ("..a", "must not start with '..'"),
        ("a" * 254, "must be no more than 253 characters"),
        ("a/b", "a valid config key must consist of alphanumeric characters"),
    ):
        (fault,) = faults(kind, {part: {key: ""}})
        assert fault.startswith(f'{field}[{key}]: Invalid value: "{key}": {why}')


def test_data_has_at_most_a_mebibyte() -> None:
    most = 1024 * 1024
    for kind, part, field in (("ConfigMap", "data", "[]"), ("Secret", "stringData", "data")):
        assert not faults(kind, {part: {"a": "x" * most}})
        too_long = [f"{field}: Too long: may not be more than 1048576 bytes"]
        assert faults(kind, {part: {"a": "x" * most, "b": "x"}}) == too_long
        assert faults(kind, {part: {"a": "é" * (most // 2), "b": "x"}}) == too_long
    binary = base64.b64encode(b"x" * most).decode()
    assert not faults("Secret", {"data": {"a": binary}})
    assert len(faults("ConfigMap", {"binaryData": {"a": binary}, "data": {"b": "x"}})) == 1


def test_long_pods_take_linear_time() -> None:
    # Quadratic work would not end within the test's timeout.
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(120_000)]
    old = {"spec": {"containers": [], "tolerations": many}}
    assert not immutable_faults("Pod", old, {"spec": {"containers": [], "tolerations": many[::-1]}})


def test_volumes_are_read_once_for_all_containers() -> None:
    class Volume(dict[str, Any]):
        reads = 0

        def get(self, name: str, default: Any = None) -> Any:
            Volume.reads += 1
            return super().get(name, default)

    containers = [{"name": f"c{number}", "image": "a"} for number in range(50)]
    volumes = [Volume(name=f"v{number}", emptyDir={}) for number in range(50)]
    assert not [*spec_faults("Pod", {"spec": {"containers": containers, "volumes": volumes}})]
    assert Volume.reads < 5 * len(volumes)
