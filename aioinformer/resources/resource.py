"""Resource: read and write the objects of one collection at the server."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from .._core.checks import require_seconds
from .._core.coop import Budget
from ..client import Client
from ..client.lookup import ResourceName, look_up
from ..client.transport import READ_TIMEOUT
from ..errors import ConfigError
from ..listwatch.collection import Collection
from ..listwatch.list_watch import ResourceListWatch
from ..listwatch.pager import PAGE_SIZE, Pager
from ..objects.codec import codec_for
from ..objects.kube_object import KubeObject
from ..objects.meta import ListResult
from .addresses import Addresses
from .endpoint import Endpoint
from .refusals import raise_refusals
from .wait_conditions import wait_condition
from .waiting import wait_for_condition
from .writes import Writes

T = TypeVar("T")

FIELD_MANAGER = "aioinformer"


class ResourceOptions(TypedDict, total=False):
    """The options of a Resource."""

    kind: str
    namespaced: bool
    field_manager: str
    timeout: float


class Resource(Writes[T]):
    """Objects of one resource, built-in or custom, read and written at the API server without a cache.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        api_version: ``"v1"``, ``"apps/v1"``, ``"example.com/v1"``; or, in place of it and the plural, the resource: a
            name such as ``"pods"`` or ``"deploy"``, or a class. See docs/typed-resources.md.
        plural: ``"pods"``.
        object_type: The type of answers: KubeObject, dict, a ``msgspec.Struct`` or a model class.
        kind: The kind of objects that do not say it themselves. Needed for custom resources without a class.
        namespaced: Whether the objects live in namespaces. Pass False for cluster-scoped custom resources; built-in
            ones, such as nodes, are known.
        field_manager: The field manager of writes.
        timeout: Seconds for ``get`` and for each write, and after which a conflict about a finalizer is not tried
            again. A list may take longer; it fails after 60 s without data.

    Raises:
        ConfigError: The arguments do not name a collection, or the client or the object type is not supported.
    """

    @overload
    def __init__(
        self: Resource[KubeObject],
        client: Any,
        api_version: ResourceName,
        plural: str = "",
        **options: Unpack[ResourceOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        client: Any,
        api_version: ResourceName | type[T],
        plural: str | type[T] = "",
        object_type: type[T] | None = None,
        **options: Unpack[ResourceOptions],
    ) -> None: ...

    def __init__(
        self,
        client: Any,
        api_version: Any,
        plural: Any = "",
        object_type: type[Any] | None = None,
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        timeout: float = READ_TIMEOUT,
    ) -> None:
        require_seconds("timeout", timeout)
        client = Client.of(client)
        resource = look_up(client, api_version, plural, object_type)
        collection = Collection(resource.api_version, resource.plural)
        addresses = Addresses(collection, resource.is_namespaced(namespaced))
        self._object_type: type[T] = resource.object_type
        codec = codec_for(resource.object_type)
        super().__init__(Endpoint(client, addresses, codec, resource.kind or kind, field_manager, timeout))

    async def get(self, key: str) -> T:
        """Return an object as the server has it now.

        Args:
            key: ``"namespace/name"``, or ``"name"``.

        Raises:
            ObjectNotFoundError: The object does not exist.
            RefusedError: The server refused the request, for example because access is forbidden.
            ApiError: The server failed.
            TransportError: No usable answer arrived.
            DecodeError: The answer does not fit the object type.
        """
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(key)
        body = await endpoint.read(key)
        with endpoint.name_request("get", key):
            endpoint.read_lifecycle(key, body)
            return endpoint.codec.decode(body)

    async def list(
        self, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> builtins.list[T]:
        """Return the objects as the server has them now. All pages show the same resourceVersion.

        Args:
            namespace: None for all namespaces.
            label_selector: As kubectl's ``-l``.
            field_selector: As kubectl's ``--field-selector``.

        Raises:
            ConfigError: A namespace is passed, but the resource is cluster-scoped.
            RefusedError: Access is forbidden, or a selector is invalid.
            ApiError: The server failed.
            TransportError: No usable answer arrived.
            DecodeError: The answer is not a list, its pages do not end, or an object does not fit the object type.
        """
        endpoint = self._endpoint
        addresses, read_item = endpoint.addresses, endpoint.codec.read_item
        if namespace and not addresses.namespaced:
            raise ConfigError(f"{endpoint} are cluster-scoped: list them without the namespace {namespace!r}")
        asked = replace(
            addresses.collection,
            namespace=namespace or None,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        pager = Pager(ResourceListWatch(endpoint.client, asked), self._decode, READ_TIMEOUT, read_item)
        with raise_refusals("list", str(asked)):
            listed = await pager.list("", PAGE_SIZE)
        return builtins.list(listed.objects)

    @overload
    async def wait_for(
        self, key: str, condition: Literal["delete"], timeout: float | None = None
    ) -> None: ...

    @overload
    async def wait_for(
        self, key: str, condition: str | Callable[[T], bool], timeout: float | None = None
    ) -> T: ...

    async def wait_for(
        self, key: str, condition: str | Callable[[T], bool], timeout: float | None = None
    ) -> T | None:
        """Wait until an object meets a condition, and return it. An object that does not exist is waited for.

            pod = await pods.wait_for("default/web-0", "condition=Ready", timeout=60)

        One list and one watch of this object alone; broken watches are resumed.

        Args:
            key: ``"namespace/name"``, or ``"name"``.
            condition: What ``kubectl wait --for`` takes: ``"condition=Ready"``, ``"condition=Ready=False"``,
                ``"create"``, ``"delete"``, ``"jsonpath={.status.phase}=Running"``, ``"jsonpath={.status.podIP}"``; or a
                function of the object, such as ``field("spec.nodeName").equals("node-1")``.
            timeout: Seconds; None waits for ever.

        Returns:
            The object that met the condition. None for ``"delete"``: the object does not exist, or another one has its
            name by now.

        Raises:
            UntilTimeout: The timeout has passed; the message has the object's last state.
            ConfigError: The condition has another form, or the key or the timeout is invalid.
            RefusedError: Access is forbidden, or the resource does not exist.
            ApiError: The server failed the first request.
            TransportError: The first request had no usable answer.
        """
        key = self._endpoint.addresses.key_of(key)
        return await wait_for_condition(
            self._endpoint, self._object_type, key, wait_condition(condition), timeout
        )

    async def _decode(self, piece: ListResult) -> builtins.list[T]:
        decode, budget = self._endpoint.codec.decode, Budget()
        objects: builtins.list[T] = []
        for item in piece.items:
            objects.append(decode(item, piece.type_meta))
            if budget.is_spent():
                await budget.pause()
        return objects
