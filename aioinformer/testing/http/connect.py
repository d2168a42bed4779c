"""Subresources that connect to a kubelet, a pod or a Service: logs, exec, attach, port-forward, proxy.

No kubelet runs, so these requests end where the real server would connect: with its refusals before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.testing.errors import StatusError, bad_request
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import NODES, PODS, SERVICES
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType

CONNECTING = frozenset(["attach", "exec", "log", "portforward", "proxy"])
"""The subresources that connect."""


def connect(cluster: Cluster, resource: ResourceType, request: Request) -> web.Response:
    """Answer a request for a subresource that connects; the logs of a pod without a node are empty.

    Raises:
        StatusError: 400, 404 or 503; 500 where the real server would connect.
    """
    name = request.name
    if request.subresource == "proxy":
        parts = name.split(":")  # name, name:port or scheme:name:port
        name = parts[1 if len(parts) == 3 else 0]
    obj = load(resource, cluster.get(resource, request.namespace, name))
    if resource is SERVICES:
        raise StatusError(503, message=f'no endpoints available for service "{name}"')
    if resource is PODS and request.subresource == "proxy":
        address = (obj.get("status") or {}).get("podIP")
        raise _no_connection(f"pod {name} at {address}") if address else bad_request("address not allowed")
    node = name
    if resource is PODS:
        if request.subresource != "portforward":
            _check_container(obj, request.query.get("container", ""))
        node = obj["spec"].get("nodeName", "")
        if not node and request.subresource == "log":
            return web.Response(text="")
        if not node:
            raise bad_request(f"pod {name} does not have a host assigned")
        cluster.get(NODES, "", node)
    raise _no_connection(f'the kubelet of node "{node}"')


def _check_container(pod: Object, name: str) -> None:
    """Refuse a container that the pod does not have, or no container where there are several."""
    parts = ("initContainers", "containers", "ephemeralContainers")
    known = [container["name"] for part in parts for container in pod["spec"].get(part) or ()]
    pod_name, count = pod["metadata"]["name"], len(pod["spec"].get("containers") or ())
    if name and name not in known:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    if not name and count != 1:
        choice = f", choose one of: [{' '.join(known)}]" if count else ""
        raise bad_request(f"a container name must be specified for pod {pod_name}{choice}")


def _no_connection(to: str) -> StatusError:
    return StatusError(500, "", f"error dialing backend: the embedded API server cannot connect to {to}")
