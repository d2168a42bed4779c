"""The rule of cancellation, which stands in docs/internals.md: one guard asks whose cancellation arrived."""

from __future__ import annotations

import ast

import pytest

from .test_one_door import PACKAGE, dotted_name

HANDLERS = {
    *("cancelling", "uncancel", "asyncio.CancelledError"),
    *("asyncio.timeout", "asyncio.timeout_at", "asyncio.wait_for", "asyncio.gather", "asyncio.shield"),
}
"""Names of what handles cancellations, deadlines and waits beside the guard, ``_core/tasks.py`` and anyio."""

ASKING = {
    "_core/signals.py": "cancels its caller for each signal, and undoes that",
    "operator/workers.py": "undoes what a reconciler requests of its worker",
    "processor/listener.py": "undoes what a handler requests of the run task",
    "sharding/sharding.py": "the loss of the slots may arrive together with a cancellation",
    "reflector/watch.py": "a timer interrupts each read: a deadline would cost as much as an event",
}
"""Files that ask whose cancellation arrived, and why."""

OTHERS = {
    "_core/threads.py": "a thread cannot be cancelled, so it waits for it",
    "cli/interruption.py": "a signal ends the command",
    "cli/bench.py": "Ctrl-C ends the measurement, and the report follows",
    "cli/watching.py": "Ctrl-C after the list is printed is no error",
    "client/exec_plugin.py": "kills the plugin",
    "client/library_transport.py": "ends loading",
    "events/recorder.py": "logs why events are dropped",
    "fifo/queue.py": "locks again first",
    "informer/shared_informer.py": "a failure matters more",
    "leaderelection/elector.py": "the loss of the lease is the deadline of the body",
    "operator/manager.py": "is no failure",
    "operator/webhooks/server.py": "serves until no API server calls, unless it failed",
    "processor/calls.py": "the failure of a handler that cancels its own task",
    "processor/mutation_detector.py": "compares once more",
    "processor/processor.py": "other code cancelled a listener's task",
    "reflector/retry_watcher.py": "aclose() is the deadline of a task that waits",
    "workqueue/queue.py": "wakes another worker",
}
"""Files that clean up when they are cancelled, or interrupt user code once, and why."""

APART = ("_core/cancellation.py", "_core/tasks.py", "testing/")


def handlers_in(source: str) -> set[str]:
    """Return the names of HANDLERS that a module uses."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            names |= {node.attr, dotted_name(node)} & HANDLERS
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} & HANDLERS
    return names


def user_code_in_scopes(source: str) -> list[int]:
    """Return the lines that call user code in a scope of anyio, which would cancel each await of its clean-up."""
    return [
        call.lineno
        for block in ast.walk(ast.parse(source))
        if isinstance(block, ast.With)
        and any(
            ast.unparse(item.context_expr).startswith(("anyio.move_", "anyio.fail_")) for item in block.items
        )
        for call in ast.walk(block)
        if isinstance(call, ast.Call) and dotted_name(call.func) == "maybe_await"
    ]


def test_only_the_listed_files_handle_cancellation() -> None:
    handling, asking = set(), set()
    for path in PACKAGE.rglob("*.py"):
        name, source = path.relative_to(PACKAGE).as_posix(), path.read_text()
        assert not user_code_in_scopes(source), name
        if not name.startswith(APART) and (names := handlers_in(source)):
            handling.add(name)
            if names & {"cancelling", "uncancel"}:
                asking.add(name)
    assert handling == {*ASKING, *OTHERS}
    assert asking == {*ASKING}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("task.cancelling()", "cancelling"),
        ("try:\n    pass\nexcept (Exception, asyncio.CancelledError):\n    pass", "asyncio.CancelledError"),
        ("from asyncio import wait_for", "asyncio.wait_for"),
    ],
)
def test_uses_are_seen(source: str, name: str) -> None:
    assert handlers_in(source) == {name}


def test_user_code_in_a_scope_is_seen() -> None:
    assert user_code_in_scopes("with anyio.move_on_after(1):\n    maybe_await(call())") == [2]
