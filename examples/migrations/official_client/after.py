"""The same script on aioinformer.blocking."""

import json
import os

from aioinformer import blocking


def tell(name: str, version: str | None) -> None:
    print(json.dumps({"name": name, "version": version}), flush=True)


with blocking.Factory(namespace=os.environ["NAMESPACE"]) as factory:
    for event in factory.for_resource("v1", "configmaps").events():
        tell(event.object.name, None if event.type == "DELETED" else event.object.resource_version)
