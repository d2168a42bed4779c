"""Manifests of an Operator: its CustomResourceDefinitions, its rights, its webhooks, and a Deployment that runs it.

objects = manifests(operator, Installation("websites:operator", name="websites", image="example.com/websites:1"))
print(to_yaml(objects))
"""

from .access import rules
from .chart import write_chart
from .dashboard import make_dashboard
from .installation import FromKey, Installation, Mount
from .kustomization import to_yaml, write_kustomization
from .objects import manifests

__all__ = [
    "FromKey",
    "Installation",
    "Mount",
    "make_dashboard",
    "manifests",
    "rules",
    "to_yaml",
    "write_chart",
    "write_kustomization",
]
