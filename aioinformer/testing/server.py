"""The embedded API server: its lifecycle, and the Python API for tests."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aioinformer._core.forks import current_process
from aioinformer._core.tasks import finish
from aioinformer.errors import ForkedError, WrongEventLoopError
from aioinformer.testing import errors
from aioinformer.testing.access.accounts import Accounts
from aioinformer.testing.access.authentication import Authenticator
from aioinformer.testing.access.authorization import MASTERS, Authorizer
from aioinformer.testing.access.tls import Certificates, kubeconfig, write_kubeconfig
from aioinformer.testing.apply.patches import JSON_PATCH, MERGE_PATCH, apply_patch
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.deletion import delete, delete_collection
from aioinformer.testing.cluster.options import DeleteOptions, WriteOptions
from aioinformer.testing.control import Control
from aioinformer.testing.controllers.controller import work_all
from aioinformer.testing.controllers.controlplane import CONTROLLERS
from aioinformer.testing.controllers.controlplane import control_plane as controllers_of
from aioinformer.testing.controllers.definitions import Definitions
from aioinformer.testing.faults import Fault, Faults
from aioinformer.testing.http.handler import Handler
from aioinformer.testing.http.listener import Listener
from aioinformer.testing.http.selection import Selection
from aioinformer.testing.objects import Object
from aioinformer.testing.requests import Request
from aioinformer.testing.resources import ResourceType
from aioinformer.testing.state import restore_state, save_state
from aioinformer.testing.storage.builtin import NAMESPACES
from aioinformer.testing.storage.codec import load
from aioinformer.testing.storage.selectors import FieldSelector, parse_labels
from aioinformer.testing.storage.storage import StoredObject
from aioinformer.testing.users import ANONYMOUS, User, user_of
from aioinformer.testing.webhooks import Webhooks
from aioinformer.testing.workloads import Workloads

_REQUESTS_KEPT = 10_000
_STEPS_PER_SLICE = 50
_WHOLE = WriteOptions(whole=True)
_Objects = list[Object]


class APIServer:
    """A Kubernetes API server inside the process, on a real socket of the loopback interface.

        async with APIServer() as server:
            server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {}})
            async with Client.from_url(server.url) as client: ...

    It implements the API of kube-apiserver v1.36: lists with pages and resourceVersions, watches with bookmarks and
    initial events, optimistic concurrency, finalizers, patches, custom resources, and discovery for kubectl. `faults`
    injects failures.

    Requests call the webhooks that configurations and definitions on the server name.

    The Python API (`create`, `update`, ...) is synchronous and also works before `start` and after `stop`. It bypasses
    permissions and webhooks, creates missing namespaces, and writes object and status in one step. While the server
    runs, call its writing methods in the thread of its event loop, inside that loop or outside of any; otherwise they
    raise WrongEventLoopError.

    Caveats:
        - The Python API does not validate specs; requests are validated as on the real server.
        - Objects show `managedFields` from their first server-side apply or write by kubectl on.
        - A request for a resourceVersion in the future fails immediately; the real server waits 3 s first.
        - A watch without timeoutSeconds has no timeout.
        - Answers are never compressed.
        - A Host or Origin other than the loopback interface gets 403.

    Args:
        port: The port on 127.0.0.1; 0 for a free one.
        tls: Serve https with a certificate of the server's own authority (`ca_pem`); needs `aioinformer[testing]`.
        token: A bearer token that requests must carry; without it every request is allowed. Add and remove further
            tokens in `tokens` at any time.
        history: How many changes of each resource a watch can go back; older versions get 410.
        watch_buffer: How many changes a watch may lag behind before the server ends its stream; at least `history`.
        bookmark_interval: Seconds between the bookmarks of a watch.
        watch_list: Support `sendInitialEvents` in watches; False refuses it, like a server with the WatchList feature
            off.
        shards: Support `shardSelector` in lists and watches, like a server with the feature gate ShardedListAndWatch.
            Without, it ignores that, which is the real server's default.
        control_plane: Run the controllers that deletion needs: empty namespaces, release volumes, collect garbage,
            end pods. False runs none, like a bare kube-apiserver. Names out of `CONTROLLERS` run those only; they are
            the names of kube-controller-manager's `--controllers`.
        workloads: Also play the workload controllers, the scheduler and the kubelet: Deployments, ReplicaSets,
            StatefulSets, DaemonSets and Jobs make pods, and pods become Running and Ready. CronJobs make Jobs on
            command, claims are bound, and Services get EndpointSlices. See `workloads`.
        rbac: Enforce Roles and ClusterRoles, as `--authorization-mode=RBAC`, for impersonated users, `users` and tokens
            of service accounts. Requests with `token`, or without any token if there is none, may do everything.
            kube-system then has the real server's ConfigMap about old tokens, too.
        webhooks: Call the webhooks that configurations of admission name; False ignores these configurations.
        control: Answer requests to `/faults` and `/state`, which inject faults and return the state. They need `token`,
            like every request.
        on_answer: Called with each request when its answer has ended, also when its connection was reset.
        seed: Makes uids and generated names repeatable.
        clock: Returns the time for timestamps.

    Attributes:
        cluster: The resources and objects, for operations that the Python API lacks.
        faults: Fault injection.
        requests: The latest 10,000 requests, oldest first.
        tokens: The accepted bearer tokens, if a token was given.
        users: Users, or just their names, by their bearer tokens, which are accepted, too. `request.user` has the name;
            it is `"embedded"` for the other `tokens`. Tokens that a TokenRequest has issued are accepted without being
            here.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        tls: bool = False,
        token: str | None = None,
        history: int = 10_000,
        watch_buffer: int = 10_000,
        bookmark_interval: float = 60.0,
        watch_list: bool = True,
        shards: bool = False,
        control_plane: bool | Collection[str] = True,
        workloads: bool = False,
        rbac: bool = False,
        webhooks: bool = True,
        control: bool = False,
        on_answer: Callable[[Request], object] | None = None,
        seed: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cluster = Cluster(
            history=history, watch_buffer=watch_buffer, seed=seed, clock=clock, dates_tokens=rbac
        )
        self.tokens: set[str] = set() if token is None else {token}
        self.users: dict[str, str | User] = {}
        self.requests: deque[Request] = deque(maxlen=_REQUESTS_KEPT)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._token = token
        self._rbac = rbac
        self._forbidden: list[Fault] = []
        self._authorizer = Authorizer(
            self.cluster, forbidden=self._forbidden, needs_token=token is not None, rbac=rbac
        )
        self._certificates = Certificates() if tls else None
        wanted = (CONTROLLERS if control_plane else ()) if isinstance(control_plane, bool) else control_plane
        self._work = asyncio.Event()
        self._workloads = Workloads(self.cluster, self._work.set) if workloads else None
        self._controllers = [
            Definitions(self.cluster),
            *controllers_of(self.cluster, wanted),
            *(self._workloads.controllers if self._workloads is not None else ()),
        ]
        self._worker: asyncio.Task[None] | None = None
        self._process = current_process()
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None  # thread and loop, while it runs
        self.faults = Faults(
            self.cluster,
            watches=lambda: list(self._handler.watches),
            listener=lambda: self._listener,
            accept=self._accept,
            require_owner=self._require_owner,
        )
        accounts = Accounts(self.cluster)
        self._webhooks = Webhooks(self.cluster, admits=webhooks)
        self.cluster.conversions = self._webhooks.conversions
        tokenless = user_of(ANONYMOUS) if token is not None or not rbac else self._administrator
        self._handler = Handler(
            self.cluster,
            self.faults,
            authenticator=Authenticator(self._user_of, accounts, tokenless),
            accounts=accounts,
            webhooks=self._webhooks,
            authorizer=self._authorizer,
            record=self._record,
            changed=self._notify_changed,
            bookmark_interval=bookmark_interval,
            watch_list=watch_list,
            shards=shards,
            control=Control(self.faults, self.save_state) if control else None,
            answered=on_answer,
        )
        context = None if self._certificates is None else self._certificates.server_context
        self._listener = Listener(self._handler, port, context)

    # Lifecycle

    async def start(self) -> None:
        """Open the port; `url` is valid from now on.

        Raises:
            RuntimeError: The server is running already.
        """
        if self._worker is not None:
            raise RuntimeError("the API server is running already")
        await self._listener.listen()
        self._owner = threading.get_ident(), asyncio.get_running_loop()
        self._process = current_process()
        self._worker = asyncio.create_task(self._work_in_slices(), name="aioinformer.testing controllers")

    async def stop(self) -> None:
        """Close the port, reset every connection, and wait until the server's tasks have ended.

        The objects remain, and `start` opens the same port again.

        Raises:
            MatchingError: The `matching` of a fault raised; the server is stopped anyway.
            WrongEventLoopError: The server runs in another event loop.
        """
        self._require_owner()
        worker, self._worker = self._worker, None
        if worker is not None:
            await finish(worker)
        await self._listener.stop()
        await self._webhooks.close()
        self._owner = None
        self.faults.raise_first()

    async def restart(self) -> None:
        """Stop and start on the same port with the same objects, as when the server's process is replaced."""
        await self.stop()
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def pause(self) -> None:
        """Keep every connection open but silent, and answer nothing, until `resume`."""
        self.faults.pause()

    def resume(self) -> None:
        """End a pause."""
        self.faults.resume()

    # Address

    @property
    def port(self) -> int:
        """The port; 0 before the first start if no port was given."""
        return self._listener.port

    @property
    def url(self) -> str:
        """The server's address, such as `http://127.0.0.1:40001`.

        Raises:
            RuntimeError: The server was never started and has no fixed port.
            WrongEventLoopError: Another event loop runs in the server's thread, so the server cannot answer.
        """
        if not self.port:
            raise RuntimeError("the API server has no port yet: enter it (async with) or start it first")
        is_own_thread = self._owner is not None and self._owner[0] == threading.get_ident()
        if is_own_thread and not self._process.was_forked:  # to a child process the parent answers
            self._require_owner()
        scheme = "http" if self._certificates is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def token(self) -> str | None:
        """The bearer token given to the constructor."""
        return self._token

    @property
    def ca_pem(self) -> bytes | None:
        """The certificate of the server's own authority; None without TLS."""
        return None if self._certificates is None else self._certificates.ca_pem

    def kubeconfig(self, path: str | Path | None = None) -> dict[str, Any]:
        """Return a kubeconfig for this server.

        Args:
            path: Also write it to this file.
        """
        config = kubeconfig(self.url, token=self._token, ca_pem=self.ca_pem)
        if path is not None:
            write_kubeconfig(Path(path), config)
        return config

    # Objects

    def create(self, api_version: str, plural: str, obj: Object, namespace: str | None = None) -> Object:
        """Create an object in its own namespace, the given one, or `default`.

        Args:
            api_version: `"v1"`, `"apps/v1"` and so on.
            plural: `"pods"`, `"deployments"` and so on.
            obj: The object with its status; it is not modified.
            namespace: The namespace of an object that does not name one; a missing namespace is created.

        Returns:
            The stored object.

        Raises:
            StatusError: As the server answers a request.
        """
        resource = self._writable_resource(api_version, plural)
        namespace = self._namespace(resource, namespace, obj)
        if resource.namespaced and self.cluster.find(NAMESPACES, "", namespace) is None:
            self.cluster.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        stored = self.cluster.create(resource, namespace, obj, _WHOLE)
        self._run_controllers()
        return load(resource, stored)

    def get(self, api_version: str, plural: str, name: str, namespace: str | None = None) -> Object:
        """Return an object.

        Raises:
            StatusError: 404.
        """
        resource = self._stored_resource(api_version, plural)
        return load(resource, self.cluster.get(resource, self._namespace(resource, namespace), name))

    def list(
        self,
        api_version: str,
        plural: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> _Objects:
        """Return the objects of one namespace or of all, in the order of their keys."""
        resource = self._stored_resource(api_version, plural)
        selected = self._select(resource, namespace, label_selector, field_selector)
        return [load(resource, stored) for stored in selected]

    def update(self, api_version: str, plural: str, obj: Object, namespace: str | None = None) -> Object:
        """Replace an object, including its status.

        With a resourceVersion the update is conditional; without, it overwrites.

        Raises:
            StatusError: 404, 409 and others.
        """
        resource = self._writable_resource(api_version, plural)
        namespace = self._namespace(resource, namespace, obj)
        name = str((obj.get("metadata") or {}).get("name") or "")
        self.cluster.get(resource, namespace, name)  # 404 even for resources that PUT can create
        stored, _ = self.cluster.update(resource, namespace, name, obj, _WHOLE)
        self._run_controllers()
        return load(resource, stored)

    def patch(
        self,
        api_version: str,
        plural: str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        namespace: str | None = None,
        *,
        content_type: str | None = None,
    ) -> Object:
        """Patch an object, including its status.

        Args:
            api_version: The resource's version.
            plural: The resource's plural name.
            name: The object's name.
            patch: A merge patch, or a list of JSON patch operations.
            namespace: The object's namespace.
            content_type: The type of another kind of patch.

        Raises:
            StatusError: 404 and others.
        """
        resource = self._writable_resource(api_version, plural)
        namespace = self._namespace(resource, namespace)
        kind = content_type or (JSON_PATCH if isinstance(patch, list) else MERGE_PATCH)
        stored = self.cluster.modify(
            resource, namespace, name, lambda obj: apply_patch(resource, obj, patch, kind), _WHOLE
        )
        self._run_controllers()
        return load(resource, stored)

    def delete(
        self,
        api_version: str,
        plural: str,
        name: str,
        namespace: str | None = None,
        *,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object; finalizers may keep it.

        Raises:
            StatusError: 404, 409 if `uid` or `resource_version` do not match the object, or 422 for an unknown policy.
        """
        resource = self._writable_resource(api_version, plural)
        options = DeleteOptions(
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
            propagation_policy=propagation_policy,
        )
        delete(self.cluster, resource, self._namespace(resource, namespace), name, options)
        self._run_controllers()

    def delete_collection(
        self,
        api_version: str,
        plural: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> int:
        """Delete the objects of one namespace or of all; return how many there were."""
        resource = self._writable_resource(api_version, plural)
        selected = list(self._select(resource, namespace, label_selector, field_selector))
        count = sum(1 for _ in delete_collection(self.cluster, resource, selected, DeleteOptions()))
        self._run_controllers()
        return count

    def snapshot(
        self,
        api_version: str,
        plural: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> dict[str, str]:
        """Return the resourceVersion of each object by its key, to compare a cache with the server."""
        resource = self._stored_resource(api_version, plural)
        selected = self._select(resource, namespace, label_selector, field_selector)
        return {stored.key: str(stored.resource_version) for stored in selected}

    # State

    def save_state(self) -> bytes:
        """Return all objects as JSON, to restore them in another server."""
        return save_state(self.cluster)

    def restore_state(self, data: bytes) -> int:
        """Replace all objects by those of a saved state, with their uids and resourceVersions.

        Older resourceVersions expire. Tokens that the other server issued to service accounts are not valid here.

        Returns:
            The number of objects.

        Raises:
            TestingError: The data is no state that this server can take.
        """
        self._require_owner()
        count = restore_state(self.cluster, data)
        self._run_controllers()
        return count

    # The server

    @property
    def resource_version(self) -> int:
        """The number of the latest change in the cluster."""
        return self.cluster.resource_version

    def resource(self, api_version: str, plural: str) -> ResourceType:
        """Return the type of a resource.

        Raises:
            StatusError: 404.
        """
        group, _, version = api_version.rpartition("/")
        resource_type = self.cluster.registry.find(group, version, plural)
        if resource_type is None:
            raise errors.StatusError(
                404,
                "NotFound",
                f"the server does not have the resource {plural!r} in {api_version!r}; register it, or create its "
                "CustomResourceDefinition",
            )
        return resource_type

    def register(self, resource: ResourceType) -> ResourceType:
        """Add a resource without a CustomResourceDefinition."""
        self.cluster.registry.add(resource)
        return resource

    def forbid(
        self,
        verb: str | None = None,
        resource: str | None = None,
        *,
        matching: Callable[[Request], bool] | None = None,
    ) -> Fault:
        """Answer 403 to requests of a verb for a resource, until the result's `remove()` is called.

        The verb `"impersonate"` is about the resources `"users"`, `"groups"`, `"serviceaccounts"`, `"uids"` and
        `"userextras"`; the request's name is what is impersonated.

        Raises:
            UnknownNameError: There is no such verb or resource.
        """
        return self.faults.add(Fault(verb, resource, matching), self._forbidden)

    def count(self, verb: str | None = None, resource: str | None = None) -> int:
        """Return how many requests the server got, optionally of a verb and for a resource (plural name)."""
        return sum(
            number
            for (counted, plural), number in self._counts.items()
            if verb in (None, counted) and resource in (None, plural)
        )

    @property
    def open_watches(self) -> int:
        """The number of open watches."""
        return len(self._handler.watches)

    @property
    def workloads(self) -> Workloads:
        """Delays and failures of pods, and Jobs of CronJobs.

        Raises:
            TestingError: The server does not run workloads.
        """
        if self._workloads is None:
            raise errors.TestingError("this server runs no workloads: use APIServer(workloads=True)")
        return self._workloads

    # Private

    def _require_owner(self) -> None:
        """Check that the caller is in the server's event loop and thread; otherwise watches would not wake.

        Raises:
            WrongEventLoopError: The caller is in another event loop or thread.
            ForkedError: The caller is in a forked child, whose changes the server would not see.
        """
        if self._owner is not None and self._process.was_forked:
            raise ForkedError(
                f"the API server runs in the parent process: from this child use a Client of {self.url}, or change its "
                "objects in the parent"
            )
        if self._owner is None or self._owner[1].is_closed():
            return
        thread, loop = self._owner
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:  # a sync fixture or test: watches see its changes when the loop runs again
            running = loop
        if thread != threading.get_ident() or running is not loop:
            raise WrongEventLoopError(
                "the API server runs in another event loop. In pytest-asyncio, give the fixture and its tests the same "
                "loop_scope. From another thread, use loop.call_soon_threadsafe or the portal's call"
            )

    def _writable_resource(self, api_version: str, plural: str) -> ResourceType:
        self._require_owner()
        return self._stored_resource(api_version, plural)

    def _stored_resource(self, api_version: str, plural: str) -> ResourceType:
        resource = self.resource(api_version, plural)
        if resource.is_converted:
            raise errors.TestingError(
                f"the Python API calls no webhooks, so it cannot convert {plural} to {api_version}: use "
                f"{resource.stored_type.api_version}, the stored version, or a Client"
            )
        return resource

    def _namespace(self, resource: ResourceType, namespace: str | None, obj: Object | None = None) -> str:
        if not resource.namespaced:
            return ""
        given = ((obj or {}).get("metadata") or {}).get("namespace")
        return namespace or given or "default"

    def _select(
        self, resource: ResourceType, namespace: str | None, label_selector: str, field_selector: str
    ) -> Iterator[StoredObject]:
        selection = Selection(
            namespace if namespace and resource.namespaced else "",
            parse_labels(label_selector),
            FieldSelector.parse(field_selector, resource),
        )
        objects = self.cluster.collection(resource).at(self.resource_version, selection.namespace)
        return (stored for stored in objects if selection.matches(stored))

    def _record(self, request: Request) -> None:
        self.requests.append(request)
        self._counts[request.verb, request.resource] += 1

    @property
    def _administrator(self) -> User:
        """The user of the server's own tokens, and without any token, of a server that needs none."""
        return user_of("embedded", (MASTERS,) if self._rbac else ())

    def _user_of(self, token: str) -> User | None:
        user = self.users.get(token, self._administrator if token in self.tokens else None)
        return user_of(user) if isinstance(user, str) else user and user_of(*user)

    async def _accept(self) -> None:
        if self._worker is not None:
            await self._listener.listen()

    def _run_controllers(self) -> None:
        work_all(self._controllers)

    def _notify_changed(self) -> None:
        if any(controller.busy for controller in self._controllers):
            self._work.set()

    async def _work_in_slices(self) -> None:
        """Do the controllers' work in slices, so that it does not block the event loop."""
        steps = 0
        while True:
            for controller in self._controllers:
                for _ in controller.work():
                    steps += 1
                    if steps % _STEPS_PER_SLICE == 0:
                        await asyncio.sleep(0)
            if not any(controller.busy for controller in self._controllers):
                await self._work.wait()
                self._work.clear()
