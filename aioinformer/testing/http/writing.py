"""The writing requests: POST, PUT, PATCH, DELETE."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.testing import errors
from aioinformer.testing.access.escalation import check_grant
from aioinformer.testing.apply.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    apply_patch,
    unsupported_patch,
)
from aioinformer.testing.cluster.binding import bind
from aioinformer.testing.cluster.cluster import ChangedMeanwhileError
from aioinformer.testing.cluster.deletion import check_preconditions, delete, delete_collection, warning
from aioinformer.testing.cluster.eviction import evict
from aioinformer.testing.cluster.options import DeleteOptions, WriteOptions
from aioinformer.testing.errors import StatusError
from aioinformer.testing.http.answers import respond, show, success, warn
from aioinformer.testing.http.bodies import object_in, parse, parse_yaml, read_body
from aioinformer.testing.http.options import (
    delete_options,
    dry_run,
    field_check,
    options_of_delete,
    write_options,
)
from aioinformer.testing.objects import Object
from aioinformer.testing.rules.scale import applied_scale, rescale
from aioinformer.testing.rules.values import decode_values
from aioinformer.testing.schema.unknown import FieldCheck
from aioinformer.testing.storage.builtin import BINDINGS
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aiohttp import web

    from aioinformer.testing.access.accounts import Accounts
    from aioinformer.testing.access.authorization import Authorizer
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.http.reviews import Reviews
    from aioinformer.testing.http.views import View
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredObject
    from aioinformer.testing.webhooks import Admission

T = TypeVar("T")

_DELETES_PER_SLICE = 100
"""How many objects of a collection are deleted before the handler yields to other tasks."""


class Writer:
    """Answers writing requests.

    Args:
        cluster: The cluster.
        changed: Called after each change.
        reviews: Answers reviews, which are not stored.
        accounts: Issues the tokens of service accounts.
        authorizer: Knows which rights users have, and so which they may grant.
    """

    def __init__(
        self,
        cluster: Cluster,
        changed: Callable[[], None],
        reviews: Reviews,
        accounts: Accounts,
        authorizer: Authorizer,
    ) -> None:
        self._cluster = cluster
        self._authorizer = authorizer
        self._accounts = accounts
        self._changed = changed
        self._reviews = reviews

    async def create(
        self, http: web.BaseRequest, request: Request, view: View, admission: Admission | None
    ) -> web.StreamResponse:
        """Answer a POST to a collection."""
        resource = view.resource
        body = await read_body(http)
        if resource is BINDINGS:
            given = _read_posted(body, http, request, resource)
            given["metadata"].pop("uid", None)  # wiped, except in a POST to the subresource
            if admission is not None:
                given = await admission.admit(resource, given, dry_run=dry_run(request))
            bind(self._cluster, request.namespace, given, dry_run=dry_run(request))
            self._changed()
            return success(view.encoding, 201)
        if not resource.stored:
            obj = _read_posted(body, http, request, resource)
            if admission is not None:
                obj = await admission.admit(resource, obj, dry_run=dry_run(request))
            return respond(view.encoding, self._reviews.answer(request, resource, obj), 201)
        obj = object_in(body, http, resource)
        options = self._options(http, request, admission, field_check(http, request, body, obj))
        stored = await self._cluster.create_async(resource, request.namespace, obj, options)
        self._changed()
        return _add_warnings(show(request, view, stored, 201), options)

    async def create_subresource(
        self, http: web.BaseRequest, request: Request, view: View, admission: Admission | None
    ) -> web.StreamResponse:
        """Answer a POST to a subresource: a pod's binding or eviction, a service account's token."""
        resource = view.resource
        kind = resource.subresource_type(request.subresource)
        given = _read_posted(await read_body(http), http, request, kind)
        if request.subresource != "token" and given["metadata"].get("name") != request.name:
            raise errors.bad_request(f"name in URL does not match name in {kind.kind} object")
        options = delete_options(given.get("deleteOptions") or {}, tries=dry_run(request))
        if admission is not None:
            given = await admission.admit(resource, given, dry_run=options.dry_run)
        match request.subresource:
            case "binding":
                bind(self._cluster, request.namespace, given, dry_run=options.dry_run)
            case "eviction":
                evict(self._cluster, request.namespace, request.name, options)
            case "token":
                issued = self._accounts.issue(request.namespace, request.name, given)
                return respond(view.encoding, issued, 201)
        self._changed()
        return success(view.encoding, 201)

    async def update(
        self, http: web.BaseRequest, request: Request, view: View, admission: Admission | None
    ) -> web.StreamResponse:
        """Answer a PUT."""
        resource = view.resource
        if request.subresource == "scale":
            scale = _read_posted(await read_body(http), http, request, resource.subresource_type("scale"))
            return await self._rescale(http, request, view, lambda _: scale, admission)
        body = await read_body(http)
        obj = object_in(body, http, resource)
        options = self._options(http, request, admission, field_check(http, request, body, obj))
        stored, created = await _until_unchanged(
            lambda: self._cluster.update_async(resource, request.namespace, request.name, obj, options)
        )
        self._changed()
        return _add_warnings(show(request, view, stored, 201 if created else 200), options)

    async def patch(
        self, http: web.BaseRequest, request: Request, view: View, admission: Admission | None
    ) -> web.StreamResponse:
        """Answer a PATCH of any type."""
        resource, content_type, body = view.resource, http.content_type, await read_body(http)
        if content_type == APPLY_PATCH:
            return await self._apply(http, request, view, body, admission)
        if content_type not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        if content_type == STRATEGIC_PATCH and resource.custom:  # even for a missing object
            raise unsupported_patch(resource)
        patch = parse(body, "error decoding patch")
        fields = field_check(http, request, body, patch)

        def change(obj: Object) -> Object:
            return apply_patch(resource, obj, patch, content_type)

        if request.subresource == "scale":
            return await self._rescale(http, request, view, change, admission)
        options = self._options(http, request, admission, fields)
        if content_type == STRATEGIC_PATCH:
            options = replace(options, strategic=patch)
        stored = await _until_unchanged(
            lambda: self._cluster.modify_async(resource, request.namespace, request.name, change, options)
        )
        self._changed()
        return _add_warnings(show(request, view, stored), options)

    async def _apply(
        self, http: web.BaseRequest, request: Request, view: View, body: bytes, admission: Admission | None
    ) -> web.StreamResponse:
        resource = view.resource
        options = self._options(http, request, admission, applying=True)

        def configuration() -> Object:
            """Return the configuration; each attempt gets its own, which it changes."""
            applied = parse_yaml(body)
            if not isinstance(applied, dict):
                raise errors.bad_request("error decoding YAML: the configuration is no object")
            return (
                applied_scale(resource, applied, request.name) if request.subresource == "scale" else applied
            )

        stored, created = await _until_unchanged(
            lambda: self._cluster.apply_async(
                resource,
                request.namespace,
                request.name,
                configuration(),
                options,
                force=bool(request.flag("force")),
            )
        )
        self._changed()
        return show(request, view, stored, 201 if created else 200)

    async def _rescale(
        self,
        http: web.BaseRequest,
        request: Request,
        view: View,
        change: Callable[[Object], Any],
        admission: Admission | None,
    ) -> web.Response:
        resource, options = view.resource, self._options(http, request, admission)
        stored = await _until_unchanged(
            lambda: self._cluster.modify_async(
                resource,
                request.namespace,
                request.name,
                lambda obj: rescale(resource, obj, change),
                options,
            )
        )
        self._changed()
        return show(request, view, stored)

    def _options(
        self,
        http: web.BaseRequest,
        request: Request,
        admission: Admission | None,
        fields: FieldCheck | None = None,
        *,
        applying: bool = False,
    ) -> WriteOptions:
        options = write_options(http, request, fields, applying=applying)
        guard = partial(check_grant, self._authorizer, request)
        return replace(options, admission=admission, guard=guard)

    async def delete(
        self, http: web.BaseRequest, request: Request, view: View, admission: Admission | None
    ) -> web.StreamResponse:
        """Answer a DELETE of an object."""
        resource = view.resource
        options = await options_of_delete(http, request)
        if admission is not None:
            await self._admit_delete(admission, resource, request.namespace, request.name, options)
        outcome = delete(self._cluster, resource.stored_type, request.namespace, request.name, options)
        self._changed()
        if not outcome.gone:
            answer = show(request, view, await self._cluster.show(resource, outcome.stored))
            if text := warning(resource, options):
                answer.headers["Warning"] = f'299 - "{text}"'
            return answer
        if resource.returns_deleted:
            last = outcome.event.last if outcome.event is not None else outcome.stored
            return show(request, view, last)
        return success(
            view.encoding,
            name=outcome.stored.name,
            group=resource.group,
            kind=resource.plural,
            uid=outcome.stored.uid,
        )

    async def delete_collection(
        self,
        http: web.BaseRequest,
        request: Request,
        resource: ResourceType,
        objects: Iterable[StoredObject],
        admission: Admission | None,
    ) -> list[StoredObject]:
        """Delete a collection or a page of it; return the deleted objects."""
        options = await options_of_delete(http, request)
        deleted: list[StoredObject] = []
        for stored in objects:
            if (
                admission is not None
                and self._cluster.find(resource, stored.namespace, stored.name) is not None
            ):
                await self._admit_delete(admission, resource, stored.namespace, stored.name, options)
            deleted += delete_collection(self._cluster, resource.stored_type, [stored], options)
            if len(deleted) % _DELETES_PER_SLICE == 0:
                await asyncio.sleep(0)
        self._changed()
        return deleted

    async def _admit_delete(
        self,
        admission: Admission,
        resource: ResourceType,
        namespace: str,
        name: str,
        options: DeleteOptions,
    ) -> None:
        """Ask the webhooks about a deletion, again if the object changes meanwhile."""
        stored: StoredObject | None = None
        while (current := self._cluster.get(resource, namespace, name)) is not stored:
            stored = current
            check_preconditions(resource, stored, options)
            old = load(resource, await self._cluster.show(resource, stored))
            await admission.admit_delete(resource, old, dry_run=options.dry_run)


async def _until_unchanged(write: Callable[[], Awaitable[T]]) -> T:
    """Return the result of a write; repeat it while others change its object before its webhooks have answered."""
    while True:
        try:
            return await write()
        except ChangedMeanwhileError:
            continue


def _read_posted(body: bytes, http: web.BaseRequest, request: Request, kind: ResourceType) -> Object:
    """Return a body as an object of a kind that is not stored; refuse another kind or namespace."""
    given = object_in(body, http, kind)
    if (other := given.get("kind") or kind.kind) != kind.kind:
        raise errors.unknown_conversion(other, given.get("apiVersion"), kind)
    given = decode_values(kind, given)
    if given["metadata"].get("namespace") not in (None, request.namespace):
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(why)
    return given


def _add_warnings(answer: web.Response, options: WriteOptions) -> web.Response:
    warn(answer, options.fields.warnings)
    return answer
