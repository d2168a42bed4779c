"""The operator: what it reconciles, and what it may do. ``aioinformer run examples.storage_operator`` runs it."""

from __future__ import annotations

from aioinformer.operator import Operator, Owned, Watched

from . import backends, caves
from .model import BACKENDS, CAVES, PODS, PROTECTION, Settings

operator = Operator("storage-operator", settings=Settings)

operator.controller(
    CAVES,
    name="caves",
    watches=[Watched(PODS, caves.caves_of)],
    finalizer=PROTECTION,
    cleanup=caves.release,
    status_verbs=("patch",),
)(caves.protect)

operator.controller(
    BACKENDS,
    name="backends",
    owns=[Owned(PODS, verbs=("create", "patch", "delete"))],
    watches=[Watched(CAVES, backends.backends_of)],
    status_verbs=("patch",),
)(backends.mount)
