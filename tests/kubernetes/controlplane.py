"""A control plane on loopback: etcd and the real kube-apiserver, which end with its context."""

import asyncio
import base64
import json
import shutil
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
    """etcd and kube-apiserver, and on demand kube-controller-manager. A `with` or `async with` context.

    It belongs to no event loop, so a session's fixture can keep it while each test has its own loop. Coroutines may be
    awaited from any loop, one at a time.

    Cancellation: a cancelled coroutine stops a server that is still starting, then raises.

    Args:
        feature_gates: Gates of the kube-apiserver, e.g. `{"ShardedListAndWatch": True}`.
        extra_args: Further flags for the kube-apiserver, after our own.
        report: Called with a line about each build, which takes minutes.
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
        """The token of a user who may do everything (group system:masters)."""
        return self._running.token

    @property
    def powerless_token(self) -> str:
        """The token of a known user without any rights: 403."""
        return self._running.powerless_token

    @property
    def ca_file(self) -> Path:
        """The authority of the server's certificate."""
        return self._running.ca_file

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig, with contexts "admin" (the current one) and "powerless"."""
        return self._running.kubeconfig

    @property
    def pid(self) -> int | None:
        """The process id of the kube-apiserver; None while it does not run."""
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
        """Return the end of a server's log: "kube-apiserver", "etcd" or "kube-controller-manager"."""
        return self._processes[name].log_tail(lines)

    # Start and end

    def start(self, abort: threading.Event | None = None) -> None:
        """Build what is missing, start both servers, and return when the API is ready. Blocks.

        Raises:
            ToolchainMissingError, BuildError: The servers could not be built.
            StartError: A server ended or took too long; the message has the end of its log.
            AbortedError: `abort` was set meanwhile.
        """
        abort = abort or threading.Event()
        binaries = ensure_binaries(report=self._report, abort=abort)
        folder = Path(tempfile.mkdtemp(prefix="aioinformer-"))
        configuration = self._configuration = Configuration.make(folder, binaries)
        try:
            configuration.write()
            self._add("etcd", configuration.etcd(), self._etcd_is_ready)
            self._add_apiserver()
            for process in self._processes.values():
                process.start(deadline=READY_DEADLINE, abort=abort)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the servers and remove their data. Blocks. May be called twice."""
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
            self.stop()  # it was cancelled just when the server was ready
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(lambda abort: self.stop())

    # Outages

    def kill(self) -> None:
        """Send SIGKILL to the kube-apiserver alone."""
        self._processes["kube-apiserver"].kill()

    async def restart(self, *, feature_gates: Mapping[str, bool] | None = None) -> None:
        """Start the kube-apiserver again, on its port and with its data; kill it first if it runs.

        Its watch cache is empty then: a watch from a resourceVersion before the restart gets 410.

        Args:
            feature_gates: Its gates from now on; None for those that it had.
        """
        if feature_gates is not None:
            self.kill()
            self._feature_gates = dict(feature_gates)
            self._add_apiserver()
        await self._restart("kube-apiserver")

    def kill_etcd(self) -> None:
        """Send SIGKILL to etcd alone; its data stay."""
        self._processes["etcd"].kill()

    async def restart_etcd(self) -> None:
        """Start etcd again, with its data; return when the API is ready, if the kube-apiserver runs.

        The kube-apiserver reconnects with back-off, so this takes longer after a longer outage.
        """
        await self._restart("etcd")
        if self.pid is not None:
            await in_thread(self._wait_for_api)

    async def _restart(self, name: str) -> None:
        process = self._processes[name]
        process.kill()
        await in_thread(lambda abort: process.start(deadline=READY_DEADLINE, abort=abort))

    async def compact(self) -> int:
        """Compact etcd's history up to the current revision, and return that revision.

        Lists that continue from an older revision get 410. So do watches of resources without a watch cache (events).
        Other watches are served from the watch cache, which restart() empties.
        """
        return await asyncio.to_thread(self._compact)

    async def stored_objects(self, group: str, plural: str) -> list[dict[str, Any]]:
        """Return the objects of a custom resource as etcd has them: in the version in which each is stored."""
        return await asyncio.to_thread(self._stored_objects, group, plural)

    def create_namespace(self) -> str:
        """Create a namespace with a unique name."""
        body = {"metadata": {"generateName": "test-"}}
        url = f"{self.url}/api/v1/namespaces"
        created = post_json(url, body, ca_file=self.ca_file, token=self.token)
        return str(created["metadata"]["name"])

    def define(self, definition: dict[str, Any]) -> None:
        """Create a CustomResourceDefinition, and wait until its resource is served. Blocks."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        post_json(self.url + path, definition, ca_file=self.ca_file, token=self.token)
        spec = definition["spec"]
        collection = (
            f"{self.url}/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        )
        deadline = time.monotonic() + READY_DEADLINE
        while not answers_ok(collection, ca_file=self.ca_file, token=self.token):
            assert time.monotonic() < deadline, f"{collection} is not served"
            time.sleep(0.05)

    def start_controller_manager(
        self, controllers: Sequence[str] = CONTROLLERS, abort: threading.Event | None = None
    ) -> None:
        """Start the controllers that empty namespaces, collect garbage and remove protecting finalizers. Blocks.

        As upstream, a namespace with objects is gone 5 s after its deletion.
        """
        command = self._running.controller_manager(controllers)
        process = self._add("kube-controller-manager", command, self._controller_manager_is_ready)
        process.start(deadline=READY_DEADLINE, abort=abort or threading.Event())

    def stop_controller_manager(self) -> None:
        """Stop these controllers. Blocks."""
        self._processes.pop("kube-controller-manager").stop(grace=GRACE)

    async def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl as the admin and return its output.

        Raises:
            KubectlError: Its exit code was not 0.
        """
        return await run_kubectl(self._running.kubectl(), *args, stdin=stdin)

    # Readiness

    def _add(self, name: str, command: Sequence[str | Path], is_ready: Callable[[], bool]) -> ServerProcess:
        process = self._processes[name] = ServerProcess(command, self._running.log(name), is_ready)
        return process

    def _add_apiserver(self) -> None:
        command = self._running.apiserver(self._feature_gates, self._extra_args)
        self._add("kube-apiserver", command, self._apiserver_is_ready)

    def _etcd_is_ready(self) -> bool:
        return answers_ok(f"{self._running.etcd_url}/health")

    def _apiserver_is_ready(self) -> bool:
        """Whether the server reports that it is ready, and has created the namespace that tests use."""
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

    def _stored_objects(self, group: str, plural: str) -> list[dict[str, Any]]:
        prefix = f"/registry/{group}/{plural}/".encode()
        ends = prefix[:-1] + bytes([prefix[-1] + 1])
        asked = {"key": base64.b64encode(prefix).decode(), "range_end": base64.b64encode(ends).decode()}
        answer = post_json(f"{self._running.etcd_url}/v3/kv/range", asked)
        return [json.loads(base64.b64decode(entry["value"])) for entry in answer.get("kvs", [])]
