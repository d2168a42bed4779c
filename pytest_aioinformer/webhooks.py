"""The webhooks of an operator under test, served on the loopback interface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from aioinformer import Client
from aioinformer.operator import Manager, Operator, WebhookServer
from aioinformer.operator.definitions import install
from aioinformer.operator.webhook_registration import register
from aioinformer.operator.webhooks import Reached
from aioinformer.testing import MissingExtraError
from aioinformer.testing.access.tls import write_certificate


@asynccontextmanager
async def serve(client: Client, operator: Operator, manager: Manager) -> AsyncIterator[None]:
    """Serve an operator's webhooks inside a block, and install the objects that make an API server call them.

    Args:
        client: Of an API server on this machine.
        operator: The operator.
        manager: What ``operator.manager`` returned.

    Raises:
        MissingExtraError: trustme is missing.
        AioInformerError: The server refused the objects.
    """
    try:
        import trustme
    except ImportError as error:
        raise MissingExtraError("trustme", "run_operator with webhooks") from error
    with TemporaryDirectory() as folder:
        cert, key, authority = write_certificate(trustme.CA(), Path(folder))
        app = operator.webhook_app(manager)
        async with WebhookServer(app, port=0, cert=cert, key=key, host="127.0.0.1") as server:
            url = f"https://127.0.0.1:{server.port}"
            reached: Reached = {"url": url, "ca_bundle": authority.read_bytes()}
            await install(client, operator, **reached)
            await register(client, operator, **reached)
            yield
