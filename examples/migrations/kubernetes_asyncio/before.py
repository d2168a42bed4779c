"""A script on kubernetes_asyncio's Watch, as its examples show it: list, then stream from the list's version."""

import asyncio
import os

from kubernetes_asyncio import client, config, watch

from examples.migrations.telling import tell


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        namespace = os.environ["NAMESPACE"]
        listed = await core.list_namespaced_config_map(namespace)
        for item in listed.items:
            tell(item.metadata.name, item.metadata.resource_version)
        version = listed.metadata.resource_version
        async with watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=version
        ) as events:
            async for event in events:
                metadata = event["object"].metadata
                tell(metadata.name, None if event["type"] == "DELETED" else metadata.resource_version)


asyncio.run(main())
