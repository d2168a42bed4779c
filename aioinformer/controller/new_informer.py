"""new_informer: one handler, called inside the process loop (client-go ``NewInformer``)."""

from __future__ import annotations

import logging
from typing import TypeVar, Unpack

from .._core.cancellation import maybe_await
from .._core.coop import Budget
from .._core.failure_log import FailureLog
from ..deltas import Delta
from ..handlers import ResourceEventHandler, handler_name, require_handler
from ..notifications import Notification
from ..objects.keys import deletion_handling_meta_namespace_key_func, key_and_version
from ..protocols import ListerWatcher
from ..reflector import ReflectorOptions
from ..store import Store
from .controller import Config, Controller
from .deltas import apply_in_steps
from .queues import QueueName, make_queue

logger = logging.getLogger(__name__)

T = TypeVar("T")


def new_informer(
    list_watch: ListerWatcher,
    object_type: type[T],
    resync_period: float,
    handler: ResourceEventHandler[T],
    *,
    queue: QueueName = "delta",
    **options: Unpack[ReflectorOptions],
) -> tuple[Store[T], Controller]:
    """Return a store that follows a collection, and the controller that you run for it.

    The simplest informer: one handler, and the queue waits for it. For several handlers, or slow ones, use a
    SharedIndexInformer.

    Args:
        list_watch: The source.
        object_type: The type of the objects.
        resync_period: Seconds between resyncs, which repeat every object to the handler; 0 for none.
        handler: Called for every change, after the store was changed. Its errors are logged.
        queue: "delta" for a DeltaFIFO, "real" for a RealFIFO.
        **options: See ReflectorOptions.

    Raises:
        ConfigError: The handler is not valid, there is no such queue, or an option is invalid.
        TypeError: There is no such option.
    """
    require_handler(handler)
    name = handler_name(handler)
    failures = FailureLog(name, logger)
    store: Store[T] = Store(deletion_handling_meta_namespace_key_func)

    async def deliver(notification: Notification) -> None:
        try:
            await maybe_await(notification.deliver(handler))
        except Exception as error:
            key, version = key_and_version(notification.obj)
            failures.log(error, "%s failed on %s at %s", name, key, version, traceback=error)

    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        budget = Budget()
        for notification in apply_in_steps(store, deltas, is_in_initial_list):
            if notification is not None:
                await deliver(notification)
            if budget.is_spent():
                await budget.pause()

    chosen = make_queue(queue, deletion_handling_meta_namespace_key_func, store)
    config = Config(chosen, list_watch, process, object_type, resync_period, reflector_options=options)
    return store, Controller(config)
