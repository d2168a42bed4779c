"""Manifests of an Operator: its CustomResourceDefinitions, its rights, its webhooks, and a Deployment that runs it.

objects = manifests(operator, Installation("websites:operator", name="websites", image="example.com/websites:1"))
print(to_yaml(objects))
"""

from .access import rules
from .installation import Installation
from .kustomization import to_yaml, write_kustomization
from .objects import manifests

__all__ = ["Installation", "manifests", "rules", "to_yaml", "write_kustomization"]
