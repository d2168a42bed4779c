"""Bugs that are planted in a copy of the package, to see whether the simulation finds them.

A mutant names a function and an operator that changes the function's syntax tree. If the function, or the place that
the operator changes, is not there, the mutant is stale: `test_mutants.py` fails, and `mutations.py` runs nothing.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from .operators import (
    CallOther,
    DropAssignment,
    DropCall,
    DropOperand,
    Function,
    MoveBehind,
    Negate,
    Operator,
    PlaceError,
    ReplaceArgument,
    ReplaceAssigned,
    ReplaceCall,
    ReplaceCondition,
    ReplaceExcept,
    ReplaceReturn,
)


class StaleMutantError(LookupError):
    """The package lacks the function that a mutant changes, or the function lacks the place."""


class Mutant(NamedTuple):
    """A bug.

    Attributes:
        name: What is wrong.
        module: The module, relative to the package, such as ``fifo.delta_fifo``.
        function: The function's qualified name, such as ``DeltaState.replace``.
        operator: What is changed in the function.
        caught: The error that catches the bug; "" if it survives.
        why: Why it survives.
    """

    name: str
    module: str
    function: str
    operator: Operator
    caught: str = "AssertionError"
    why: str = ""

    @property
    def file(self) -> str:
        """The module's file, relative to the package."""
        return f"{self.module.replace('.', '/')}.py"

    def plant(self, package: Path) -> str:
        """Return the module's text with the bug in it.

        Args:
            package: The folder of `aioinformer`.

        Raises:
            StaleMutantError: The function, or the place in it, was not found.
        """
        try:
            tree = ast.parse((package / self.file).read_text())
        except FileNotFoundError:
            raise StaleMutantError(f"{self.name}: there is no module {self.module}") from None
        function = _function(tree, self.function)
        if function is None:
            raise StaleMutantError(f"{self.name}: {self.module} has no function {self.function}")
        try:
            self.operator.apply(function)
        except PlaceError as error:
            raise StaleMutantError(f"{self.name}: {self.module}:{self.function} has {error}") from None
        return ast.unparse(ast.fix_missing_locations(tree))


def _function(tree: ast.Module, qualified: str) -> Function | None:
    """Return the function of a qualified name, or None."""
    node: ast.AST = tree
    for name in qualified.split("."):
        definitions = [
            statement
            for statement in getattr(node, "body", [])
            if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and statement.name == name
        ]
        if not definitions:
            return None
        node = definitions[-1]
    return node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


QUEUE = [
    Mutant(
        "lost tombstone (delta)",
        "fifo.delta_fifo",
        "DeltaState.replace",
        ReplaceCall("_missing", by="()"),
    ),
    Mutant(
        "stale resync (delta)",
        "fifo.delta_fifo",
        "DeltaState.resync",
        DropOperand("items"),
    ),
    Mutant(
        "synced before the first list was processed (delta)",
        "fifo.delta_fifo",
        "DeltaState.has_synced",
        ReplaceReturn(by="self.populated"),
    ),
    Mutant(
        "synced before the first list was processed (real)",
        "fifo.real_fifo",
        "RealState.has_synced",
        ReplaceReturn(by="self.populated"),
    ),
    Mutant(
        "notify wakes one waiter, not all",
        "fifo.queue",
        "FIFO._leave",
        ReplaceArgument("notify", by="1"),
        "",
        "In an informer one task alone waits for items.",
    ),
    Mutant(
        "missed notify: items that are queued wake no waiter",
        "fifo.queue",
        "FIFO._leave",
        DropCall("notify"),
    ),
    Mutant(
        "a pop never ends processing",
        "fifo.queue",
        "FIFO._process_oldest",
        DropAssignment("_processing"),
    ),
    Mutant(
        "a deletion replaces the change before it (delta)",
        "fifo.delta_fifo",
        "_append",
        DropOperand("delta"),
    ),
    Mutant(
        "a change replaces what is queued for its key (delta)",
        "fifo.delta_fifo",
        "DeltaState.enqueue",
        ReplaceCall("_with_delta", by="(delta,)"),
    ),
    Mutant(
        "a deletion of a stored object is dropped (delta)",
        "fifo.delta_fifo",
        "DeltaState.enqueue",
        DropOperand("_known"),
    ),
    Mutant(
        "a batch goes past the end of the first list (delta)",
        "fifo.delta_fifo",
        "DeltaState.take_batch",
        ReplaceCondition("remaining", nth=1, by="False"),
        "",
        "A change would have to be queued between the first list and its processing, which follows at once.",
    ),
    Mutant(
        "a batch goes past the end of the first list (real)",
        "fifo.real_fifo",
        "RealState.take_batch",
        ReplaceCondition("_initial_end", by="False"),
        "",
        "In an informer the first list is one delta, which is a batch by itself.",
    ),
    Mutant(
        "a batch is in reverse order (real)",
        "fifo.real_fifo",
        "RealState.take_batch",
        ReplaceArgument("Item", by="deltas[::-1]"),
        "",
        "A batch has each object once. Only the order between objects changes, which the oracle's scripts compare.",
    ),
    Mutant(
        "a batch has only the first delta of each key (delta)",
        "fifo.delta_fifo",
        "DeltaState.take_batch",
        ReplaceAssigned("deltas", nth=1, by="of_key[:1]"),
    ),
]

STORE = [
    Mutant(
        "lost tombstone (real)",
        "controller.deltas",
        "_replace",
        DropAssignment("gone", nth=1),
    ),
    Mutant(
        "an update shows the new object as the old one",
        "controller.deltas",
        "apply_in_steps",
        ReplaceArgument("UpdateNotification", by="obj"),
    ),
    Mutant(
        "the store does not return what it replaces (updates become adds)",
        "store.store",
        "Store.put",
        ReplaceAssigned("old", by="None", nth=0),
    ),
    Mutant(
        "an undecodable object is dropped",
        "reflector.event_decoder",
        "EventDecoder._undecodable",
        ReplaceReturn(nth=0, by="None"),
    ),
    Mutant(
        "the store shows the older state of an undecodable object",
        "store.store",
        "Store.put_undecodable",
        DropCall("_forget_fitting"),
    ),
    Mutant(
        "an index keeps the older state of an undecodable object",
        "store.store",
        "Store.put_undecodable",
        DropCall("remove"),
    ),
    Mutant(
        "an object that fits again is added twice",
        "controller.deltas",
        "_fits_again",
        ReplaceReturn(by="AddNotification(obj, is_in_initial_list, unfit)"),
    ),
    Mutant(
        "a handler that comes late gets an update of a state that it has not seen",
        "informer.newcomer",
        "for_newcomer",
        ReplaceReturn(nth=1, by="handler"),
    ),
    Mutant(
        "a merged undecodable state comes after the one that fits again",
        "processor.backlog",
        "is_over",
        ReplaceReturn(by="False"),
    ),
    Mutant(
        "the store keeps deleted objects",
        "store.store",
        "Store.remove",
        CallOther("pop", other="get"),
    ),
    Mutant(
        "the store keeps the first state of each object",
        "store.store",
        "Store.put",
        ReplaceAssigned("part", nth=2, by="kept if old is None else old"),
    ),
    Mutant(
        "a list of one namespace replaces all",
        "store.store",
        "Store.take_over",
        ReplaceCondition("instead_of", by="True", nth=1),
    ),
    Mutant(
        "a list of one namespace keeps deleted objects",
        "store.store",
        "Store.take_over",
        DropCall("_forget_fitting", nth=1),
    ),
    Mutant(
        "an index keeps deleted objects",
        "store.store",
        "Store.remove",
        DropCall("remove"),
    ),
    Mutant(
        "an index does not get new objects",
        "store.store",
        "Store.put",
        DropCall("put"),
    ),
    Mutant(
        "an index ignores a Replace",
        "store.indexer",
        "Indexer.take_over",
        DropCall("take_over", nth=1),
    ),
]

REFLECTOR = [
    Mutant(
        "leaked stream after a watch",
        "reflector.reflector",
        "Reflector._follow",
        DropCall("aclose"),
        "LeakError",
    ),
    Mutant(
        "leaked stream after a WatchList that failed",
        "reflector.reflector",
        "Reflector._watch_list",
        DropCall("aclose"),
        "LeakError",
    ),
    Mutant(
        "leaked list that broke off",
        "listwatch.pager",
        "Pager._page",
        DropCall("close"),
        "",
        "It is collected, and the loop closes it.",
    ),
    Mutant(
        "version ahead of the store",
        "reflector.reflector",
        "Reflector._apply",
        MoveBehind("apply", behind="_last_version"),
    ),
    Mutant(
        "version ahead of the store after a list",
        "reflector.reflector",
        "Reflector._replace",
        MoveBehind("replace", behind="_last_version"),
    ),
    Mutant(
        "a bookmark is an update",
        "reflector.event_decoder",
        "EventDecoder.changes_of",
        ReplaceAssigned(
            "delta_type", by="DELTA_TYPES.get(kind, DeltaType.UPDATED if kind == BOOKMARK else None)"
        ),
    ),
    Mutant(
        "bookmarks move no version",
        "reflector.event_decoder",
        "EventDecoder.changes_of",
        ReplaceCondition("from_any", nth=1, by="not from_any and kind != BOOKMARK"),
        "",
        "It costs lists, and loses nothing.",
    ),
    Mutant(
        "any bookmark ends the initial events",
        "reflector.initial",
        "is_closing",
        ReplaceCondition("INITIAL_EVENTS_END", by="False"),
        "",
        "Any bookmark says that everything up to it was sent, as the closing one does.",
    ),
    Mutant(
        "no list after 410 in the stream",
        "reflector.next_step",
        "after_end",
        ReplaceCondition("is_too_many_requests", by="True"),
    ),
    Mutant(
        "events behind the closing bookmark are lost",
        "reflector.reflector",
        "Reflector._watch_list",
        DropCall("put_back"),
    ),
    Mutant(
        "deletions among the initial events are ignored",
        "reflector.initial",
        "InitialEvents._put",
        DropCall("pop"),
    ),
    Mutant(
        "a refused version is requested again",
        "reflector.reflector",
        "Reflector._list",
        DropAssignment("unavailable"),
        "",
        "Lists are streamed, whose refusal says so first. tests/reflector/test_reflector.py lists at such versions.",
    ),
    Mutant(
        "half-open watches are not noticed",
        "reflector.watch",
        "OpenWatch.next_batch",
        DropCall("fire_by"),
    ),
    Mutant(
        "lists without an answer never time out",
        "listwatch.pager",
        "Pager._next",
        ReplaceAssigned("seconds", by="1e9"),
        "",
        "The Client has a timeout of its own.",
    ),
    Mutant(
        "a watch begins anywhere",
        "reflector.reflector",
        "Reflector._watch",
        ReplaceArgument("_open", by='""'),
    ),
    Mutant(
        "pages after the first are lost",
        "listwatch.pager",
        "Pager._page",
        ReplaceArgument(
            "append", by="tuple(await self._turn_in(piece)) if not options.continue_token else ()"
        ),
    ),
    Mutant(
        "an expired continue token ends the list",
        "listwatch.pager",
        "Pager.list",
        ReplaceAssigned(
            "listed", nth=1, by="Listed(listed.pieces, listed.resource_version or resource_version)"
        ),
    ),
    Mutant(
        "no back-off",
        "reflector.reflector",
        "Reflector._back_off",
        ReplaceCall("wait", by="asyncio.sleep(0)"),
    ),
    Mutant(
        "a line torn between two chunks is lost",
        "listwatch.lines",
        "Pending.take",
        ReplaceReturn(nth=1, by="data"),
    ),
]

INFORMER = [
    Mutant(
        "replace deletes other namespaces' objects",
        "informer.shared_informer",
        "SharedIndexInformer._make_controller",
        ReplaceAssigned("part", by="None"),
    ),
    Mutant(
        "missed notify: a late handler does not get the stored objects",
        "informer.shared_informer",
        "SharedIndexInformer.add_event_handler",
        DropCall("add_all", nth=0),
    ),
    Mutant(
        "missed notify: a late handler does not get the undecodable objects",
        "informer.shared_informer",
        "SharedIndexInformer.add_event_handler",
        DropCall("add_all", nth=1),
    ),
    Mutant(
        "synced once the first namespace has",
        "informer.shared_informer",
        "SharedIndexInformer.has_synced",
        CallOther("all", other="any"),
    ),
    Mutant(
        "leaked task: the processor outlives the informer",
        "informer.shared_informer",
        "SharedIndexInformer.run",
        DropCall("_end_handlers", nth=1),
        "LeakError",
    ),
    Mutant(
        "a late handler gets the rest of a list twice",
        "informer.distributor",
        "Distributor.take",
        ReplaceArgument("distribute_all", position=1, by="None"),
    ),
    Mutant(
        "the store does not wait for a handler that blocks",
        "informer.shared_informer",
        "SharedIndexInformer.handle_deltas",
        ReplaceCondition("has_room", by="False"),
        "",
        "The backlog is not bounded then, and nothing is lost. tests/informer/test_real_queue.py looks at its depth.",
    ),
    Mutant(
        "a slice of a batch ends the batch",
        "informer.shared_informer",
        "SharedIndexInformer.handle_deltas",
        ReplaceReturn(name="take_rest", by="None"),
    ),
    Mutant(
        "notifications of a slice are lost",
        "informer.distributor",
        "Distributor.take",
        DropCall("distribute_all"),
    ),
]

PROCESSOR = [
    Mutant(
        "a late handler is never started",
        "processor.processor",
        "Processor.add_listener",
        ReplaceCondition("_tasks", by="False"),
    ),
    Mutant(
        "a removed handler goes on",
        "processor.processor",
        "Processor.remove_listener",
        DropCall("stop"),
    ),
    Mutant(
        "a resync goes to every handler",
        "processor.processor",
        "Processor.distribute_all",
        ReplaceAssigned("gets_all", by="True"),
    ),
    Mutant(
        "a resync goes to every handler once one handler's is due",
        "processor.processor",
        "Processor.distribute_all",
        ReplaceAssigned("gets_all", by="news is notifications or any(self._syncing.values())"),
    ),
    Mutant(
        "a handler's resync is due for ever",
        "processor.processor",
        "Processor.should_resync",
        ReplaceAssigned("due", by="self._syncing[listener] or listener.should_resync(now)"),
        "",
        "It costs calls: a handler with resyncs may get unchanged objects at any time. "
        "tests/informer/test_resync.py counts them.",
    ),
    Mutant(
        "a removed handler still gets what waits",
        "processor.listener",
        "ProcessorListener.stop",
        DropCall("close"),
    ),
    Mutant(
        "a handler has synced before its calls",
        "processor.listener",
        "ProcessorListener.has_synced",
        DropOperand("initial"),
    ),
    Mutant(
        "a listener that has ended accepts notifications",
        "processor.listener",
        "ProcessorListener.run",
        DropCall("stop"),
        "",
        "Its tasks have ended all the same, and its notifications are dropped with it.",
    ),
    Mutant(
        "a batch is never done, so a coalescing handler gets one call",
        "processor.listener",
        "ProcessorListener._run",
        DropCall("task_done"),
    ),
    Mutant(
        "a batch is delivered once its handler was removed",
        "processor.listener",
        "ProcessorListener._run",
        ReplaceCondition("is_closed", by="False"),
    ),
    Mutant(
        "a handler that raises CancelledError ends its listener",
        "processor.calls",
        "HandlerCalls.wait",
        ReplaceExcept("CALL_ERRORS", by="Exception"),
    ),
    Mutant(
        "a plain handler that raises CancelledError ends its listener",
        "processor.calls",
        "HandlerCalls.start",
        ReplaceExcept("CALL_ERRORS", by="Exception"),
    ),
    Mutant(
        "a handler that raises ends its listener",
        "processor.calls",
        "HandlerCalls.wait",
        DropCall("_record_failure", instead="raise"),
    ),
    Mutant(
        "a plain handler that raises ends its listener",
        "processor.calls",
        "HandlerCalls.start",
        DropCall("_record_failure", instead="raise"),
    ),
    Mutant(
        "a call is never counted as delivered",
        "processor.calls",
        "HandlerCalls.end",
        DropCall("record_delivered"),
    ),
    Mutant(
        "missed notify: the last notification of a batch is lost",
        "processor.backlog",
        "PendingNotifications._keep",
        ReplaceArgument("extend", by="notifications[:-1] or notifications"),
    ),
    Mutant(
        "missed notify: new notifications do not wake the pop task",
        "processor.backlog",
        "PendingNotifications.add",
        DropCall("set"),
    ),
    Mutant(
        "a batch is in reverse order",
        "processor.backlog",
        "PendingNotifications.take",
        ReplaceAssigned("batch", by="list(reversed(self._waiting))"),
    ),
    Mutant(
        "a full handler blocks for ever",
        "processor.backlog",
        "Blocking.record_delivered",
        DropCall("set"),
    ),
    Mutant(
        "drop_oldest drops the newest",
        "processor.backlog",
        "DropOldest._keep",
        CallOther("popleft", other="pop"),
        "",
        "Calls may be missing with drop_oldest. tests/processor/test_backlog.py checks which ones are.",
    ),
    Mutant(
        "a handler that loses an initial add never syncs",
        "processor.backlog",
        "PendingNotifications._lose",
        Negate("is_in_initial_list"),
    ),
    Mutant(
        "a handler never syncs after an initial add was merged",
        "processor.backlog",
        "merge",
        ReplaceArgument("AddNotification", position=1, by="False", nth=1),
    ),
    Mutant(
        "a merged deletion is lost",
        "processor.backlog",
        "merge",
        ReplaceReturn(nth=8, by="(first,)"),
    ),
    Mutant(
        "a merged update keeps the first state",
        "processor.backlog",
        "merge",
        ReplaceReturn(nth=10, by="(first,)"),
    ),
    Mutant(
        "what follows a deletion is lost with it",
        "processor.backlog",
        "Coalescing.take",
        ReplaceCondition("rest", by="False"),
    ),
]

MUTANTS = [*QUEUE, *STORE, *REFLECTOR, *INFORMER, *PROCESSOR]
