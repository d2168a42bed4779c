"""The examples of docs/blocking.md in the programs' own servers and workers. ``make frameworks`` installs these."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from .conftest import Server, wait_until

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


class Program:
    """A server in a process of its own, with a kubeconfig of the embedded API server.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self._log = log

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=10, trust_env=False)

    def wait_ready(self) -> None:
        """Wait until ``/readyz`` says so."""
        deadline = time.monotonic() + 30
        while True:
            try:
                if self.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None, self.printed()
            assert time.monotonic() < deadline, self.printed()
            time.sleep(0.05)

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> float:
        """Stop it; return the seconds that this took."""
        started = time.monotonic()
        self.process.send_signal(sent)
        self.process.wait(15)
        return time.monotonic() - started

    def printed(self) -> str:
        return self._log.read_text()


@pytest.fixture
def environment(server: Server, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a program, with one ConfigMap in its cluster."""
    server.create("a")
    config = tmp_path / "kubeconfig"
    server.portal.call(server.api.kubeconfig, config)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "KUBECONFIG": str(config), "PYTHONPATH": path}


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def run_program(
    environment: dict[str, str], port: int, tmp_path: Path, *command: str | Path
) -> Iterator[Program]:
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            cwd=ROOT,
            stdout=output,
            stderr=output,
            preexec_fn=_heed_interrupts,  # noqa: PLW1509 -- starts no thread
        )
    program = Program(process, f"http://127.0.0.1:{port}", log)
    try:
        yield program
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it


def follow(server: Server, program: Program) -> None:
    """Check that the program's cache follows the cluster."""
    program.wait_ready()
    assert program.get("/configmaps").json() == ["default/a"]
    server.create("b")
    wait_until(lambda: program.get("/configmaps").json() == ["default/a", "default/b"])


@pytest.mark.parametrize("worker", ["sync", "gthread"])
@pytest.mark.parametrize("preload", [False, True])
def test_gunicorn_and_flask(
    server: Server, environment: dict[str, str], port: int, tmp_path: Path, worker: str, preload: bool
) -> None:
    pytest.importorskip("flask")
    pytest.importorskip("gunicorn")
    options = ["--bind", f"127.0.0.1:{port}", "--workers", "2", "--worker-class", worker, "--threads", "2"]
    if preload:
        options.append("--preload")
    command: list[str | Path] = [BIN / "gunicorn", "--config", "examples/blocking/gunicorn_conf.py", *options]
    with run_program(environment, port, tmp_path, *command, "examples.blocking.flask_app:app") as program:
        follow(server, program)
        assert 'aioinformer_synced{informer="configmaps"} 1' in program.get("/metrics").text
        assert server.portal.call(lambda: server.api.open_watches) == 2, "one for each worker"
        assert program.stop() < 5
        assert "Traceback" not in program.printed()
        wait_until(lambda: server.portal.call(lambda: server.api.open_watches) == 0)


def test_gunicorn_that_preloads_a_started_factory_says_what_is_wrong(
    server: Server, environment: dict[str, str], port: int, tmp_path: Path
) -> None:
    pytest.importorskip("flask")
    pytest.importorskip("gunicorn")
    (tmp_path / "early.py").write_text(
        "from examples.blocking.flask_app import app, factory\nfactory.start()\nfactory.wait_for_cache_sync(30)\n"
        "@app.errorhandler(Exception)\ndef say(error):\n    return f'{type(error).__name__}: {error}', 500\n"
    )
    environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    command: list[str | Path] = [BIN / "gunicorn", "--preload", "--bind", f"127.0.0.1:{port}", "early:app"]
    with run_program(environment, port, tmp_path, *command) as program:
        wait_until(lambda: "Booting worker" in program.printed(), 30)
        ready = program.get("/readyz")
        assert ready.status_code == 503
        assert "was started before this process was forked" in ready.text
        assert program.get("/configmaps").text.startswith("ForkedError: ")
        assert "gunicorn's post_fork" in program.get("/configmaps").text
        assert program.stop() < 5, "the child ends, though it inherited a factory"
        assert "SIGSEGV" not in program.printed()


@pytest.mark.parametrize("lazy", [False, True])
def test_uwsgi_and_flask(
    server: Server, environment: dict[str, str], port: int, tmp_path: Path, lazy: bool
) -> None:
    pytest.importorskip("flask")
    if not (BIN / "uwsgi").exists():
        pytest.skip("needs uWSGI")
    ini = (ROOT / "examples/blocking/uwsgi.ini").read_text().replace(":8000", f":{port}")
    ini += f"lazy-apps = {str(lazy).lower()}\nvirtualenv = {sys.prefix}\n"
    (tmp_path / "uwsgi.ini").write_text(ini)
    with run_program(environment, port, tmp_path, BIN / "uwsgi", "--ini", tmp_path / "uwsgi.ini") as program:
        follow(server, program)
        assert server.portal.call(lambda: server.api.open_watches) == 2, "one for each worker"
        assert program.stop() < 10
        assert "Traceback" not in program.printed()


@pytest.mark.parametrize("runner", ["runserver", "gunicorn"])
def test_django(server: Server, environment: dict[str, str], port: int, tmp_path: Path, runner: str) -> None:
    pytest.importorskip("django")
    if runner == "gunicorn":
        pytest.importorskip("gunicorn")
        bind = ["--bind", f"127.0.0.1:{port}", "--workers", "2"]
        command: list[str | Path] = [BIN / "gunicorn", *bind, "examples.blocking.django_app:application"]
    else:
        module = ["-m", "examples.blocking.django_app"]
        command = [sys.executable, *module, "runserver", "--noreload", f"127.0.0.1:{port}"]
    with run_program(environment, port, tmp_path, *command) as program:
        follow(server, program)
        assert program.stop() < 5
        assert "Traceback" not in program.printed()


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_celery(server: Server, environment: dict[str, str], port: int, tmp_path: Path, pool: str) -> None:
    pytest.importorskip("celery")
    environment |= {"QUEUES": str(tmp_path), "POOL": pool}
    command: list[str | Path] = [
        BIN / "celery",
        "--app",
        "examples.blocking.celery_files",
        "worker",
        "--pool",
        pool,
    ]
    ask = [sys.executable, "-m", "examples.blocking.celery_files"]
    with run_program(
        environment, port, tmp_path, *command, "--concurrency", "2", "--loglevel", "info"
    ) as program:
        answer = subprocess.run(ask, env=environment, cwd=ROOT, capture_output=True, timeout=60, check=False)
        assert json.loads(answer.stdout or "null") == ["default/a"], (answer.stderr, program.printed())
        server.create("b")
        time.sleep(0.2)
        answer = subprocess.run(ask, env=environment, cwd=ROOT, capture_output=True, timeout=60, check=False)
        assert json.loads(answer.stdout) == ["default/a", "default/b"]
        assert program.stop() < 10
        assert "Traceback" not in program.printed()


def test_notebook(server: Server, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in the kernel's own event loop, which the factory neither uses nor disturbs."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")

    for name in ("KUBECONFIG", "PYTHONPATH"):
        monkeypatch.setenv(name, environment[name])
    cells = [
        "import asyncio; asyncio.get_running_loop().is_running()",
        "from aioinformer import blocking; factory = blocking.Factory(); factory.start()",
        "maps = factory.for_resource('v1', 'configmaps'); maps.wait_synced(30)",
        "[obj.key for obj in maps.lister.list()]",
        "[event.type for event in maps.events(timeout=0.5)]",
        "await asyncio.sleep(0, bool(factory.ready()))",
        "factory.shutdown(); maps.is_stopped",
    ]
    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    results = [[output["data"]["text/plain"] for output in cell.outputs] for cell in notebook.cells]
    assert results == [["True"], [], ["True"], ["['default/a']"], ["['ADDED']"], ["True"], ["True"]]


def test_script(server: Server, environment: dict[str, str], port: int, tmp_path: Path) -> None:
    with run_program(
        environment, port, tmp_path, sys.executable, "-u", "-m", "examples.blocking.script"
    ) as program:
        wait_until(lambda: "ADDED default/a" in program.printed(), 30)
        server.delete("a")
        wait_until(lambda: "DELETED default/a" in program.printed())
        assert program.stop(signal.SIGINT) < 5
        assert program.printed().startswith("{'default': 1}\nADDED default/a\nDELETED default/a\n")
