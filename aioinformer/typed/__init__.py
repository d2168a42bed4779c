"""Typed resources: classes that are kinds of the API, their CustomResourceDefinitions, differences of objects."""

from ..objects.api_resources import APIResource
from .annotations import Column, IntOrString, MapOf, PreserveUnknown, Quantity, Rule, Scale, SetOf
from .custom_resource import CamelStruct, Condition, CustomResource, Metadata
from .definition import crd
from .diff import Change, diff

__all__ = [
    "APIResource",
    "CamelStruct",
    "Change",
    "Column",
    "Condition",
    "CustomResource",
    "IntOrString",
    "MapOf",
    "Metadata",
    "PreserveUnknown",
    "Quantity",
    "Rule",
    "Scale",
    "SetOf",
    "crd",
    "diff",
]
