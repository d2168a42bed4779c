"""The options of writing requests, from their query, headers and bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing import errors
from aioinformer.testing.apply.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from aioinformer.testing.cluster.options import DeleteOptions, WriteOptions
from aioinformer.testing.http.bodies import read_body, value_in
from aioinformer.testing.http.encodings import JSON
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.decode import read_object
from aioinformer.testing.schema.scalars import UnreadableError
from aioinformer.testing.schema.unknown import FieldCheck, duplicate_fields

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.objects import Object
    from aioinformer.testing.requests import Request

_LONGEST_MANAGER = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")

_OPTIONS = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}


def write_options(
    http: web.BaseRequest, request: Request, fields: FieldCheck | None = None, *, applying: bool = False
) -> WriteOptions:
    """Return the options of a create, update, patch or apply.

    Raises:
        StatusError: 422.
    """
    manager = request.query.get("fieldManager", "")
    causes = []
    if applying and not manager:
        causes.append(errors.field_required("fieldManager", "is required for apply patch"))
    if request.method == "PATCH" and not applying and request.flag("force") is not None:
        causes.append(errors.field_forbidden("force", "may not be specified for non-apply patch"))
    if len(manager.encode()) > _LONGEST_MANAGER:
        causes.append(errors.field_too_long("fieldManager", _LONGEST_MANAGER))
    for position, letter in enumerate(manager):
        if not letter.isprintable():
            why = f"invalid character U+{ord(letter):04X} (at position {position})"
            causes.append(errors.field_invalid("fieldManager", manager, why))
            break
    validation = request.query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        causes.append(errors.field_not_supported("fieldValidation", validation, _VALIDATIONS))
    if causes:
        raise errors.invalid(_OPTIONS[request.method], "meta.k8s.io", "", causes)
    agent = http.headers.get("User-Agent", "").partition("/")[0].strip()
    return WriteOptions(
        subresource=request.subresource,
        dry_run=dry_run(request),
        field_manager=manager or agent or "unknown",
        strict=True,
        fields=fields or FieldCheck(),
    )


def dry_run(request: Request) -> bool:
    """Return whether a request only tries its write.

    Raises:
        StatusError: 422.
    """
    asked = request.query.get("dryRun")
    return _is_dry([] if asked is None else [asked], _OPTIONS[request.method])


def _is_dry(asked: list[str], kind: str) -> bool:
    if any(value != "All" for value in asked):
        causes = [errors.field_not_supported("dryRun", asked, ["All"])]
        raise errors.invalid(kind, "meta.k8s.io", "", causes)
    return bool(asked)


def field_check(http: web.BaseRequest, request: Request, body: bytes, given: Any) -> FieldCheck:
    """Return the check that the request's `fieldValidation` asks for."""
    validation = request.query.get("fieldValidation", "")
    if validation == "Ignore":
        return FieldCheck(validation)
    if http.content_type == JSON_PATCH:
        return FieldCheck(validation, [f"json patch {fault}" for fault in duplicate_fields(body, given)])
    is_json = http.content_type in (JSON.media_type, MERGE_PATCH, STRATEGIC_PATCH)
    return FieldCheck(validation, duplicate_fields(body, given) if is_json else [])


async def options_of_delete(http: web.BaseRequest, request: Request) -> DeleteOptions:
    """Return the options from the body, or from the query if there is no body."""
    body = await read_body(http)
    if body.strip():
        return delete_options(_decode(value_in(body, http, "v1", "DeleteOptions")))
    given: Object = {
        "gracePeriodSeconds": request.number("gracePeriodSeconds"),
        "orphanDependents": request.flag("orphanDependents"),
        "propagationPolicy": request.query.get("propagationPolicy"),
        "preconditions": {name: request.query.get(name) or None for name in ("uid", "resourceVersion")},
    }
    return delete_options(given, tries=dry_run(request))


def _decode(given: Any) -> Object:
    if not isinstance(given, dict | None):
        raise errors.bad_request("couldn't get version/kind; json parse error")
    node = node_of("v1", "DeleteOptions")
    assert node is not None
    try:
        return read_object(node, given or {})[0]
    except UnreadableError as error:
        raise errors.bad_request(str(error)) from error


def delete_options(given: Object, *, tries: bool = False) -> DeleteOptions:
    """Return the options of a delete from their decoded form.

    Args:
        given: The options.
        tries: Whether the request only tries its write.

    Raises:
        StatusError: 422.
    """
    policy, orphans = given.get("propagationPolicy"), given.get("orphanDependents")
    if orphans is not None:
        if policy is not None:
            why = "orphanDependents and deletionPropagation cannot be both set"
            causes = [errors.field_invalid("propagationPolicy", policy, why)]
            raise errors.invalid("DeleteOptions", "meta.k8s.io", "", causes)
        policy = "Orphan" if orphans else "Background"
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace_period_seconds=given.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation_policy=policy,
        dry_run=_is_dry(given.get("dryRun") or [], "DeleteOptions") or tries,
    )
