"""The rule of cancellation, which stands in docs/internals.md.

One guard asks whose cancellation arrived. The other places that handle cancellation are listed here.
"""

from __future__ import annotations

import ast

import pytest

from .test_one_door import PACKAGE, dotted

GUARDED = {
    **dict.fromkeys(("cancelling", "uncancel"), "asks whose cancellation arrived"),
    **dict.fromkeys(
        ("asyncio.timeout", "asyncio.timeout_at", "asyncio.wait_for", "anyio.get_cancelled_exc_class"),
        "is a deadline: time_limit for user code, anyio's for our own waits",
    ),
    **dict.fromkeys(("asyncio.gather", "asyncio.shield"), "is a wait: see _core/tasks.py"),
    "asyncio.CancelledError": "handles a cancellation",
}
"""Names that only the listed places use, and what that means."""

PLACES = {
    ("_core/cancellation.py", "cancelling"): "the guard",
    ("_core/cancellation.py", "uncancel"): "undoes what user code requested of its own task",
    ("_core/cancellation.py", "asyncio.CancelledError"): "the guard",
    ("_core/cancellation.py", "asyncio.timeout"): "the deadline of user code",
    ("_core/signals.py", "cancelling"): "cancels its caller for each signal",
    ("_core/signals.py", "uncancel"): "undoes that",
    ("_core/signals.py", "asyncio.CancelledError"): "ends without an error after a signal",
    ("_core/tasks.py", "asyncio.CancelledError"): "waits on, and raises it afterwards",
    ("cli/app.py", "asyncio.CancelledError"): "a signal ends the command",
    ("cli/bench.py", "asyncio.CancelledError"): "Ctrl-C ends the measurement, and the report follows",
    ("cli/watching.py", "asyncio.CancelledError"): "Ctrl-C after the list is printed is no error",
    ("client/client.py", "anyio.get_cancelled_exc_class"): "imports anyio's backend early",
    ("client/exec_plugin.py", "asyncio.CancelledError"): "kills the plugin, and raises it",
    ("client/library_transport.py", "asyncio.CancelledError"): "ends loading, and raises it",
    ("events/recorder.py", "asyncio.CancelledError"): "logs why events are dropped, and raises it",
    ("fifo/queue.py", "asyncio.CancelledError"): "locks again first, and raises it afterwards",
    ("informer/shared_informer.py", "asyncio.CancelledError"): "a failure matters more",
    ("leaderelection/elector.py", "asyncio.timeout"): "a loss of the lease is the deadline of the body",
    ("operator/manager.py", "asyncio.CancelledError"): "is no failure, and raised",
    (
        "operator/webhooks/server.py",
        "asyncio.CancelledError",
    ): "waits until no API server calls, unless it failed",
    ("operator/workers.py", "cancelling"): "undoes what a reconciler requested of its worker",
    (
        "operator/workers.py",
        "asyncio.CancelledError",
    ): "a worker knows by its run and its owner whether it has to end",
    ("processor/calls.py", "asyncio.CancelledError"): "the failure of a handler that cancels its own task",
    ("processor/listener.py", "cancelling"): "undoes what a handler requested of the run task",
    ("processor/listener.py", "asyncio.CancelledError"): "other code cancelled the run task",
    ("processor/mutation_detector.py", "asyncio.CancelledError"): "compares once more, and raises it",
    ("processor/processor.py", "asyncio.CancelledError"): "other code cancelled a listener's task",
    (
        "reflector/watch.py",
        "cancelling",
    ): "a timer interrupts each read, and a deadline costs as much as an event",
    ("reflector/watch.py", "uncancel"): "undoes that",
    ("reflector/watch.py", "asyncio.CancelledError"): "the stream may have swallowed it",
    ("reflector/retry_watcher.py", "asyncio.timeout"): "aclose() is the deadline of a task that waits",
    (
        "watchtools/retry_watcher.py",
        "asyncio.CancelledError",
    ): "watches again from the same version, and raises it",
    ("workqueue/queue.py", "asyncio.CancelledError"): "wakes another worker, and raises it",
}
"""The places that may, and why."""

APART = "testing/"
"""The embedded API server calls no user code."""


def guarded_names(source: str) -> set[str]:
    """Return the names of GUARDED that a module uses."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            names |= {node.attr, dotted(node)} & GUARDED.keys()
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} & GUARDED.keys()
    return names


def test_only_the_listed_places_handle_cancellation() -> None:
    paths = {path: path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    used = {
        (name, guarded)
        for path, name in paths.items()
        if not name.startswith(APART)
        for guarded in guarded_names(path.read_text())
    }
    advice = [f"{path}: {name} {GUARDED[name]}" for path, name in sorted(used - PLACES.keys())]
    assert not advice, advice
    assert used == PLACES.keys(), "these places need it no more"


def user_code_in_scopes(source: str) -> list[int]:
    """Return the lines that call user code inside a scope of anyio, which would cancel each await of its clean-up."""
    return [
        call.lineno
        for block in ast.walk(ast.parse(source))
        if isinstance(block, ast.With)
        and any(
            ast.unparse(item.context_expr).startswith(("anyio.move_on", "anyio.fail")) for item in block.items
        )
        for call in ast.walk(block)
        if isinstance(call, ast.Call) and dotted(call.func) == "maybe_await"
    ]


def test_user_code_runs_in_no_scope_of_anyio() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not user_code_in_scopes(path.read_text()), path


def test_user_code_in_a_scope_is_seen() -> None:
    source = "async def f():\n    with anyio.move_on_after(1):\n        await maybe_await(call())"
    assert user_code_in_scopes(source) == [3]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("asyncio.current_task().cancelling()", "cancelling"),
        ("try:\n    pass\nexcept (Exception, asyncio.CancelledError):\n    pass", "asyncio.CancelledError"),
        ("from asyncio import CancelledError", "asyncio.CancelledError"),
        ("async def f():\n    async with asyncio.timeout(1):\n        pass", "asyncio.timeout"),
        ("from asyncio import wait_for", "asyncio.wait_for"),
    ],
)
def test_uses_are_seen(source: str, name: str) -> None:
    assert guarded_names(source) == {name}
