"""Addresses and node ports of Services."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

_FIRST_ADDRESS = 10 << 24 | 96 << 16 | 10  # 10.96.0.10; the server's own Service has 10.96.0.1
_FIRST_PORT, _PORTS = 30000, 2768


class Addresses:
    """Gives Services their addresses and node ports, one after the other."""

    def __init__(self) -> None:
        self._address = count(_FIRST_ADDRESS)
        self._port = count()

    def fill_in(self, service: Object, old: Object | None) -> None:
        """Set the addresses and ports that a Service does not name; an update keeps the old ones. In place."""
        spec = service.get("spec") or {}
        before = {} if old is None else old.get("spec") or {}
        kind = spec.get("type")
        if before:
            _drop_unneeded(spec, before)
        if before.get("type") == "LoadBalancer" and kind != "LoadBalancer":
            service["status"] = {**service["status"], "loadBalancer": {}}
        if kind == "ExternalName":
            return
        if before.get("type") != "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(name) and before.get(name):
                    spec[name] = before[name]
        address = (
            spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "") or self._next_address()
        )
        spec["clusterIP"] = address
        if not spec.get("clusterIPs") or spec["clusterIPs"] == before.get("clusterIPs"):
            spec["clusterIPs"] = [address]
        if address == "None" and not spec.get("selector"):
            spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
            spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        spec.setdefault("ipFamilies", ["IPv6" if ":" in address else "IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if kind in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts", True):
            known = {_identity(port): port.get("nodePort") for port in before.get("ports") or ()}
            for port in spec.get("ports") or ():
                port["nodePort"] = port.get("nodePort") or known.get(_identity(port)) or self._next_port()

    def _next_address(self) -> str:
        return ".".join(str(byte) for byte in next(self._address).to_bytes(4))

    def _next_port(self) -> int:
        return _FIRST_PORT + next(self._port) % _PORTS


def needed_fields(spec: Object) -> set[str]:
    """Return the fields that a Service of this type can have; `nodePort` is a field of its ports."""
    kind = spec.get("type")
    if kind == "ExternalName":
        return set()
    fields = {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"}
    if kind in ("NodePort", "LoadBalancer"):
        fields |= {"externalTrafficPolicy", "nodePort"}
    elif spec.get("externalIPs"):
        fields.add("externalTrafficPolicy")
    if kind == "LoadBalancer":
        fields |= {"allocateLoadBalancerNodePorts", "loadBalancerClass"}
    return fields


def _drop_unneeded(spec: Object, before: Object) -> None:
    """Remove what only the old type needs, unless this write changes it."""
    for name in needed_fields(before) - needed_fields(spec):
        if spec.get(name) == before.get(name):
            spec.pop(name, None)
        if name == "nodePort" and _node_ports(spec) == _node_ports(before):
            for port in spec.get("ports") or ():
                port.pop(name, None)


def _node_ports(spec: Object) -> set[Any]:
    return {port.get("nodePort") for port in spec.get("ports") or ()}


def _identity(port: Object) -> tuple[Any, Any]:
    return port.get("port"), port.get("protocol")
