"""Informers for code without an event loop: threads, scripts, Flask, Django, Celery, Jupyter.

from aioinformer import Client, blocking

with blocking.Factory(Client.from_kubeconfig()) as factory:
    pods = factory.for_resource("v1", "pods")
    pods.wait_synced(30)
    for event in pods.events():
        print(event.type, event.object.key)
"""

from .events import Events
from .factory import Factory
from .informer import Informer
from .registration import Registration

__all__ = ["Factory", "Informer", "Registration", "Events"]
