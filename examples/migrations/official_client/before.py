"""A blocking script on the official client's SharedInformer, which watches in a thread."""

import os
import threading

from kubernetes import client, config
from kubernetes.informer import SharedInformer

from examples.migrations.telling import tell

config.load_kube_config()
informer = SharedInformer(client.CoreV1Api().list_namespaced_config_map, os.environ["NAMESPACE"])
for kind in ("ADDED", "MODIFIED"):
    informer.add_event_handler(kind, lambda obj: tell(obj.metadata.name, obj.metadata.resource_version))
informer.add_event_handler("DELETED", lambda obj: tell(obj.metadata.name, None))
informer.start()
threading.Event().wait()
