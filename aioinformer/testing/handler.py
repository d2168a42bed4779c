"""The HTTP layer: from a request to the cluster and back."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.testing import errors
from aioinformer.testing.answers import JSON, hang_up, refusal, show
from aioinformer.testing.discovery import Discovery
from aioinformer.testing.errors import StatusError
from aioinformer.testing.listing import ListOptions, Page, list_page, page_body, parse_resource_version
from aioinformer.testing.requests import Request, parse_request
from aioinformer.testing.resources import verbs_of
from aioinformer.testing.reviews import Reviews
from aioinformer.testing.selection import Selection
from aioinformer.testing.selectors import FieldSelector, parse_labels
from aioinformer.testing.views import PlainView, negotiate
from aioinformer.testing.watches import OpenWatch, WatchCursor, WatchOptions, error_line, in_stream
from aioinformer.testing.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.faults import Faults, Truncation
    from aioinformer.testing.resources import ResourceType

_logger = logging.getLogger(__name__)

_SMALL_LIST = 1 << 18
"""A list of up to so many bytes is sent in one piece, with its length."""


class Handler:
    """Answers requests.

    Args:
        cluster: What they are about.
        faults: What is to go wrong.
        identify: Called with the bearer token of each request; says who asks.
        authorize: Called with each request and its bearer token; raises 401 or 403.
        allowed: Whether a request would be let through.
        record: Called with each request as it comes.
        changed: Called after each write.
        bookmark_interval: Seconds between the bookmarks of a watch.
        watch_list: Whether watches can send the initial events.

    Attributes:
        watches: The open ones.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: Faults,
        *,
        identify: Callable[[str | None], str],
        authorize: Callable[[Request, str | None], None],
        allowed: Callable[[Request], bool],
        record: Callable[[Request], None],
        changed: Callable[[], None],
        bookmark_interval: float,
        watch_list: bool,
    ) -> None:
        self._cluster = cluster
        self._faults = faults
        self._identify = identify
        self._authorize = authorize
        self._record = record
        self._bookmark_interval = bookmark_interval
        self._watch_list = watch_list
        self._discovery = Discovery(cluster.registry)
        self._writer = Writer(cluster, changed, Reviews(identify=identify, allowed=allowed))
        self.watches: dict[OpenWatch, None] = {}

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        query = http.query
        request = parse_request(http.method, http.path, {name: query[name] for name in query})
        token = _bearer_token(http)
        request.user, request.time = self._identify(token), self._cluster.time()
        self._record(request)
        while (frozen := self._faults.thawed(request)) is not None:
            await frozen.wait()
        if seconds := self._faults.delay_for(request):
            await asyncio.sleep(seconds)
        try:
            failure = self._faults.failure_for(request)
            if failure is not None and not (failure.in_stream and request.verb == "watch"):
                raise failure.error
            self._authorize(request, token)
            if failure is not None:
                return await _error_stream(http, request, failure.error)
            response = await self._answer(http, request)
        except StatusError as error:
            response = refusal(error)
        except ConnectionError:
            raise
        except Exception as error:
            _logger.exception("%s %s failed", request.method, request.path)
            if request.status:  # the answer has begun: there is no taking it back
                hang_up(http, flush=False)
                raise
            response = refusal(StatusError(500, "InternalError", f"Internal error occurred: {error}"))
        request.status = response.status
        return response

    async def _answer(self, http: web.BaseRequest, request: Request) -> web.StreamResponse:
        if not request.resource:
            return self._discovery.answer(request, http.headers.get("Accept", ""))
        resource = self._cluster.registry.find(request.group, request.version, request.resource)
        if resource is None:
            if self._discovery.has_builtin_group(request.group):
                raise errors.path_not_found()
            return web.Response(status=404, text="404 page not found\n")
        if request.namespace and not resource.namespaced:
            raise errors.path_not_found()
        if request.subresource and request.subresource not in resource.subresources:
            raise errors.path_not_found()
        if request.name and not resource.stored:
            raise errors.path_not_found()
        if request.subresource and request.verb not in verbs_of(request.subresource):
            raise errors.method_not_allowed()
        if not resource.stored and request.verb != "create":
            raise errors.method_not_allowed()
        match request.verb:
            case "watch":
                return await self._watch(http, request, resource)
            case "list":
                return await self._list(http, request, resource)
            case "get":
                return self._get(http, request, resource)
        if resource.namespaced and not request.namespace:
            raise errors.method_not_allowed()
        return await self._write(http, request, resource)

    async def _write(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        writer = self._writer
        match request.verb:
            case "create" if not request.name:
                return await writer.create(http, request, resource)
            case "create" if request.subresource:
                return await writer.create_subresource(http, request, resource)
            case "update" if request.name:
                return await writer.update(http, request, resource)
            case "patch" if request.name:
                return await writer.patch(http, request, resource)
            case "delete" if not request.subresource:
                return await writer.delete(http, request, resource)
            case "deletecollection" if "deletecollection" in resource.verbs:
                options = _list_options(request, resource)
                collection = self._cluster.collection(resource)
                page = list_page(collection, options, self._cluster.resource_version)
                deleted = await writer.delete_collection(http, request, resource, page.items)
                version = self._cluster.resource_version
                page = replace(page, items=deleted, resource_version=version)
                return await _send_page(http, request, resource, page)
        raise errors.method_not_allowed()

    def _get(self, http: web.BaseRequest, request: Request, resource: ResourceType) -> web.Response:
        version = parse_resource_version(request.query.get("resourceVersion", ""))
        if version > self._cluster.resource_version:
            raise errors.resource_version_too_large(version, self._cluster.resource_version)
        stored = self._cluster.get(resource, request.namespace, request.name)
        return show(http, request, resource, stored)

    async def _list(
        self, http: web.BaseRequest, request: Request, resource: ResourceType
    ) -> web.StreamResponse:
        view = negotiate(http.headers.get("Accept", ""), resource, request.query.get("includeObject", ""))
        options = _list_options(request, resource)
        collection, current = self._cluster.collection(resource), self._cluster.resource_version
        version = self._faults.replica_version(request, current, collection.log.floor)
        page = list_page(collection, options, version)
        if not isinstance(view, PlainView):
            body = view.page(page.items, str(page.resource_version), page.continue_token, page.remaining)
            return web.Response(body=body, headers=JSON)
        truncation = self._faults.truncation_for(request)
        if truncation is not None:
            return await _send_truncated(http, resource, page, truncation)
        return await _send_page(http, request, resource, page)

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
        view = negotiate(http.headers.get("Accept", ""), resource, request.query.get("includeObject", ""))
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
                return await _error_stream(http, request, error)
            raise
        watch = OpenWatch(
            request,
            cursor,
            timeout=options.timeout_seconds or None,  # 0 is the server's choice, which is none here
            bookmark_interval=self._bookmark_interval,
            hang_up=lambda flush: hang_up(http, flush=flush),
            keep_bookmark=self._faults.keep_bookmark,
            thawed=self._faults.thawed,
        )
        response = web.StreamResponse(headers=JSON)
        request.status = 200
        self.watches[watch] = None
        collection.watchers[watch.wake] = None
        try:
            await response.prepare(http)
            await watch.run(response)
        except ConnectionError:
            pass  # the client has gone: aiohttp finds that out again, and is quiet then
        finally:
            collection.watchers.pop(watch.wake, None)
            del self.watches[watch]
        return response


def _bearer_token(http: web.BaseRequest) -> str | None:
    scheme, _, token = http.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _selection(request: Request, resource: ResourceType) -> Selection:
    labels = parse_labels(request.query.get("labelSelector", ""))
    fields = FieldSelector.parse(request.query.get("fieldSelector", ""), resource)
    if request.name:
        if fields and fields.exact("metadata.name") != request.name:
            raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
        fields = fields or FieldSelector.name(request.name)
    return Selection(request.namespace, labels, fields)


def _list_options(request: Request, resource: ResourceType) -> ListOptions:
    request.number("timeoutSeconds")
    return ListOptions(
        selection=_selection(request, resource),
        resource_version=request.query.get("resourceVersion", ""),
        resource_version_match=request.query.get("resourceVersionMatch", ""),
        limit=max(request.number("limit") or 0, 0),
        continue_token=request.query.get("continue", ""),
        send_initial_events=request.flag("sendInitialEvents"),
    )


async def _send_page(
    http: web.BaseRequest, request: Request, resource: ResourceType, page: Page
) -> web.StreamResponse:
    """Send a list: a small one whole, a large one in pieces, with turns for others between them."""
    pieces = page_body(resource, page)
    first = next(pieces)
    second = next(pieces, b"")
    if len(first) + len(second) < _SMALL_LIST:
        return web.Response(body=first + second + b"".join(pieces), headers=JSON)
    response = web.StreamResponse(headers=JSON)
    request.status = 200
    await response.prepare(http)
    await response.write(first)
    await response.write(second)
    for piece in pieces:
        await response.write(piece)
        await asyncio.sleep(0)
    return response


async def _send_truncated(
    http: web.BaseRequest, resource: ResourceType, page: Page, truncation: Truncation
) -> web.StreamResponse:
    """Send a fraction of the objects and half of one more, then hang up."""
    response = web.StreamResponse(headers=JSON)
    await response.prepare(http)
    kept = min(int(len(page.items) * truncation.fraction), max(len(page.items) - 1, 0))
    part = Page(page.items[: kept + 1], page.resource_version, page.continue_token, page.remaining)
    *whole, last = page_body(resource, part)
    for piece in whole:
        await response.write(piece)
    cut = len(page.items[kept].body) // 2 if page.items else 0
    await response.write(last[: max(len(last) - cut - 4, 1)])
    hang_up(http, flush=True)
    return response


async def _error_stream(http: web.BaseRequest, request: Request, error: StatusError) -> web.StreamResponse:
    """A watch that consists of an error."""
    response = web.StreamResponse(headers=JSON)
    request.status = 200
    await response.prepare(http)
    await response.write(error_line(error.status))
    return response
