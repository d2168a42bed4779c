"""A control plane of one's own: etcd and the real kube-apiserver on loopback, gone with its context."""

import asyncio
import base64
import shutil
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.go_build import Report, report_to_stderr
from tests.kubernetes.binaries import ensure_binaries
from tests.kubernetes.configuration import CONTROLLERS, Configuration
from tests.kubernetes.kubectl import run_kubectl
from tests.kubernetes.probes import answers_ok, post_json
from tests.kubernetes.process import ServerProcess
from tests.kubernetes.threads import in_thread

READY_DEADLINE = 60.0
GRACE = 5.0


class ControlPlane:
    """etcd and kube-apiserver, and on demand kube-controller-manager.

    Used as `with` or as `async with`; belongs to no event loop, so a session's fixture can hold it while each
    test has a loop of its own. Coroutines may be awaited from any loop, one at a time.

    Cancellation: a cancelled coroutine gives up its work (ends a server half-way up) before it raises.

    Args:
        feature_gates: of the kube-apiserver, e.g. `{"ShardedListAndWatch": True}`.
        extra_args: further flags for the kube-apiserver, after our own.
        report: is told of builds, which take minutes.
    """

    def __init__(
        self,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        extra_args: Sequence[str] = (),
        report: Report = report_to_stderr,
    ) -> None:
        self._feature_gates = dict(feature_gates or {})
        self._extra_args = list(extra_args)
        self._report = report
        self._configuration: Configuration | None = None
        self._processes: dict[str, ServerProcess] = {}

    @property
    def url(self) -> str:
        return self._running.url

    @property
    def token(self) -> str:
        """Of a user who may do everything (group system:masters)."""
        return self._running.token

    @property
    def powerless_token(self) -> str:
        """Of a user whom the server knows and who may do nothing: 403."""
        return self._running.powerless_token

    @property
    def ca_file(self) -> Path:
        """What the server's certificate verifies against."""
        return self._running.ca_file

    @property
    def kubeconfig(self) -> Path:
        """Contexts "admin" (the current one) and "powerless"."""
        return self._running.kubeconfig

    @property
    def pid(self) -> int | None:
        """The kube-apiserver's; None while it does not run."""
        process = self._processes.get("kube-apiserver")
        return process.pid if process is not None else None

    @property
    def _running(self) -> Configuration:
        if self._configuration is None:
            raise RuntimeError("the control plane has not been started")
        return self._configuration

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file)

    def log_tail(self, name: str = "kube-apiserver", lines: int = 30) -> str:
        """The end of a server's log: "kube-apiserver", "etcd" or "kube-controller-manager"."""
        return self._processes[name].log_tail(lines)

    # Start and end

    def start(self, abort: threading.Event | None = None) -> None:
        """Builds what is missing, starts both servers, returns when the API is ready. Blocks.

        Raises:
            ToolchainMissingError, BuildError: the servers could not be built.
            StartError: a server ended or took too long; its log's end is in the message.
            AbortedError: `abort` was set meanwhile.
        """
        abort = abort or threading.Event()
        binaries = ensure_binaries(report=self._report, abort=abort)
        folder = Path(tempfile.mkdtemp(prefix="aioinformer-"))
        configuration = self._configuration = Configuration.make(folder, binaries)
        try:
            configuration.write()
            self._add("etcd", configuration.etcd(), self._etcd_is_ready)
            command = configuration.apiserver(self._feature_gates, self._extra_args)
            self._add("kube-apiserver", command, self._apiserver_is_ready)
            for process in self._processes.values():
                process.start(deadline=READY_DEADLINE, abort=abort)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the servers, removes their data. Blocks. Stopping twice is fine."""
        for process in reversed(self._processes.values()):
            process.stop(grace=GRACE)
        self._processes.clear()
        if self._configuration is not None:
            shutil.rmtree(self._configuration.folder, ignore_errors=True)
            self._configuration = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        try:
            await in_thread(self.start)
        except BaseException:
            self.stop()  # where it was cancelled at the very moment that it was up
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(lambda abort: self.stop())

    # Outages

    def kill(self) -> None:
        """SIGKILL for the kube-apiserver alone."""
        self._processes["kube-apiserver"].kill()

    async def restart(self) -> None:
        """The kube-apiserver again, on its port and with the data it had; kills it first where it runs.

        Its watch cache begins anew: a watch from a resourceVersion before the restart gets 410.
        """
        await self._restart("kube-apiserver")

    def kill_etcd(self) -> None:
        """SIGKILL for etcd alone; its data stay."""
        self._processes["etcd"].kill()

    async def restart_etcd(self) -> None:
        """etcd again, with its data; returns when the API is ready, if the kube-apiserver runs.

        At once after a short outage; the longer it was, the more seldom does the kube-apiserver try again.
        """
        await self._restart("etcd")
        if self.pid is not None:
            await in_thread(self._wait_for_api)

    async def _restart(self, name: str) -> None:
        process = self._processes[name]
        process.kill()
        await in_thread(lambda abort: process.start(deadline=READY_DEADLINE, abort=abort))

    async def compact(self) -> int:
        """Makes etcd forget all revisions before the present one, which is returned.

        Lists that continue from an older one get 410, and so do watches of what the server has no watch cache
        for (events). Watches of the rest are served from the watch cache: restart() empties that.
        """
        return await asyncio.to_thread(self._compact)

    def create_namespace(self) -> str:
        """A new namespace with a name of its own."""
        body = {"metadata": {"generateName": "test-"}}
        url = f"{self.url}/api/v1/namespaces"
        created = post_json(url, body, ca_file=self.ca_file, token=self.token)
        return str(created["metadata"]["name"])

    def start_controller_manager(
        self, controllers: Sequence[str] = CONTROLLERS, abort: threading.Event | None = None
    ) -> None:
        """The controllers that empty namespaces, collect garbage and take protecting finalizers off. Blocks.

        A namespace that held anything is gone 5 s after its deletion, as upstream has it.
        """
        command = self._running.controller_manager(controllers)
        process = self._add("kube-controller-manager", command, self._controller_manager_is_ready)
        process.start(deadline=READY_DEADLINE, abort=abort or threading.Event())

    def stop_controller_manager(self) -> None:
        """From now on nothing is finalised. Blocks."""
        self._processes.pop("kube-controller-manager").stop(grace=GRACE)

    async def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Runs kubectl as the admin and returns what it printed.

        Raises:
            KubectlError: it returned other than 0.
        """
        return await run_kubectl(self._running.kubectl(), *args, stdin=stdin)

    # What the servers say

    def _add(self, name: str, command: Sequence[str | Path], is_ready: Callable[[], bool]) -> ServerProcess:
        process = self._processes[name] = ServerProcess(command, self._running.log(name), is_ready)
        return process

    def _etcd_is_ready(self) -> bool:
        return answers_ok(f"{self._running.etcd_url}/health")

    def _apiserver_is_ready(self) -> bool:
        """Ready in its own words, and past making the namespace that tests use."""
        paths = ("/readyz", "/api/v1/namespaces/default")
        return all(answers_ok(f"{self.url}{path}", ca_file=self.ca_file, token=self.token) for path in paths)

    def _wait_for_api(self, abort: threading.Event) -> None:
        self._processes["kube-apiserver"].wait_until_ready(deadline=READY_DEADLINE, abort=abort)

    def _controller_manager_is_ready(self) -> bool:
        configuration = self._running
        return answers_ok(
            f"https://127.0.0.1:{configuration.controller_manager_port}/healthz",
            ca_file=configuration.controller_manager_ca_file,
        )

    def _compact(self) -> int:
        etcd_url = self._running.etcd_url
        anything = base64.b64encode(b"/").decode()
        revision = int(post_json(f"{etcd_url}/v3/kv/range", {"key": anything})["header"]["revision"])
        post_json(f"{etcd_url}/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision
