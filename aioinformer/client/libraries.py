"""kubernetes_asyncio, and the asyncio client inside the official package: the same thing in two generations.

Both are imported when they are first needed, in a thread, because that takes a second.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import math
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ssl import SSLContext
from typing import Any, TypeVar

from ..errors import ClientClosedError, ConfigError
from .tls import TLS
from .transport import Query

T = TypeVar("T")

KUBERNETES_ASYNCIO = "kubernetes_asyncio"
KUBERNETES_AIO = "kubernetes.aio"


class Library:
    """What we use of such a library: its configuration, authentication and request, for GET.

    Attributes:
        package: The name it is imported by.
        remedy: What to do where it cannot be.
    """

    package = ""
    remedy = ""

    def load(self) -> None:
        """Import it. Blocks, for a second.

        Raises:
            ConfigError: It is not installed.
        """
        try:
            importlib.import_module(f"{self.package}.config.kube_config")
        except ImportError as error:
            raise ConfigError(f"{self.package} cannot be imported: {error}; {self.remedy}") from error
        user_agent()

    def module(self, name: str) -> Any:
        """One of its modules."""
        return importlib.import_module(f"{self.package}.{name}")

    def configuration(self) -> Any:
        """An empty Configuration, which never is the process-wide default one."""
        return self.module("client.configuration").Configuration()

    async def api_client(self, configuration: Any, tls: TLS) -> tuple[Any, SSLContext]:
        """An ApiClient for this configuration, without connections, and an SSLContext in place of its own.

        Raises:
            ConfigError: Certificates or keys cannot be used.
        """

        async def make() -> tuple[Any, SSLContext]:
            api_client = self.module("client.api_client").ApiClient(configuration)
            await api_client.close()
            return api_client, tls.context()

        # Its constructor makes an SSLContext, which takes 30 ms, and a session, which wants a loop.
        return await in_thread(make)

    def ssl_context(self, api_client: Any) -> Any:
        """The SSLContext of an ApiClient."""
        raise NotImplementedError

    def over(self, session: Any, api_client: Any) -> Any:
        """An ApiClient like this one, with its configuration and headers, that asks by this aiohttp session."""
        alike = copy.copy(api_client)
        alike.rest_client = copy.copy(api_client.rest_client)
        alike.rest_client.pool_manager = session
        return alike

    async def get(
        self, api_client: Any, path: str, query: Query, headers: dict[str, str], timeout: Any
    ) -> Any:
        """Ask, authenticated; the ``aiohttp.ClientResponse``, its body not yet read.

        Raises:
            Exception: aiohttp's errors, and by some versions an ApiException for answers other than 2xx.
        """
        raise NotImplementedError


class _KubernetesAsyncio(Library):
    package = KUBERNETES_ASYNCIO
    remedy = "pip install 'kubernetes_asyncio>=36.1,<37'"

    def ssl_context(self, api_client: Any) -> Any:
        connector = api_client.rest_client.pool_manager.connector
        if connector is None:
            raise ClientClosedError("the ApiClient is closed")
        return connector._ssl  # aiohttp has no other way to it

    async def get(
        self, api_client: Any, path: str, query: Query, headers: dict[str, str], timeout: Any
    ) -> Any:
        response = await api_client.call_api(
            path,
            "GET",
            query_params=list(query),
            header_params=headers,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=timeout,
        )
        api_client.last_response = None
        return response


class _KubernetesAio(Library):
    package = KUBERNETES_AIO
    remedy = "pip install 'aioinformer[kubernetes]'"

    def ssl_context(self, api_client: Any) -> Any:
        return api_client.rest_client.ssl_context

    def over(self, session: Any, api_client: Any) -> Any:
        alike = super().over(session, api_client)
        # When to try again is the Reflector's business; a retrying client would also keep to its old session.
        rest_client = alike.rest_client
        rest_client.retry_client = rest_client._effective_retry_options = None
        rest_client.configuration = copy.copy(rest_client.configuration)  # the user's own goes on as it is
        rest_client.configuration.client_go_retries = False
        return alike

    async def get(
        self, api_client: Any, path: str, query: Query, headers: dict[str, str], timeout: Any
    ) -> Any:
        method, url, headers, _, _ = await api_client.param_serialize(
            "GET",
            path,
            query_params=list(query),
            header_params=headers,
            auth_settings=["BearerToken"],
        )
        response = await api_client.call_api(method, url, headers, _request_timeout=timeout)
        return response.response


_LIBRARIES: Mapping[str, Library] = {
    library.package: library for library in (_KubernetesAsyncio(), _KubernetesAio())
}


def library_named(name: str) -> Library:
    """The library of this name.

    Raises:
        ConfigError: There is none.
    """
    try:
        return _LIBRARIES[name]
    except KeyError:
        raise ConfigError(f"library must be one of {', '.join(_LIBRARIES)}, not {name!r}") from None


def library_of(api_client: Any) -> Library:
    """The library that an ApiClient, or a subclass of it, comes from.

    Raises:
        ConfigError: It comes from none of them.
    """
    for base in type(api_client).__mro__:
        for library in _LIBRARIES.values():
            if base.__module__ == f"{library.package}.client.api_client":
                return library
    given = f"{type(api_client).__module__}.{type(api_client).__qualname__}".removeprefix("builtins.")
    if given == "kubernetes.client.api_client.ApiClient":
        given += ", the synchronous one"
    raise ConfigError(f"expected a Client, or an ApiClient of {' or '.join(_LIBRARIES)}, got {given}")


async def in_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that blocks where it should wait: in a thread, on a loop of its own."""

    def run() -> T:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.get_loop().slow_callback_duration = math.inf  # to block is what it is for
            return runner.run(make())

    return await to_thread(run)


async def to_thread(function: Callable[..., T], *args: Any) -> T:
    """Run what blocks in a thread that nobody else's work can keep busy, as it can those of ``asyncio.to_thread``."""
    thread = ThreadPoolExecutor(1, "aioinformer")
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, function, *args)
    finally:
        thread.shutdown(wait=False)


@lru_cache(maxsize=1)
def user_agent() -> str:
    """How we name ourselves to the server."""
    import importlib.metadata  # slow: let it be in the thread that imports the library

    try:
        return f"aioinformer/{importlib.metadata.version('aioinformer')}"
    except importlib.metadata.PackageNotFoundError:
        return "aioinformer"
