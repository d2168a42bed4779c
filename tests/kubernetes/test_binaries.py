"""The build: its error without Go, that it runs once, and that it can be aborted.

A shell script replaces Go here; test_controlplane uses the real one.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.go_build import AbortedError, BuildError, ToolchainMissingError
from tests.kubernetes import binaries
from tests.kubernetes.binaries import COMMANDS, KUBERNETES, ensure_binaries

pytest_plugins = ["pytester"]

FakeGo = Callable[..., None]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(binaries, "KUBERNETES", replace(KUBERNETES, cache=folder))
    return folder


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """Put a `go` of the given version on PATH that runs the given shell lines as `go build`."""

    def put(version: str = "go1.26.8", build: str = 'echo x > "$6"') -> None:
        script = tmp_path / "path" / "go"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nif [ "$1" = env ]; then echo {version}; exit; fi\n{build}\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")

    return put


@pytest.fixture
def no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("cache", "no_go")
def test_without_go_it_says_what_to_install() -> None:
    with pytest.raises(ToolchainMissingError, match=r"no Go toolchain on PATH: install Go 1\.26 or later"):
        ensure_binaries()


@pytest.mark.usefixtures("cache")
def test_error_names_an_old_go(fake_go: FakeGo) -> None:
    fake_go(version="go1.24.9")
    with pytest.raises(ToolchainMissingError, match=r"too old \(go1\.24\.9\): install Go 1\.26"):
        ensure_binaries()


def test_existing_build_is_not_built_again(
    cache: Path, fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go()
    messages: list[str] = []
    built = ensure_binaries(report=messages.append)
    assert sorted(path.name for path in built.iterdir()) == sorted(COMMANDS)
    assert len(messages) == 2 * len(COMMANDS)
    monkeypatch.setenv("PATH", "")
    assert ensure_binaries(report=messages.append) == built
    assert len(messages) == 2 * len(COMMANDS)


def test_changed_sources_make_a_new_build_and_remove_the_old_one(
    cache: Path, fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go()
    former = ensure_binaries(report=lambda line: None)
    flags = (*KUBERNETES.flags[:-1], "-s")
    monkeypatch.setattr(binaries, "KUBERNETES", replace(KUBERNETES, cache=cache, flags=flags))
    assert ensure_binaries(report=lambda line: None) != former
    assert not former.exists()


@pytest.mark.usefixtures("cache")
def test_concurrent_builds_run_once(fake_go: FakeGo) -> None:
    fake_go(build='sleep 0.1; echo x > "$6"')
    messages: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        folders = set(pool.map(lambda _: ensure_binaries(report=messages.append), range(2)))
    assert len(folders) == 1
    assert len([line for line in messages if ": built " in line]) == len(COMMANDS)
    assert "kubernetes: waiting for the build that another process has begun" in messages


@pytest.mark.usefixtures("cache")
def test_failed_build_shows_the_output_of_go(fake_go: FakeGo) -> None:
    fake_go(build="echo no such module; exit 1")
    with pytest.raises(BuildError, match="no such module"):
        ensure_binaries(report=lambda line: None)


@pytest.mark.usefixtures("cache")
def test_build_can_be_aborted(fake_go: FakeGo) -> None:
    fake_go(build="exec sleep 60")
    abort = threading.Event()
    threading.Timer(0.2, abort.set).start()
    with pytest.raises(AbortedError):
        ensure_binaries(report=lambda line: None, abort=abort)


@pytest.mark.usefixtures("cache", "no_go")
@pytest.mark.parametrize(("ci", "outcome"), [("", "skipped"), ("true", "failed")])
def test_without_go_tests_skip_and_in_ci_they_fail(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: str
) -> None:
    monkeypatch.setenv("CI", ci)
    pytester.makepyfile("def test_it(kubernetes_binaries): pass")
    result = pytester.runpytest_inprocess(
        "-p", "tests.kubernetes.fixtures", "-p", "no:asyncio", "-p", "no:anyio", "-rsfE"
    )
    result.assert_outcomes(**({"skipped": 1} if outcome == "skipped" else {"errors": 1}))
    result.stdout.fnmatch_lines(["*install Go 1.26 or later*"])
