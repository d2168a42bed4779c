"""The webhooks of an operator under test, served on the loopback interface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

from aioinformer import Client
from aioinformer.operator import Manager, Operator, WebhookServer
from aioinformer.operator.definitions import install, register
from aioinformer.operator.webhooks import Reached
from aioinformer.testing import MissingExtraError


@asynccontextmanager
async def serving(client: Client, operator: Operator, manager: Manager) -> AsyncIterator[None]:
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
    authority = trustme.CA()
    with TemporaryDirectory() as folder:
        pem = f"{folder}/webhooks.pem"
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
        app = operator.webhook_app(manager)
        async with WebhookServer(app, port=0, cert=pem, key=pem, host="127.0.0.1") as server:
            reached: Reached = {
                "url": f"https://127.0.0.1:{server.port}",
                "ca_bundle": authority.cert_pem.bytes(),
            }
            await install(client, operator, **reached)
            await register(client, operator, **reached)
            yield
