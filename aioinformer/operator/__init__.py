"""Operators: reconcilers on informers (controller-runtime, as coroutines).

    informers ─► triggers, with predicates ─► work queue ─► workers ─► your reconciler

A ``Controller`` runs one reconciler. A ``Manager`` runs several controllers on shared informers.
"""

from ..errors import InvalidResultError, ReconcileError, ReconcileTimeout, TerminalError
from ..informer import Health
from .controller import Controller
from .informer_triggers import LOW_PRIORITY, Owns, Watch
from .manager import Manager
from .metadata import controller_of, owner_reference
from .predicates import (
    AnnotationsChanged,
    Change,
    Deleting,
    FieldsChanged,
    FinalizersChanged,
    GenerationChanged,
    LabelsChanged,
    LabelsMatch,
    Predicate,
    When,
)
from .protocols import LeaderElection, WrittenResource
from .requests import Reconciler, Request, Result
from .runs import RunState
from .state import ControllerState, ManagerState
from .threads import in_thread
from .triggers import TriggerState

__all__ = [
    "LOW_PRIORITY",
    "AnnotationsChanged",
    "Change",
    "Controller",
    "ControllerState",
    "Deleting",
    "FieldsChanged",
    "FinalizersChanged",
    "GenerationChanged",
    "Health",
    "InvalidResultError",
    "LabelsChanged",
    "LabelsMatch",
    "LeaderElection",
    "Manager",
    "ManagerState",
    "Owns",
    "Predicate",
    "ReconcileError",
    "ReconcileTimeout",
    "Reconciler",
    "Request",
    "Result",
    "RunState",
    "TerminalError",
    "TriggerState",
    "Watch",
    "When",
    "WrittenResource",
    "controller_of",
    "in_thread",
    "owner_reference",
]
