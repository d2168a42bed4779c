"""The cells of what runs pods: groups apps, batch, autoscaling and policy, and core's controllers and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.errors import in_group
from aioinformer.testing.objects import is_true
from aioinformer.testing.tables.formats import (
    age,
    age_at,
    at,
    duration,
    labels_at,
    parse_time,
    selector_at,
    shorten,
    size,
)

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.tables.formats import Cell

_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _containers(field: str, template: str = "spec.template") -> Cell:
    """Return a cell with a field of each container."""
    containers = at(f"{template}.spec.containers", ())
    return lambda obj: ",".join(container.get(field, "") for container in containers(obj))


def _ready(obj: Object) -> str:
    return f"{at('status.readyReplicas', 0)(obj)}/{at('spec.replicas')(obj)}"


def _job_status(job: Object) -> str:
    if is_true(job, "Complete"):
        return "Complete"
    if is_true(job, "Failed"):
        return "Failed"
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    return next((state for state in _JOB_STATES if is_true(job, state)), "Running")


def _completions(job: Object) -> str:
    succeeded, wanted = at("status.succeeded", 0)(job), at("spec.completions", None)(job)
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = at("spec.parallelism")(job)
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _job_duration(job: Object) -> str:
    begun = parse_time(at("status.startTime")(job))
    ended = parse_time(at("status.completionTime")(job))
    if begun is None:
        return ""
    return age(begun) if ended is None else duration((ended - begun).total_seconds())


def _targets(autoscaler: Object) -> str:
    specs, statuses = at("spec.metrics", ())(autoscaler), at("status.currentMetrics", None)(autoscaler) or []
    padded = [*statuses, *({} for _ in specs)]
    texts = [_metric(spec, status) for spec, status in zip(specs, padded, strict=False)]
    return shorten(texts, most=2, empty="<none>", separator=", ")


def _metric(spec: Object, status: Object) -> str:
    """Return the current and the wanted value of a metric."""
    kind = str(spec.get("type", ""))
    field = kind[:1].lower() + kind[1:]
    source, current = spec.get(field) or {}, (status.get(field) or {}).get("current") or {}
    wanted = source.get("target") or {}
    of_resource = kind in ("Resource", "ContainerResource")
    name = f"{source.get('name')}: " if of_resource else ""
    if "averageValue" in wanted:
        note = " (avg)" if kind in ("External", "Object") else ""
        return f"{name}{current.get('averageValue', '<unknown>')}/{wanted['averageValue']}{note}"
    if not of_resource:
        return f"{current.get('value', '<unknown>')}/{wanted.get('value', '<nil>')}"
    used, most = (metric.get("averageUtilization") for metric in (current, wanted))
    return f"{name}{'<unknown>' if used is None else f'{used}%'}/{'<auto>' if most is None else f'{most}%'}"


def _owner(revision: Object) -> str:
    """Return the controller of a ControllerRevision."""
    for reference in revision["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group = reference["apiVersion"].rpartition("/")[0]
            return f"{in_group(reference['kind'], group).lower()}/{reference['name']}"
    return "<none>"


def _quota(limits: bool) -> Cell:
    """Return a cell with the used and the allowed amounts of a quota: of limits or of everything else."""

    def cell(quota: Object) -> str:
        hard, used = at("status.hard", {})(quota), at("status.used", {})(quota)
        names = (name for name in sorted(hard) if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


_TEMPLATE: dict[str, Cell] = {
    "Containers": _containers("name"),
    "Images": _containers("image"),
    "Selector": selector_at("spec.selector"),
}
_REPLICAS: dict[str, Cell] = {
    "Desired": at("spec.replicas"),
    "Current": at("status.replicas"),
    "Ready": at("status.readyReplicas", 0),
}

WORKLOADS: dict[str, dict[str, Cell]] = {
    "ControllerRevision.apps": {"Controller": _owner, "Revision": at("revision")},
    "CronJob.batch": {
        "Schedule": at("spec.schedule"),
        "Timezone": at("spec.timeZone", "<none>"),
        "Suspend": lambda obj: str(at("spec.suspend")(obj)),
        "Active": size("status.active"),
        "Last Schedule": age_at("status.lastScheduleTime", "<none>"),
        "Containers": _containers("name", "spec.jobTemplate.spec.template"),
        "Images": _containers("image", "spec.jobTemplate.spec.template"),
        "Selector": selector_at("spec.jobTemplate.spec.selector"),
    },
    "DaemonSet.apps": {
        **_TEMPLATE,
        "Desired": at("status.desiredNumberScheduled"),
        "Current": at("status.currentNumberScheduled"),
        "Ready": at("status.numberReady"),
        "Up-to-date": at("status.updatedNumberScheduled", 0),
        "Available": at("status.numberAvailable", 0),
        "Node Selector": labels_at("spec.template.spec.nodeSelector"),
    },
    "Deployment.apps": {
        **_TEMPLATE,
        "Ready": _ready,
        "Up-to-date": at("status.updatedReplicas", 0),
        "Available": at("status.availableReplicas", 0),
        "Selector": selector_at("spec.selector", empty=""),
    },
    "HorizontalPodAutoscaler.autoscaling": {
        "Reference": lambda obj: (
            f"{at('spec.scaleTargetRef.kind')(obj)}/{at('spec.scaleTargetRef.name')(obj)}"
        ),
        "Targets": _targets,
        "MinPods": lambda obj: str(at("spec.minReplicas")(obj)),
        "MaxPods": at("spec.maxReplicas"),
        "Replicas": at("status.currentReplicas", 0),
    },
    "Job.batch": {
        **_TEMPLATE,
        "Status": _job_status,
        "Completions": _completions,
        "Duration": _job_duration,
    },
    "PodDisruptionBudget.policy": {
        "Min Available": lambda obj: str(at("spec.minAvailable", "N/A")(obj)),
        "Max Unavailable": lambda obj: str(at("spec.maxUnavailable", "N/A")(obj)),
        "Allowed Disruptions": at("status.disruptionsAllowed"),
    },
    "PodTemplate": {
        "Containers": _containers("name", "template"),
        "Images": _containers("image", "template"),
        "Pod Labels": labels_at("template.metadata.labels"),
    },
    "ReplicaSet.apps": {**_TEMPLATE, **_REPLICAS},
    "ReplicationController": {**_TEMPLATE, **_REPLICAS, "Selector": labels_at("spec.selector")},
    "ResourceQuota": {"Request": _quota(limits=False), "Limit": _quota(limits=True)},
    "StatefulSet.apps": {**_TEMPLATE, "Ready": _ready},
}
