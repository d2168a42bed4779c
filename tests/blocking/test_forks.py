"""A process that is forked beside a running factory: the child knows it, and ends without a hang."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from .conftest import Server

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run_forking(server: Server, child: str, parent: str = "", *, use_uvloop: bool = False) -> str:
    """Run a program that forks beside a factory; return what it prints. It must end by itself, without a warning."""
    program = f"""
import os, sys
from aioinformer import Client, blocking
use_uvloop = {use_uvloop}
with blocking.Factory(Client.from_url({server.url!r}), use_uvloop=use_uvloop) as factory:
    maps = factory.for_resource("v1", "configmaps")
    maps.wait_synced(30)
    lister, events = maps.lister, maps.events(timeout=5)
    registration = maps.add_event_handler(on_add=lambda obj, is_in_initial_list: None)
    registration.wait_synced(30)
    next(events)
    if not (child := os.fork()):
{textwrap.indent(textwrap.dedent(child).strip(), " " * 8)}
    else:
        assert os.waitpid(child, 0)[1] == 0
{textwrap.indent(textwrap.dedent(parent).strip(), " " * 8)}
"""
    options = [] if sys.version_info < (3, 12) else ["-W", "ignore:This process:DeprecationWarning"]
    ended = subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ended.stderr, ended.returncode) == ("", 0)
    return ended.stdout


@pytest.mark.parametrize("use_uvloop", [False, True])
def test_a_child_is_not_ready_and_reads_raise_and_leaving_ends(server: Server, use_uvloop: bool) -> None:
    server.create("a", "b")
    printed = run_forking(
        server,
        """
        print(bool(factory.ready()), bool(factory.healthy()), maps.has_synced(), registration.has_synced())
        print(factory.ready(), maps.state, sep="; ")
        uses = [
            lister.list, lambda: lister.get("default/a"), lister.namespace("default").list, lister.undecodable,
            lambda: maps.indexer, lambda: maps.lister.list(),
            maps.wait_synced, lambda: maps.wait_for("1"), registration.wait_synced, factory.wait_for_cache_sync,
            lambda: next(events), lambda: next(maps.events()),
            lambda: maps.add_event_handler(on_add=print), lambda: maps.remove_event_handler(registration),
            lambda: maps.add_indexers({"app": "metadata.labels.app"}),
            lambda: factory.for_resource("v1", "pods"), lambda: factory.for_resource("v1", "configmaps"),
            factory.start, factory.__enter__, lambda: factory.remove(maps), lambda: factory.call(int),
        ]
        for use in uses:
            try:
                print(use())
            except Exception as error:
                print(type(error).__name__, "start it after the fork" in str(error))
        events.close()
        if use_uvloop:  # libuv crashes at the exit of such a child: see docs/blocking.md
            factory.__exit__(None, None, None)
            sys.stdout.flush()
            os._exit(0)
        """,
        "print('parent', bool(factory.ready()), len(maps.lister.list()))",
        use_uvloop=use_uvloop,
    )
    first, reasons, *refusals, parent = printed.splitlines()
    assert first == "False False False False"
    assert reasons.count("was started before this process was forked") == 2
    assert refusals == ["ForkedError True"] * 21
    assert parent == "parent True 2"


def test_an_error_in_the_child_is_not_hidden_by_the_exit(server: Server) -> None:
    server.create("a")
    printed = run_forking(
        server,
        """
        sys.excepthook = lambda kind, error, traceback: (print(kind.__name__, flush=True), os._exit(0))
        maps.lister.list()
        """,
    )
    assert printed == "ForkedError\n"


def test_a_child_starts_a_factory_of_its_own(server: Server) -> None:
    server.create("a")
    printed = run_forking(
        server,
        f"""
        with blocking.Factory(Client.from_url({server.url!r})) as own:
            mine = own.for_resource("v1", "configmaps")
            print(mine.wait_synced(30), [obj.name for obj in mine.lister.list()])
        """,
        "print('parent', bool(factory.ready()))",
    )
    assert printed == "True ['a']\nparent True\n"


def test_a_factory_that_was_not_started_is_started_in_each_child(server: Server) -> None:
    """As with gunicorn --preload, and a hook that starts the factory after the fork."""
    server.create("a")
    program = f"""
import os
from aioinformer import Client, blocking
factory = blocking.Factory(Client.from_url({server.url!r}))
maps = factory.for_resource("v1", "configmaps")
maps.add_event_handler(on_add=lambda obj, is_in_initial_list: print(obj.name, flush=True))
for _ in range(2):
    if not (child := os.fork()):
        with factory:
            maps.wait_synced(30)
            next(maps.events())
            assert factory.ready()
            break
    os.waitpid(child, 0)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("a\na\n", "")
