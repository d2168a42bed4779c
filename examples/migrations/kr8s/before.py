"""A script on kr8s: watch the ConfigMaps of a namespace."""

import asyncio
import os

import kr8s.asyncio

from examples.migrations.telling import tell


async def main() -> None:
    api = await kr8s.asyncio.api(kubeconfig=os.environ["KUBECONFIG"])
    async for event, obj in api.async_watch("configmaps", namespace=os.environ["NAMESPACE"]):
        tell(obj.name, None if event == "DELETED" else obj.metadata.resourceVersion)


asyncio.run(main())
