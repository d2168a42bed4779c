"""Values of built-in kinds in the form that the real server returns, or its refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing import errors
from aioinformer.testing.objects import identity
from aioinformer.testing.rules.custom import read_custom
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.conditional_defaults import complete
from aioinformer.testing.schema.conversion import conversion_fault
from aioinformer.testing.schema.decode import read_object
from aioinformer.testing.schema.gotext import group_version, text
from aioinformer.testing.schema.scalars import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.schema.unknown import FieldCheck


def decode_values(
    resource: ResourceType,
    obj: Object,
    refused: Callable[[str], errors.StatusError] | None = None,
    fields: FieldCheck | None = None,
) -> Object:
    """Return an object with its values in the form that the real server returns, with defaults and its kind.

    Repeated owner references are removed.

    Args:
        resource: The object's type.
        obj: The object; it is not modified.
        refused: Builds the error from Go's message; by default the error of writing a whole object.
        fields: Collects the unknown fields, which are dropped in any case.

    Raises:
        StatusError: A value does not fit the type of its field, or `fields` refuses an unknown field.
    """
    read: Object = obj
    unknown: Iterable[str] = ()
    node = None if resource.custom else node_of(resource.api_version, resource.kind)
    try:
        if node is None:
            read, unknown = read_custom(resource, obj)
        else:
            read, unknown = read_object(node, obj)
        why = "" if fields is None else fields.check(unknown)
    except UnreadableError as error:
        why = str(error)
    if not why:
        if not resource.custom:
            read = {"kind": resource.kind, "apiVersion": resource.api_version, **read}
            complete(read, resource.kind, obj)
        if owners := read["metadata"].get("ownerReferences"):
            read["metadata"]["ownerReferences"] = [*{identity(owner): owner for owner in owners}.values()]
        return read
    raise (refused or unhandled_error(resource))(why)


def unhandled_error(resource: ResourceType) -> Callable[[str], errors.StatusError]:
    """Return a function that builds the error of a whole object with an invalid value."""
    kind = resource.kind

    def make_error(why: str) -> errors.StatusError:
        text = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
        return errors.bad_request(text)

    return make_error


def patch_error(
    resource: ResourceType, patched: Object, strategic: Object | None = None
) -> Callable[[str], errors.StatusError]:
    """Return a function that builds the error of a patch with an invalid value.

    Args:
        resource: The object's type.
        patched: The object after the patch.
        strategic: The patch, if it is a strategic merge patch.
    """
    node = None if strategic is None else node_of(resource.api_version, resource.kind)

    def make_error(why: str) -> errors.StatusError:
        shown = msgspec.json.encode(patched).decode() if strategic is None else text(strategic)
        if node is not None:
            why = conversion_fault(node, patched) or why
            if why.startswith("illegal base64"):
                why = f"error decoding from json: {why}"
        causes = [errors.field_invalid("patch", shown, why)]
        return errors.invalid("", "", "", causes)

    return make_error


def apply_error(resource: ResourceType, name: str) -> Callable[[str], errors.StatusError]:
    """Return a function that builds the error of an applied configuration with an invalid value."""
    kind = f"{group_version(resource.api_version)}, Kind={resource.kind}"

    def make_error(why: str) -> errors.StatusError:
        return errors.StatusError(
            500,
            "",
            f"failed to convert new object (/{name}; {kind}) to proper version: unable to convert unstructured "
            f"object to {kind}: {why}",
        )

    return make_error
