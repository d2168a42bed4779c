"""The supported Kubernetes libraries: kubernetes_asyncio, and ``kubernetes.aio`` in the official package.

A library is imported in a thread when it is first needed, because the import takes a second.
"""

from __future__ import annotations

import asyncio
import importlib
import math
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ..errors import ConfigError

T = TypeVar("T")

KUBERNETES_ASYNCIO = "kubernetes_asyncio"
KUBERNETES_AIO = "kubernetes.aio"


@dataclass(frozen=True)
class Library:
    """A Kubernetes library, used for its Configuration and its authentication.

    Attributes:
        package: Its import name.
        remedy: What to do if the import fails, for the error.
    """

    package: str
    remedy: str

    def load(self) -> None:
        """Import it. Blocks for a second.

        Raises:
            ConfigError: It is not installed.
        """
        try:
            importlib.import_module(f"{self.package}.config.kube_config")
        except ImportError as error:
            raise ConfigError(f"{self.package} cannot be imported: {error}; {self.remedy}") from error
        user_agent()

    def module(self, name: str) -> Any:
        """Return one of its modules."""
        return importlib.import_module(f"{self.package}.{name}")

    def configuration(self) -> Any:
        """Return an empty Configuration, which is never the process-wide default."""
        return self.module("client.configuration").Configuration()


_LIBRARIES = {
    library.package: library
    for library in (
        Library(KUBERNETES_ASYNCIO, "pip install 'kubernetes_asyncio>=32'"),
        Library(KUBERNETES_AIO, "pip install 'aioinformer[kubernetes]'"),
    )
}


def library_named(name: str) -> Library:
    """Return the library with this import name.

    Raises:
        ConfigError: No supported library has this name.
    """
    try:
        return _LIBRARIES[name]
    except KeyError:
        raise ConfigError(f"library must be one of {', '.join(_LIBRARIES)}, not {name!r}") from None


def library_of(api_client: Any) -> Library:
    """Return the library that an ApiClient, or a subclass of it, comes from.

    Raises:
        ConfigError: It comes from no supported library.
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
    """Run a coroutine that blocks in a thread, on an event loop of its own."""

    def run() -> T:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.get_loop().slow_callback_duration = math.inf  # blocking is expected here
            return runner.run(make())

    return await to_thread(run)


async def to_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a blocking function in a new thread.

    The application's own ``asyncio.to_thread`` calls can occupy every thread of the default executor.
    """
    thread = ThreadPoolExecutor(1, "aioinformer")
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, function, *args)
    finally:
        thread.shutdown(wait=False)


@lru_cache(maxsize=1)
def user_agent() -> str:
    """Return the User-Agent of our requests."""
    import importlib.metadata  # slow; Library.load calls this in its thread

    try:
        return f"aioinformer/{importlib.metadata.version('aioinformer')}"
    except importlib.metadata.PackageNotFoundError:
        return "aioinformer"
