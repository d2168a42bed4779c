"""What a Database is made of: the same functions in both operators."""

from __future__ import annotations

import secrets
from typing import Any

LABEL = "databases.example.com/name"
ROTATED = "databases.example.com/rotated-at"
"""An annotation: when the password was made, in seconds since 1970."""

MANAGED = {"app.kubernetes.io/managed-by": "databases"}
"""The labels of Secrets."""

Fields = dict[str, Any]


def secret_fields(now: float) -> Fields:
    """Return a Secret with a new password."""
    metadata = {"labels": MANAGED, "annotations": {ROTATED: f"{now:.3f}"}}
    return {"metadata": metadata, "stringData": {"password": secrets.token_urlsafe(24)}}


def password_made_at(annotations: dict[str, str]) -> str:
    """Return when a Secret got its password, in seconds since 1970."""
    return annotations.get(ROTATED, "0")


def password_due_at(annotations: dict[str, str], seconds: int | None) -> float | None:
    """Return when a Secret needs a new password, in seconds since 1970; None if it keeps its password."""
    return None if seconds is None else float(password_made_at(annotations)) + seconds


def claim_fields(storage: int, storage_class: str) -> Fields:
    """Return a PersistentVolumeClaim of so many GiB."""
    return {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{storage}Gi"}},
            "storageClassName": storage_class,
        }
    }


def service_fields(name: str) -> Fields:
    """Return a Service for the pods of a Database."""
    return {"spec": {"selector": {LABEL: name}, "ports": [{"port": 5432}]}}


def deployment_fields(name: str, image: str, replicas: int, made_at: str) -> Fields:
    """Return a Deployment whose pods are replaced when the password is."""
    password = {"secretKeyRef": {"name": name, "key": "password"}}
    container = {
        "name": "postgres",
        "image": image,
        "ports": [{"containerPort": 5432}],
        "env": [{"name": "POSTGRES_PASSWORD", "valueFrom": password}],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}],
    }
    data = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    metadata = {"labels": {LABEL: name}, "annotations": {ROTATED: made_at}}
    template = {"metadata": metadata, "spec": {"containers": [container], "volumes": [data]}}
    return {"spec": {"replicas": replicas, "selector": {"matchLabels": {LABEL: name}}, "template": template}}


def backup_fields(name: str, image: str, schedule: str) -> Fields:
    """Return a CronJob that writes the data into the bucket."""
    container = {"name": "backup", "image": image, "args": ["pg_dump", f"--host={name}"]}
    pod = {"containers": [container], "restartPolicy": "OnFailure"}
    job = {"spec": {"template": {"spec": pod}}}
    return {"spec": {"schedule": schedule, "jobTemplate": job}}
