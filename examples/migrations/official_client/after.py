"""The same script on aioinformer.blocking."""

import os

from aioinformer import blocking
from examples.migrations.telling import tell

with blocking.Factory(namespace=os.environ["NAMESPACE"]) as factory:
    for event in factory.for_resource("v1", "configmaps").events():
        tell(event.object.name, None if event.type == "DELETED" else event.object.resource_version)
