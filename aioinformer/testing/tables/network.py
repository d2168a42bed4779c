"""The cells of services, endpoints, ingresses and networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.tables.formats import at, join, labels_at, name_of_class, selector_at, shorten

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.tables.formats import Cell


def _balancers(obj: Object) -> list[str]:
    """Return the addresses of a load balancer."""
    ingress = at("status.loadBalancer.ingress", None)(obj) or ()
    return sorted({address for entry in ingress if (address := entry.get("ip") or entry.get("hostname"))})


def _cluster_ip(service: Object) -> str:
    ips = at("spec.clusterIPs", None)(service)
    return str(ips[0] if ips else at("spec.clusterIP", "<none>")(service))


def _external_ip(service: Object) -> str:
    kind, own = at("spec.type")(service), at("spec.externalIPs", None)(service) or []
    if kind == "ExternalName":
        return str(at("spec.externalName")(service))
    if kind == "LoadBalancer":
        return ",".join([*_balancers(service), *own]) or "<pending>"
    return ",".join(own) or "<none>"


def _ports(service: Object) -> str:
    return ",".join(map(_port, at("spec.ports", None)(service) or ())) or "<none>"


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def _addresses(endpoints: Object) -> str:
    """Return the addresses of Endpoints, with each of their ports."""
    addresses = [
        f"{f'[{ip}]' if ':' in ip else ip}:{port['port']}" if port else ip
        for subset in endpoints.get("subsets") or ()
        for port in subset.get("ports") or (None,)
        for ip in (address["ip"] for address in subset.get("addresses") or ())
    ]
    return shorten(addresses, empty="" if endpoints.get("subsets") else "<none>")


def _slice_ports(endpoints: Object) -> str:
    ports = endpoints.get("ports") or ()
    texts = [str(port.get("port") or (port.get("name") if "name" in port else "*")) for port in ports]
    return shorten(texts, empty="<unset>")


def _slice_addresses(endpoints: Object) -> str:
    addresses = [
        address for endpoint in endpoints.get("endpoints") or () for address in endpoint["addresses"]
    ]
    return shorten(addresses, empty="<unset>")


def _hosts(ingress: Object) -> str:
    """Return the hosts of an ingress; the number of others counts rules, as upstream."""
    rules = at("spec.rules", None)(ingress) or ()
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        hosts += [rule["host"]] if rule.get("host") else []
    return ",".join(hosts) or "*"


def _parameters(ingress_class: Object) -> str:
    parameters = at("spec.parameters", None)(ingress_class)
    if not parameters:
        return "<none>"
    group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
    return f"{parameters['kind']}{group}/{parameters['name']}"


def _parent(address: Object) -> str:
    parent = at("spec.parentRef", None)(address)
    if not parent:
        return "<none>"
    kind = ".".join(filter(None, (parent.get("resource"), parent.get("group")))).lower()
    return "/".join(filter(None, (kind, parent.get("namespace"), parent.get("name"))))


NETWORK: dict[str, dict[str, Cell]] = {
    "EndpointSlice.discovery.k8s.io": {
        "AddressType": at("addressType"),
        "Ports": _slice_ports,
        "Endpoints": _slice_addresses,
    },
    "Endpoints": {"Endpoints": _addresses},
    "IPAddress.networking.k8s.io": {"ParentRef": _parent},
    "Ingress.networking.k8s.io": {
        "Class": at("spec.ingressClassName", "<none>"),
        "Hosts": _hosts,
        "Address": lambda obj: ",".join(_balancers(obj)),
        "Ports": lambda obj: "80, 443" if at("spec.tls", None)(obj) else "80",
    },
    "IngressClass.networking.k8s.io": {
        "Name": name_of_class("ingressclass.kubernetes.io/is-default-class"),
        "Controller": at("spec.controller"),
        "Parameters": _parameters,
    },
    "NetworkPolicy.networking.k8s.io": {
        "Pod-Selector": selector_at("spec.podSelector"),
    },
    "Service": {
        "Type": at("spec.type"),
        "Cluster-IP": _cluster_ip,
        "External-IP": _external_ip,
        "Port(s)": _ports,
        "Selector": labels_at("spec.selector"),
    },
    "ServiceCIDR.networking.k8s.io": {"CIDRs": join("spec.cidrs")},
}
