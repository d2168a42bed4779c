"""Values that Go's types cannot hold, or hold in another form."""

from __future__ import annotations

from typing import Any

from ..api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, DEPLOYMENTS, JOBS, LEASES, PODS
from .patching import deployment

_SECRETS = "/api/v1/namespaces/NS/secrets"
_SERVICES = "/api/v1/namespaces/NS/services"


async def readable_values(server: AnswerRecorder) -> None:
    """Data and times: valid values are normalized, others refused."""

    async def create(path: str, **content: Any) -> None:
        await server.ask("POST", path, {"metadata": {"generateName": "v-"}} | content)

    entries: tuple[Any, ...] = (
        "YQ==",
        "YWJj\nZGVm",
        "YR==",
        "",
        None,
        "not base64!",
        "YWJ",
        "é",
        5,
        True,
        {},
    )
    for entry in entries:
        await create(_SECRETS, data={"k": entry})
        await create(CONFIGMAPS, binaryData={"k": entry})
    texts: tuple[Any, ...] = ("text", "", None, 5, 5.5, True, ["a"], {})
    for text in texts:
        await create(CONFIGMAPS, data={"k": text})
        await create(_SECRETS, stringData={"k": text})
    wholes: tuple[Any, ...] = ([], "x", 5, None)
    for data in wholes:
        await create(CONFIGMAPS, data=data)
        await create(_SECRETS, data=data)
    day, time = "2024-01-01", "2024-01-01T00:00:00"
    about = {"kind": "Pod", "name": "a", "namespace": server.namespace}
    for moment in (
        *(f"{time}.000000Z", f"{time}.123456+01:00", f"{time}Z", f"{time}+00:00", f"{time}.123Z"),
        *(f"{time}.123456789Z", f"{time}.123456", time, day, f"{day} 00:00:00Z", f"{time}+0100", "soon", ""),
        *("2024-13-01T00:00:00.000000Z", "2024-02-31T00:00:00.000000Z", "2024-01-01T25:00:00.000000Z"),
        *(f"{time}.000000Zx", None, 5),
    ):
        await create(LEASES, spec={"renewTime": moment})
        await create("/api/v1/namespaces/NS/events", involvedObject=about, firstTimestamp=moment)


async def unreadable_changes(server: AnswerRecorder) -> None:
    """The same in patches and applies."""
    for path, kind, content in (
        (_SECRETS, {"apiVersion": "v1", "kind": "Secret"}, {"data": {"a": "!"}}),
        (CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap"}, {"data": {"a": 5}}),
        (
            LEASES,
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
            {"spec": {"renewTime": "2024-01-01T00:00:00Z"}},
        ),
    ):
        whole = kind | {"metadata": {"name": "unreadable"}}
        await server.ask("POST", path, whole)
        own = f"{path}/unreadable"
        await server.ask("PUT", own, whole | content)
        await server.ask("PATCH", own, whole | content, {"fieldManager": "tests"}, content_type=APPLY)
        for kind_of_patch in (MERGE, STRATEGIC):
            await server.ask("PATCH", own, content, content_type=kind_of_patch)
        add: list[Object] = [
            {"op": "add", "path": f"/{name}", "value": value} for name, value in content.items()
        ]
        await server.ask("PATCH", own, add, content_type=JSON_PATCH)
        await server.ask("PUT", f"{path}/absent", whole | content)
        await server.ask("POST", path.replace("NS", "absent-namespace"), whole | content)
        await server.ask("GET", own)
    await server.ask("POST", DEPLOYMENTS, deployment("unreadable", 1))
    for moment in ("2024-01-01T01:00:00.123456+01:00", "2024-01-01T00:00:00", None):
        condition = {"type": "A", "status": "True", "lastTransitionTime": moment}
        change = {"status": {"conditions": [condition]}}
        await server.ask("PATCH", f"{DEPLOYMENTS}/unreadable/status", change, content_type=MERGE)


async def zeros(server: AnswerRecorder) -> None:
    """Counts of nothing: most are left out, some are always there."""
    labels = {"app": "a"}
    containers: Object = {"containers": [{"name": "main", "image": "example.com/main"}]}
    template = {"metadata": {"labels": labels}, "spec": containers}
    selected = {"selector": {"matchLabels": labels}, "template": template}
    job = selected | {"manualSelector": True}
    job["template"] = template | {"spec": containers | {"restartPolicy": "Never"}}
    added = {"deprecated.daemonset.template.generation": "1"}  # of the real server to some, as are the labels
    metadata = {"name": "a", "labels": labels, "annotations": added}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    apps, autoscaling = "/apis/apps/v1/namespaces/NS", "/apis/autoscaling/v2/namespaces/NS"
    replicas = "replicas readyReplicas availableReplicas observedGeneration"
    healthy = "disruptionsAllowed currentHealthy desiredHealthy expectedPods observedGeneration"
    daemons = "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady numberAvailable"
    for path, spec, counts in (
        (DEPLOYMENTS, selected, f"{replicas} updatedReplicas unavailableReplicas terminatingReplicas"),
        (f"{apps}/replicasets", selected, f"{replicas} fullyLabeledReplicas terminatingReplicas"),
        (
            f"{apps}/statefulsets",
            selected | {"serviceName": "a"},
            f"{replicas} currentReplicas updatedReplicas",
        ),
        (
            f"{apps}/daemonsets",
            selected,
            f"{daemons} numberUnavailable updatedNumberScheduled observedGeneration",
        ),
        (
            "/api/v1/namespaces/NS/replicationcontrollers",
            {"selector": labels, "template": template},
            replicas,
        ),
        (JOBS, job, "active succeeded failed terminating ready"),
        ("/apis/policy/v1/namespaces/NS/poddisruptionbudgets", {}, healthy),
        (
            f"{autoscaling}/horizontalpodautoscalers",
            {"maxReplicas": 3, "scaleTargetRef": target},
            "currentReplicas desiredReplicas observedGeneration",
        ),
        (PODS, containers, "observedGeneration"),
    ):
        await server.ask("POST", path, {"metadata": metadata, "spec": spec})
        zero, one = (dict.fromkeys(counts.split(), number) for number in (0, 1))
        statuses: tuple[Any, ...] = (zero, zero, None, one, *(() if path == JOBS else (zero,)))
        for status in statuses:  # the second of zeros changes nothing; a Job's numbers only grow
            await server.ask("PATCH", f"{path}/a/status", {"status": status}, content_type=MERGE)
    node = f"{server.namespace}-cordoned"
    await server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}, "spec": {"unschedulable": False}})
    for cordoned in (True, False):
        spec = {"spec": {"unschedulable": cordoned}}
        await server.ask("PATCH", f"/api/v1/nodes/{node}", spec, content_type=MERGE)


async def defaults(server: AnswerRecorder) -> None:
    """Defaults apply whenever the field is omitted."""
    for content in ({"stringData": {"a": "b"}}, {"type": None}, {"type": ""}, {"type": "other"}):
        secret: Object = {"metadata": {"name": "a"}} | content
        await server.ask("POST", _SECRETS, secret)
        await server.ask("PUT", f"{_SECRETS}/a", secret)
    await server.ask("PATCH", f"{_SECRETS}/a", {"type": None}, content_type=MERGE)
    await server.ask("GET", _SECRETS, query={"fieldSelector": "type=Opaque"})
    await server.ask("POST", _SECRETS, {"metadata": {"name": "typed"}, "type": "example.com/a"})
    await server.ask("PUT", f"{_SECRETS}/typed", {"metadata": {"name": "typed"}})
    for port in (80, 81):
        service = {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "ports": [{"port": port}]}}
        await server.ask("POST" if port == 80 else "PUT", f"{_SERVICES}{'/a' if port == 81 else ''}", service)
    await server.ask("PATCH", f"{_SERVICES}/a/status", {"status": None}, content_type=MERGE)


async def long_numbers(server: AnswerRecorder) -> None:
    """Numbers of more than 64 bits, and of more digits than Python reads."""
    await server.ask("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
    job = {"spec": {"template": template}}
    for digits in ("18446744073709551615", "18446744073709551616", "9" * 5000):
        for name in ("resourceVersion", "limit"):
            await server.ask("GET", CONFIGMAPS, query={name: digits})
        await server.watch(CONFIGMAPS, {"resourceVersion": digits})
        await server.ask("DELETE", f"{CONFIGMAPS}/b", query={"gracePeriodSeconds": digits})
        about = {"name": "a", "resourceVersion": digits}
        await server.ask("PUT", f"{CONFIGMAPS}/a", {"metadata": about})
        for query in ({}, {"dryRun": "All"}):
            await server.ask("POST", CONFIGMAPS, {"metadata": about | {"generateName": "a-"}}, query=query)
        cron = {"schedule": f"{digits} * * * *", "jobTemplate": job}
        cron_jobs = "/apis/batch/v1/namespaces/NS/cronjobs"
        await server.ask("POST", cron_jobs, {"metadata": {"name": "a"}, "spec": cron})
    for storage in ("1" * 30, "1" * 30 + "m", "1" * 30 + "Ki", "0." + "1" * 30):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        claims = "/api/v1/namespaces/NS/persistentvolumeclaims"
        await server.ask("POST", claims, {"metadata": {"generateName": "a-"}, "spec": claim})
