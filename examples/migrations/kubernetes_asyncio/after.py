"""The same script on an informer."""

import asyncio
import os

from aioinformer import Client, SharedInformerFactory
from examples.migrations.telling import tell


async def main() -> None:
    async with Client.from_kubeconfig() as client:
        factory = SharedInformerFactory(client, os.environ["NAMESPACE"])
        factory.for_resource("v1", "configmaps").add_event_handler(
            on_add=lambda obj, _: tell(obj.name, obj.resource_version),
            on_update=lambda old, new: tell(new.name, new.resource_version),
            on_delete_object=lambda obj: tell(obj.name, None),
        )
        async with factory:
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
