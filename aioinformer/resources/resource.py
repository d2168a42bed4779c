"""Resource: reads and writes the objects of one collection, at the server."""

from __future__ import annotations

import builtins
from dataclasses import replace
from typing import Any, TypeVar, overload

from .._core.checks import require_seconds, require_text
from ..client import Client
from ..client.transport import READ_TIMEOUT
from ..errors import ConfigError
from ..listwatch.collection import Collection
from ..listwatch.list_watch import ResourceListWatch
from ..objects.codec import codec_for
from ..objects.kube_object import KubeObject
from ..objects.meta import ListResult
from ..reflector.listing import PAGE_SIZE, Pager
from .addresses import Addresses, lives_in_no_namespace
from .endpoint import Endpoint
from .refusals import refusing
from .writes import Writes

T = TypeVar("T")

FIELD_MANAGER = "aioinformer"


class Resource(Writes[T]):
    """The objects of one resource, built-in or custom: read and changed at the API server, with no cache between.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        api_version: ``"v1"``, ``"apps/v1"``, ``"example.com/v1"``.
        plural: ``"pods"``.
        object_type: What answers become: KubeObject, dict, a ``msgspec.Struct`` or a model class.
        kind: Of objects that do not say it themselves. Custom resources need it said.
        namespaced: Whether the objects live in namespaces; False for custom resources that live in none. Of built-in
            ones, such as nodes, it is known.
        field_manager: Who owns the fields that are written here.
        timeout: Seconds in which ``get`` and each write are answered as a whole, and in which a finalizer has to be
            settled. A list may take longer; it ends after 60 s of silence.

    Raises:
        ConfigError: The arguments name no collection, the client is none, or objects cannot be of this type.
    """

    @overload
    def __init__(
        self: Resource[KubeObject],
        client: Any,
        api_version: str,
        plural: str,
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        timeout: float = READ_TIMEOUT,
    ) -> None: ...

    @overload
    def __init__(
        self,
        client: Any,
        api_version: str,
        plural: str,
        object_type: type[T],
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        timeout: float = READ_TIMEOUT,
    ) -> None: ...

    def __init__(
        self,
        client: Any,
        api_version: str,
        plural: str,
        object_type: type[Any] = KubeObject,
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        timeout: float = READ_TIMEOUT,
    ) -> None:
        require_text("kind", kind)
        require_text("field_manager", field_manager)
        require_seconds("timeout", timeout)
        collection = Collection(api_version, plural)
        addresses = Addresses(collection, namespaced and not lives_in_no_namespace(collection))
        super().__init__(
            Endpoint(Client.of(client), addresses, codec_for(object_type), kind, field_manager, timeout)
        )

    async def get(self, key: str) -> T:
        """An object as the server has it now.

        Args:
            key: ``"namespace/name"``, or ``"name"``.

        Raises:
            ObjectNotFoundError: There is none.
            RefusedError: It may not be read.
            ApiError: The server failed.
            TransportError: No usable answer came.
            DecodeError: The answer is not of the object type.
        """
        endpoint = self._endpoint
        key = endpoint.addresses.key_of(key)
        body = await endpoint.read(key)
        with endpoint.asking("get", key):
            endpoint.seen(key, body)
            return endpoint.codec.decode(body)

    async def list(
        self, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> builtins.list[T]:
        """The objects as the server has them now, read in pages that all show one moment.

        Args:
            namespace: None for all.
            label_selector: As kubectl's ``-l``.
            field_selector: As kubectl's ``--field-selector``.

        Raises:
            ConfigError: The objects live in no namespace, and one is given.
            RefusedError: It may not be read, or a selector is wrong.
            ApiError: The server failed.
            TransportError: No usable answer came.
            DecodeError: The answer is no list, has no end, or an object in it is not of the object type.
        """
        endpoint = self._endpoint
        addresses, read_item = endpoint.addresses, endpoint.codec.read_item
        if namespace and not addresses.namespaced:
            raise ConfigError(f"{endpoint} live in no namespace, and {namespace!r} is asked for")
        asked = replace(
            addresses.collection,
            namespace=namespace or None,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        pager = Pager(ResourceListWatch(endpoint.client, asked), self._decoded, READ_TIMEOUT, read_item)
        with refusing("list", str(asked)):
            listed = await pager.list("", PAGE_SIZE)
        return builtins.list(listed.objects)

    async def _decoded(self, piece: ListResult) -> builtins.list[T]:
        return [self._endpoint.codec.decode(item, piece.type_meta) for item in piece.items]
