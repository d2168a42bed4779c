"""The HTTP layer: from a request to the cluster and back."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing import errors
from aioinformer.testing.cluster import DeleteOptions, WriteOptions
from aioinformer.testing.deletion import delete, delete_collection
from aioinformer.testing.discovery import Discovery
from aioinformer.testing.errors import StatusError
from aioinformer.testing.listing import ListOptions, Page, list_page, page_body, parse_resource_version
from aioinformer.testing.objects import Object, load, parse, raw
from aioinformer.testing.patches import APPLY_PATCH, apply_patch, unsupported_patch
from aioinformer.testing.requests import Request, parse_request
from aioinformer.testing.scale import scale_of, with_scale
from aioinformer.testing.selection import Selection
from aioinformer.testing.selectors import FieldSelector, LabelSelector
from aioinformer.testing.views import PlainView, negotiate
from aioinformer.testing.watches import OpenWatch, WatchCursor, WatchOptions, error_line, in_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.faults import Faults, Truncation
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredObject

_logger = logging.getLogger(__name__)

_BODY_LIMIT = 3 * 1024 * 1024
_SMALL_LIST = 1 << 18
_JSON = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_PATCH_TYPES = frozenset(
    [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        APPLY_PATCH,
    ]
)

_RETURNS_DELETED = frozenset(
    [
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ResourceQuota",
        "Service",
        "ServiceAccount",
        "StorageClass",
    ]
)


class Handler:
    """Answers requests.

    Args:
        cluster: What they are about.
        faults: What is to go wrong.
        authorize: Called with each request and its bearer token; raises 401 or 403.
        record: Called with each request as it comes.
        changed: Called after each write.
        bookmark_interval: Seconds between the bookmarks of a watch.
        watch_list: Whether watches can send the initial events.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: Faults,
        *,
        authorize: Callable[[Request, str | None], None],
        record: Callable[[Request], None],
        changed: Callable[[], None],
        bookmark_interval: float,
        watch_list: bool,
    ) -> None:
        self._cluster = cluster
        self._faults = faults
        self._authorize = authorize
        self._record = record
        self._changed = changed
        self._bookmark_interval = bookmark_interval
        self._watch_list = watch_list
        self._discovery = Discovery(cluster.registry)
        self.watches: dict[OpenWatch, None] = {}

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        query = http.query
        request = parse_request(http.method, http.path, {name: query[name] for name in query})
        self._record(request)
        while (frozen := self._faults.thawed(request)) is not None:
            await frozen.wait()
        if seconds := self._faults.delay_for(request):
            await asyncio.sleep(seconds)
        try:
            failure = self._faults.failure_for(request)
            if failure is not None and not failure.in_stream:
                raise failure.error
            self._authorize(request, _bearer_token(http))
            if failure is not None:
                return await self._error_stream(http, request, failure.error)
            response = await self._answer(http, request)
        except StatusError as error:
            response = _refusal(error)
        except ConnectionError:
            raise
        except Exception as error:
            _logger.exception("%s %s failed", request.method, request.path)
            response = _refusal(StatusError(500, "InternalError", f"Internal error occurred: {error}"))
        request.status = response.status
        return response

    async def _answer(self, http: web.BaseRequest, request: Request) -> web.StreamResponse:
        if not request.resource:
            return self._discovery.answer(request, http.headers.get("Accept", ""))
        resource = self._cluster.registry.find(request.group, request.version, request.resource)
        if resource is None:
            if self._discovery.knows(request.group, request.version):
                raise errors.path_not_found()
            return web.Response(status=404, text="404 page not found\n")
        if request.namespace and not resource.namespaced:
            raise errors.path_not_found()
        if request.subresource and request.subresource not in resource.subresources:
            raise errors.path_not_found()
        match request.verb:
            case "watch":
                return await self._watch(http, request, resource)
            case "list":
                return await self._list(http, request, resource)
            case "get":
                return self._get(http, request, resource)
        if resource.namespaced and not request.namespace:
            raise errors.method_not_allowed()
        match request.verb:
            case "create" if not request.name:
                return await self._create(http, request, resource)
            case "update" if request.name:
                return await self._update(http, request, resource)
            case "patch" if request.name:
                return await self._patch(http, request, resource)
            case "delete" if not request.subresource:
                return await self._delete(http, request, resource)
            case "deletecollection":
                return await self._delete_collection(http, request, resource)
        raise errors.method_not_allowed()

    # Reading

    def _get(self, http: web.BaseRequest, request: Request, resource: ResourceType) -> web.Response:
        version = parse_resource_version(request.query.get("resourceVersion", ""))
        if version > self._cluster.resource_version:
            raise errors.resource_version_too_large(version, self._cluster.resource_version)
        stored = self._cluster.get(resource, request.namespace, request.name)
        return self._object(http, request, resource, stored)

    async def _list(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        view = negotiate(http.headers.get("Accept", ""), resource)
        options = ListOptions(
            selection=_selection(request, resource),
            resource_version=request.query.get("resourceVersion", ""),
            resource_version_match=request.query.get("resourceVersionMatch", ""),
            limit=max(request.number("limit") or 0, 0),
            continue_token=request.query.get("continue", ""),
            send_initial_events=request.flag("sendInitialEvents"),
        )
        page = list_page(self._cluster.collection(resource), options, self._cluster.resource_version)
        if isinstance(view, PlainView):
            return await self._send_page(http, request, resource, page)
        body = view.page(page.items, str(page.resource_version), page.continue_token, page.remaining)
        return web.Response(body=body, headers=_JSON)

    async def _send_page(
        self, http: web.BaseRequest, request: Request, resource: ResourceType, page: Page
    ) -> web.StreamResponse:
        truncation = self._faults.truncation_for(request)
        pieces = page_body(resource, page)
        if truncation is not None:
            return await self._send_truncated(http, resource, page, truncation)
        first = next(pieces)
        second = next(pieces, b"")
        if len(first) + len(second) < _SMALL_LIST:
            return web.Response(body=first + second + b"".join(pieces), headers=_JSON)
        response = web.StreamResponse(headers=_JSON)
        request.status = 200
        await response.prepare(http)
        await response.write(first)
        await response.write(second)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        return response

    async def _send_truncated(
        self, http: web.BaseRequest, resource: ResourceType, page: Page, truncation: Truncation
    ) -> web.StreamResponse:
        """Send a fraction of the objects and half of one more, then hang up."""
        response = web.StreamResponse(headers=_JSON)
        await response.prepare(http)
        kept = int(len(page.items) * truncation.fraction)
        part = Page(page.items[: kept + 1], page.resource_version, page.continue_token, page.remaining)
        *whole, last = page_body(resource, part)
        for piece in whole:
            await response.write(piece)
        cut = len(page.items[kept].body) // 2 if page.items else 0
        await response.write(last[: max(len(last) - cut - 4, 1)])
        _hang_up(http, flush=True)
        return response

    async def _watch(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        options = WatchOptions(
            resource_version=request.query.get("resourceVersion", ""),
            resource_version_match=request.query.get("resourceVersionMatch", ""),
            allow_bookmarks=bool(request.flag("allowWatchBookmarks")),
            send_initial_events=request.flag("sendInitialEvents"),
            timeout_seconds=request.number("timeoutSeconds"),
            continue_token=request.query.get("continue", ""),
        )
        options.validate(watch_list=self._watch_list)
        collection = self._cluster.collection(resource)
        view = negotiate(http.headers.get("Accept", ""), resource)
        try:
            cursor = WatchCursor(
                resource,
                collection,
                _selection(request, resource),
                options,
                current=lambda: self._cluster.resource_version,
                watch_list=self._watch_list,
                view=None if isinstance(view, PlainView) else view,
            )
        except StatusError as error:
            if in_stream(error) and not self._faults.expired_as_status:
                return await self._error_stream(http, request, error)
            raise
        watch = OpenWatch(
            request,
            cursor,
            timeout=options.timeout_seconds or None,  # 0 is the server's choice, which is none here
            bookmark_interval=self._bookmark_interval,
            hang_up=lambda flush: _hang_up(http, flush=flush),
            keep_bookmark=self._faults.keep_bookmark,
            thawed=self._faults.thawed,
        )
        response = web.StreamResponse(headers=_JSON)
        request.status = 200
        self.watches[watch] = None
        collection.watchers.add(watch.wake)
        try:
            await response.prepare(http)
            await watch.run(response)
        finally:
            collection.watchers.discard(watch.wake)
            del self.watches[watch]
        return response

    async def _error_stream(
        self, http: web.BaseRequest, request: Request, error: StatusError
    ) -> web.StreamResponse:
        """A watch that consists of an error."""
        response = web.StreamResponse(headers=_JSON)
        request.status = 200
        await response.prepare(http)
        await response.write(error_line(error.status))
        return response

    # Writing

    async def _create(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        obj = _object_of(await _read(http), resource, http)
        stored = self._cluster.create(resource, request.namespace, obj, _write_options(request))
        self._changed()
        return self._object(http, request, resource, stored, 201)

    async def _update(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        body = await _read(http)
        if request.subresource == "scale":
            scale = parse(body)
            return self._scale(request, resource, lambda _: scale)
        obj = _object_of(body, resource, http)
        options = _write_options(request)
        stored, created = self._cluster.update(resource, request.namespace, request.name, obj, options)
        self._changed()
        return self._object(http, request, resource, stored, 201 if created else 200)

    async def _patch(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        content_type = http.content_type
        if content_type not in _PATCH_TYPES:
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        if content_type == APPLY_PATCH:
            raise unsupported_patch(resource)
        patch = parse(await _read(http), "patch")
        if request.subresource == "scale":
            return self._scale(
                request, resource, lambda scale: apply_patch(resource, scale, patch, content_type)
            )
        stored = self._cluster.modify(
            resource,
            request.namespace,
            request.name,
            lambda obj: apply_patch(resource, obj, patch, content_type),
            _write_options(request),
        )
        self._changed()
        return self._object(http, request, resource, stored)

    def _scale(
        self, request: Request, resource: ResourceType, change: Callable[[Object], Any]
    ) -> web.Response:
        stored = self._cluster.modify(
            resource,
            request.namespace,
            request.name,
            lambda obj: with_scale(obj, change(scale_of(obj))),
            WriteOptions(dry_run=_dry_run(request)),
        )
        self._changed()
        return web.json_response(scale_of(load(resource, stored)))

    async def _delete(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        options = _delete_options(await _read(http), request)
        outcome = delete(self._cluster, resource, request.namespace, request.name, options)
        self._changed()
        if not outcome.gone:
            return self._object(http, request, resource, outcome.stored)
        if resource.kind in _RETURNS_DELETED and not resource.custom:
            last = outcome.event.last if outcome.event is not None else outcome.stored
            return self._object(http, request, resource, last)
        details = {"name": outcome.stored.name, "group": resource.group, "kind": resource.plural}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {
                **{key: value for key, value in details.items() if value},
                "uid": outcome.stored.uid,
            },
        }
        return web.json_response(status, headers={"Cache-Control": "no-cache, private"})

    async def _delete_collection(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        options = _delete_options(await _read(http), request)
        selection = _selection(request, resource)
        deleted: list[StoredObject] = []
        for stored in delete_collection(self._cluster, resource, selection, options):
            deleted.append(stored)
            if len(deleted) % 100 == 0:
                await asyncio.sleep(0)
        self._changed()
        page = Page(deleted, self._cluster.resource_version)
        return await self._send_page(http, request, resource, page)

    def _object(
        self,
        http: web.BaseRequest,
        request: Request,
        resource: ResourceType,
        stored: StoredObject,
        status: int = 200,
    ) -> web.Response:
        if request.subresource == "scale":
            return web.json_response(scale_of(load(resource, stored)))
        view = negotiate(http.headers.get("Accept", ""), resource)
        body = raw(resource, stored) if isinstance(view, PlainView) else view.one(stored)
        return web.Response(body=body, status=status, headers=_JSON)


def _bearer_token(http: web.BaseRequest) -> str | None:
    scheme, _, token = http.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _refusal(error: StatusError) -> web.Response:
    headers = dict(_JSON)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return web.Response(body=error.body(), status=error.code, headers=headers)


def _hang_up(http: web.BaseRequest, *, flush: bool) -> None:
    transport = http.transport
    if transport is None:
        return
    if flush:
        transport.close()
    else:
        transport.abort()


async def _read(http: web.BaseRequest) -> bytes:
    """The body, up to the real server's limit."""
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > _BODY_LIMIT:
            raise StatusError(
                413, "RequestEntityTooLarge", f"Request entity too large: limit is {_BODY_LIMIT}"
            )
    return bytes(body)


def _object_of(body: bytes, resource: ResourceType, http: web.BaseRequest) -> Object:
    if http.content_type not in ("application/json", "application/octet-stream", ""):
        raise errors.unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json"
        )
    obj = parse(body, f"object of type {resource.kind}")
    if not isinstance(obj, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    return obj


def _selection(request: Request, resource: ResourceType) -> Selection:
    fields = FieldSelector.parse(request.query.get("fieldSelector", ""), resource)
    if request.name:
        if fields and fields.exact("metadata.name") != request.name:
            raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
        fields = fields or FieldSelector.name(request.name)
    labels = LabelSelector.parse(request.query.get("labelSelector", ""))
    return Selection(request.namespace, labels, fields)


def _dry_run(request: Request) -> bool:
    return request.query.get("dryRun", "") == "All"


def _write_options(request: Request) -> WriteOptions:
    return WriteOptions(subresource=request.subresource, dry_run=_dry_run(request))


def _delete_options(body: bytes, request: Request) -> DeleteOptions:
    given = parse(body) if body.strip() else {}
    if not isinstance(given, dict):
        raise errors.bad_request("the object provided is unrecognized (must be of type DeleteOptions)")
    preconditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds")
    return DeleteOptions(
        grace_period_seconds=grace if grace is not None else request.number("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation_policy=given.get("propagationPolicy") or request.query.get("propagationPolicy"),
        dry_run=_dry_run(request) or given.get("dryRun") == ["All"],
    )
