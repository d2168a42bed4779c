"""Operators: reconcilers on informers (controller-runtime, as coroutines).

    informers ─► triggers, with predicates ─► work queue ─► workers ─► your reconciler

A ``Controller`` runs one reconciler. A ``Manager`` runs several controllers on shared informers. An ``Operator``
declares both, and webhooks, in a module; ``aioinformer run`` or ``run`` runs it.
"""

from ..errors import Denied, InvalidResultError, ReconcileError, ReconcileTimeout, TerminalError
from ..informer import Health
from ..typed import CustomResource
from .context import Context
from .controller import Controller
from .declarations import Owned, Uses, Watched
from .informer_triggers import LOW_PRIORITY, Owns, Watch
from .kinds import Kind
from .manager import Manager
from .metadata import controller_of, owner_reference
from .operator import Operator
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
from .process import run
from .protocols import LeaderElection, WrittenResource
from .requests import Reconciler, Request, Result
from .rights import Right
from .run_options import RunOptions
from .runs import RunState
from .state import ControllerState, FailingKey, ManagerState
from .threads import in_thread
from .triggers import TriggerState
from .webhook_counts import WebhookState
from .webhooks import AdmissionReview, Reviewed, UserInfo, WebhookApp, WebhookServer

__all__ = [
    "LOW_PRIORITY",
    "AdmissionReview",
    "AnnotationsChanged",
    "Change",
    "Context",
    "Controller",
    "ControllerState",
    "CustomResource",
    "Deleting",
    "Denied",
    "FailingKey",
    "FieldsChanged",
    "FinalizersChanged",
    "GenerationChanged",
    "Health",
    "InvalidResultError",
    "Kind",
    "LabelsChanged",
    "LabelsMatch",
    "LeaderElection",
    "Manager",
    "ManagerState",
    "Operator",
    "Owned",
    "Owns",
    "Predicate",
    "ReconcileError",
    "ReconcileTimeout",
    "Reconciler",
    "Request",
    "Result",
    "Reviewed",
    "Right",
    "RunOptions",
    "RunState",
    "TerminalError",
    "TriggerState",
    "UserInfo",
    "Uses",
    "Watch",
    "Watched",
    "WebhookApp",
    "WebhookServer",
    "WebhookState",
    "When",
    "WrittenResource",
    "controller_of",
    "in_thread",
    "owner_reference",
    "run",
]
