"""The patch types of the API: JSON patch and merge patch; see `strategic` for strategic merge patches."""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.apply.strategic import strategic_merge
from aioinformer.testing.errors import (
    MissingExtraError,
    StatusError,
    bad_request,
    too_large,
)
from aioinformer.testing.objects import LARGEST_BODY, go_name
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.node import Node

if TYPE_CHECKING:
    from aioinformer.testing.resources import ResourceType

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_MOST_OPERATIONS = 10_000
"""The limit of operations in a JSON patch, as on the real server."""


def apply_patch(
    resource: ResourceType,
    obj: dict[str, Any],
    patch: Any,
    content_type: str,
) -> dict[str, Any]:
    """Return an object with a patch applied; the arguments are not modified.

    Raises:
        StatusError: 400 for a malformed patch, 413 for a JSON patch with too many operations, 415 for a type that
            the resource does not support, 422 for a JSON patch that does not fit the object or copies more than the
            limit of a request.
    """
    if content_type == JSON_PATCH:
        result = _json_patch(obj, patch)
    elif content_type == MERGE_PATCH:
        if not isinstance(patch, dict):
            raise bad_request(f"error decoding patch: {_no_object(patch)}")
        result = merge_patch(obj, patch)
    elif content_type == STRATEGIC_PATCH and not resource.custom:
        if not isinstance(patch, dict):
            raise bad_request(_no_object(patch))
        node = node_of(resource.api_version, resource.kind)
        result = strategic_merge(obj, patch, node or Node())
    else:
        raise unsupported_patch(resource)
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise bad_request("the patched object is no Kubernetes object")
    return result


def unsupported_patch(resource: ResourceType) -> StatusError:
    """Return the 415 with the patch types that the resource supports."""
    types = [JSON_PATCH, MERGE_PATCH, *([] if resource.custom else [STRATEGIC_PATCH]), APPLY_PATCH]
    accepted = ", ".join(types)
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, message=message)


def _no_object(patch: Any) -> str:
    """Return Go's message for a patch that is no object."""
    return f"json: cannot unmarshal {go_name(patch)} into Go value of type map[string]interface {{}}"


def _json_patch(obj: dict[str, Any], patch: Any) -> Any:
    try:
        import jsonpatch
    except ImportError as error:
        raise MissingExtraError("jsonpatch", "a JSON patch") from error
    if not isinstance(patch, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {go_name(patch)} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    if len(patch) > _MOST_OPERATIONS:
        raise too_large(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(patch)}"
        )
    try:
        return _json_patch_class()(patch).apply(obj)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, KeyError, TypeError) as error:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", message, details={}) from error


def _json_patch_class() -> Any:
    """Return a class of JSON patches with the real server's rules: a missing field is null and can be replaced.

    Use the class for a single patch, because it counts the copied bytes.
    """
    import jsonpatch

    copied = 0

    class Copy(jsonpatch.CopyOperation):
        def apply(self, obj: Any) -> Any:
            nonlocal copied
            value = self.pointer_cls(self.operation["from"]).resolve(obj)
            copied += len(msgspec.json.encode(value))
            if copied > LARGEST_BODY:
                raise jsonpatch.JsonPatchConflict(f"the patch copies more than {LARGEST_BODY} bytes")
            return super().apply(obj)

    class Replace(jsonpatch.ReplaceOperation):
        def apply(self, obj: Any) -> Any:
            parent, last = self.pointer.to_last(obj)
            if isinstance(parent, dict) and last is not None:
                parent[last] = self.operation["value"]
                return obj
            return super().apply(obj)

    class Test(jsonpatch.TestOperation):
        def apply(self, obj: Any) -> Any:
            parent, last = self.pointer.to_last(obj)
            if self.operation.get("value", "") is None and isinstance(parent, dict) and last not in parent:
                return obj
            return super().apply(obj)

    class JsonPatch(jsonpatch.JsonPatch):
        operations = MappingProxyType(
            {**jsonpatch.JsonPatch.operations, "copy": Copy, "replace": Replace, "test": Test}
        )

    return JsonPatch


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result
