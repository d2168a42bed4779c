"""The HTTP handler: it turns requests into calls of the cluster."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.testing import errors
from aioinformer.testing.access.impersonation import impersonated_user
from aioinformer.testing.apply.patches import APPLY_PATCH
from aioinformer.testing.errors import StatusError
from aioinformer.testing.http.answers import accept_of, hang_up, headers_of, refusal, show, warn
from aioinformer.testing.http.connect import CONNECTING, connect
from aioinformer.testing.http.encodings import JSON
from aioinformer.testing.http.listing import ListOptions, Page, list_page, parse_resource_version
from aioinformer.testing.http.metrics import Metrics
from aioinformer.testing.http.negotiation import negotiate
from aioinformer.testing.http.paths import Paths
from aioinformer.testing.http.reviews import Reviews
from aioinformer.testing.http.selection import Selection
from aioinformer.testing.http.watches import OpenWatch, WatchCursor, check_watch, in_stream
from aioinformer.testing.http.websockets import run_on_websocket, wants_websocket
from aioinformer.testing.http.writing import Writer
from aioinformer.testing.requests import Request, parse_request
from aioinformer.testing.storage.selectors import FieldSelector, parse_labels
from aioinformer.testing.storage.shards import ShardSelector
from aioinformer.testing.users import User, user_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.access.accounts import Accounts
    from aioinformer.testing.access.authentication import Authenticator
    from aioinformer.testing.access.authorization import Authorizer
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.control import Control
    from aioinformer.testing.faults import Faults, Truncation
    from aioinformer.testing.http.views import View
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.webhooks import Admission, Webhooks

_logger = logging.getLogger(__name__)

_WRITE_SIZE = 1 << 18
"""About how many bytes of a list a write takes; a smaller list is sent with its length."""

_ITEMS_PER_SLICE = 100
"""Items of a list after which the handler yields to other tasks."""


class Handler:
    """Answers requests.

    Args:
        cluster: The cluster.
        faults: The faults to inject.
        authenticator: Knows the users of bearer tokens.
        accounts: Issues the tokens of service accounts.
        webhooks: The webhooks that configurations and definitions name.
        authorizer: Decides which requests are permitted.
        record: Called with each request on arrival.
        changed: Called after each write.
        bookmark_interval: Seconds between the bookmarks of a watch.
        watch_list: Whether watches can send the initial events.
        shards: Whether lists and watches can select shards.
        control: Answers requests for faults, if any.
        answered: Called with each request after its answer, if any.

    Attributes:
        watches: The open watches.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: Faults,
        *,
        authenticator: Authenticator,
        accounts: Accounts,
        webhooks: Webhooks,
        authorizer: Authorizer,
        record: Callable[[Request], None],
        changed: Callable[[], None],
        bookmark_interval: float,
        watch_list: bool,
        shards: bool,
        control: Control | None = None,
        answered: Callable[[Request], object] | None = None,
    ) -> None:
        self._cluster = cluster
        self._control = control
        self._answered = answered
        self._faults = faults
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._record = record
        self._bookmark_interval = bookmark_interval
        self._watch_list = watch_list
        self._shards = shards
        self._metrics = Metrics(cluster, lambda: [watch.request for watch in self.watches])
        self._paths = Paths(cluster, accounts, self._metrics)
        self._webhooks = webhooks
        self._writer = Writer(cluster, changed, Reviews(authenticator, authorizer), accounts, authorizer)
        self.watches: dict[OpenWatch, None] = {}

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        query = http.query
        request = parse_request(http.method, http.path, {name: query[name] for name in query})
        token = _bearer_token(http)
        request.time = self._cluster.time()
        request.act_as(user := self._authenticator.identify(token))
        if (wanted := impersonated_user(http.headers)) is not None:
            request.impersonator = request.user
            request.act_as(user_of(*wanted))
        if self._control is not None and self._control.serves(request.path):
            try:
                self._authorizer.check(request, token, user, wanted, may_create=False)
                return self._control.answer(http)
            except StatusError as error:
                return refusal(http, error)
        self._record(request)
        try:
            return await self._answer_recorded(http, request, token, user, wanted)
        finally:
            if self._answered is not None:
                self._answered(request)

    async def _answer_recorded(
        self, http: web.BaseRequest, request: Request, token: str | None, user: User, wanted: User | None
    ) -> web.StreamResponse:
        """Answer a request that was recorded, with the faults that are injected."""
        while (frozen := self._faults.thaw_event(request)) is not None:
            await frozen.wait()
        if seconds := self._faults.delay_for(request):
            await asyncio.sleep(seconds)
        try:
            failure = self._faults.failure_for(request)
            if failure is not None and not (failure.in_stream and request.verb == "watch"):
                raise failure.error
            may_create = request.verb == "update" or http.content_type == APPLY_PATCH
            self._authorizer.check(request, token, user, wanted, may_create=may_create)
            response = await self._answer(http, request, None if failure is None else failure.error)
        except StatusError as error:
            response = refusal(http, error)
        except ConnectionError:
            raise
        except Exception as error:
            _logger.exception("%s %s failed", request.method, request.path)
            if request.status:  # too late for an error status: the answer has begun
                hang_up(http, flush=False)
                raise
            response = refusal(http, StatusError(500, "InternalError", f"Internal error occurred: {error}"))
        request.status = response.status
        self._metrics.count(request, applied=request.verb == "patch" and http.content_type == APPLY_PATCH)
        return response

    async def _answer(
        self, http: web.BaseRequest, request: Request, in_watch: StatusError | None
    ) -> web.StreamResponse:
        """Answer a request; send `in_watch` as the first event of a watch."""
        if "//" in request.path.rstrip("/"):
            raise errors.path_not_found()
        if not request.resource:
            return self._paths.answer(request, accept_of(http), f"{http.scheme}://{http.host}")
        resource = self._resource(request)
        if resource is None:
            return web.Response(status=404, text="404 page not found\n")
        if request.subresource in CONNECTING:
            return connect(self._cluster, resource, request)
        view = negotiate(accept_of(http), resource, request.query.get("includeObject", ""), request.verb)
        match request.verb:
            case "watch":
                return await self._watch(http, request, view, in_watch)
            case "list":
                return await self._list(http, request, view)
            case "get":
                return await self._get(request, view)
        return await self._write(http, request, view)

    def _resource(self, request: Request) -> ResourceType | None:
        """Return the resource that a request is for; None if its group is unknown.

        Raises:
            StatusError: 404, 405.
        """
        registry = self._cluster.registry
        resource = registry.find(request.group, request.version, request.resource)
        if resource is None:
            if registry.has_builtin(request.group):
                raise errors.path_not_found()
            return None
        is_served = (
            (resource.namespaced or not request.namespace)
            and (resource.stored or not request.name)
            and (not request.subresource or request.subresource in resource.subresources)
        )
        if not is_served:
            raise errors.path_not_found()
        target = resource.subresource(request.subresource) if request.subresource else resource
        if request.verb not in target.verbs:
            raise errors.method_not_allowed()
        return resource

    async def _write(self, http: web.BaseRequest, request: Request, view: View) -> web.StreamResponse:
        resource = view.resource
        if resource.namespaced and not request.namespace:
            raise errors.method_not_allowed() if resource.stored else errors.path_not_found()
        admission = self._webhooks.admission(request)
        try:
            response = await self._answer_write(http, request, view, admission)
        except StatusError as error:
            if admission is not None:
                error.warnings = admission.warnings
            raise
        except RecursionError as error:
            raise errors.bad_request(
                "the request or the resulting object is nested too deeply for the embedded API server"
            ) from error
        if admission is not None:
            warn(response, admission.warnings)
        return response

    async def _answer_write(
        self, http: web.BaseRequest, request: Request, view: View, admission: Admission | None
    ) -> web.StreamResponse:
        writer, resource = self._writer, view.resource
        match request.verb:
            case "create" if not request.name:
                return await writer.create(http, request, view, admission)
            case "create" if request.subresource:
                return await writer.create_subresource(http, request, view, admission)
            case "update" if request.name:
                return await writer.update(http, request, view, admission)
            case "patch" if request.name:
                return await writer.patch(http, request, view, admission)
            case "delete" if not request.subresource:
                return await writer.delete(http, request, view, admission)
            case "deletecollection":
                options = _list_options(request, resource, shards=self._shards)
                collection = self._cluster.collection(resource)
                page = list_page(collection, options, self._cluster.resource_version)
                deleted = await writer.delete_collection(http, request, resource, page.items, admission)
                deleted = await self._webhooks.conversions.show(resource, deleted)
                version = self._cluster.resource_version
                page = replace(page, items=deleted, resource_version=version)
                return await _send_page(http, request, view, page)
        raise errors.method_not_allowed()

    async def _get(self, request: Request, view: View) -> web.Response:
        version = parse_resource_version(request.query.get("resourceVersion", ""))
        if version > self._cluster.resource_version:
            raise errors.resource_version_too_large(version, self._cluster.resource_version)
        stored = self._cluster.get(view.resource, request.namespace, request.name)
        return show(request, view, await self._cluster.show(view.resource, stored))

    async def _list(self, http: web.BaseRequest, request: Request, view: View) -> web.StreamResponse:
        resource = view.resource
        options = _list_options(request, resource, shards=self._shards)
        collection, current = self._cluster.collection(resource), self._cluster.resource_version
        version = self._faults.replica_version(request, current, collection.log.floor)
        page = list_page(collection, options, version)
        if resource.is_converted:
            page = replace(page, items=await self._webhooks.conversions.show(resource, page.items))
        truncation = self._faults.truncation_for(request)
        if truncation is not None:
            return await _send_truncated(http, view, page, truncation)
        return await _send_page(http, request, view, page)

    async def _watch(
        self, http: web.BaseRequest, request: Request, view: View, in_watch: StatusError | None
    ) -> web.StreamResponse:
        """Run a watch; if `in_watch` is set, send only this error."""
        if in_watch is not None:
            return await _error_stream(http, request, view, in_watch)
        options = _list_options(request, view.resource, shards=self._shards)
        check_watch(options, watch_list=self._watch_list)
        collection = self._cluster.collection(view.resource)
        try:
            cursor = WatchCursor(
                view,
                collection,
                options,
                current=lambda: self._cluster.resource_version,
                shown=self._webhooks.conversions.show,
                watch_list=self._watch_list,
            )
        except StatusError as error:
            if in_stream(error) and not self._faults.expired_as_status:
                return await _error_stream(http, request, view, error)
            raise
        watch = OpenWatch(
            request,
            cursor,
            timeout=options.timeout_seconds or None,  # 0 means the server's default, here no timeout
            bookmark_interval=self._bookmark_interval,
            hang_up=lambda flush: hang_up(http, flush=flush),
            keep_bookmark=self._faults.keep_bookmark,
            thawed=self._faults.thaw_event,
        )
        response = web.StreamResponse(headers=headers_of(view, stream=True))
        self.watches[watch] = None
        collection.watchers[watch.wake] = None
        try:
            if view.encoding is JSON and wants_websocket(http):
                request.status = 101
                return await run_on_websocket(http, watch.run)
            request.status = 200
            await response.prepare(http)
            await watch.run(response)
        except ConnectionError:
            pass  # the client has disconnected; aiohttp handles this itself
        finally:
            collection.watchers.pop(watch.wake, None)
            del self.watches[watch]
        return response


def _bearer_token(http: web.BaseRequest) -> str | None:
    scheme, _, token = http.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _selection(request: Request, resource: ResourceType, *, shards: bool = False) -> Selection:
    labels = parse_labels(request.query.get("labelSelector", ""))
    fields = FieldSelector.parse(request.query.get("fieldSelector", ""), resource)
    if request.name:
        if fields and fields.exact("metadata.name") != request.name:
            raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
        fields = fields or FieldSelector.name(request.name)
    selector = request.query.get("shardSelector", "") if shards else ""
    return Selection(
        request.namespace, labels, fields, ShardSelector.parse(selector) if selector else ShardSelector()
    )


def _list_options(request: Request, resource: ResourceType, *, shards: bool) -> ListOptions:
    return ListOptions(
        selection=_selection(request, resource, shards=shards),
        resource_version=request.query.get("resourceVersion", ""),
        resource_version_match=request.query.get("resourceVersionMatch", ""),
        limit=max(request.number("limit") or 0, 0),
        continue_token=request.query.get("continue", ""),
        send_initial_events=request.flag("sendInitialEvents"),
        allow_bookmarks=bool(request.flag("allowWatchBookmarks")),
        timeout_seconds=request.number("timeoutSeconds"),
    )


async def _send_page(http: web.BaseRequest, request: Request, view: View, page: Page) -> web.StreamResponse:
    """Send a list: a small list at once, a large list in pieces, yielding to other tasks between them."""
    response: web.StreamResponse | None = None
    pending: list[bytes] = []
    size = 0
    for number, piece in enumerate(view.page(page), 1):
        pending.append(piece)
        size += len(piece)
        if size >= _WRITE_SIZE:
            if response is None:
                response = web.StreamResponse(headers=headers_of(view))
                request.status = 200
                await response.prepare(http)
            await response.write(b"".join(pending))
            pending, size = [], 0
        if number % _ITEMS_PER_SLICE == 0:
            await asyncio.sleep(0)
    if response is None:
        return web.Response(body=b"".join(pending), headers=headers_of(view))
    await response.write(b"".join(pending))
    return response


async def _send_truncated(
    http: web.BaseRequest, view: View, page: Page, truncation: Truncation
) -> web.StreamResponse:
    """Send a fraction of the objects and half of the next, then close the connection."""
    response = web.StreamResponse(headers=headers_of(view))
    await response.prepare(http)
    kept = min(int(len(page.items) * truncation.fraction), max(len(page.items) - 1, 0))
    head, *rest = filter(None, view.page(page))
    await response.write(b"".join([head, *rest[:kept]]))
    for piece in rest[kept : kept + 1]:
        await response.write(piece[: len(piece) // 2])
    hang_up(http, flush=True)
    return response


async def _error_stream(
    http: web.BaseRequest, request: Request, view: View, error: StatusError
) -> web.StreamResponse:
    """Send a watch that contains only an error."""
    response = web.StreamResponse(headers=headers_of(view, stream=True))
    request.status = 200
    await response.prepare(http)
    await response.write(view.error(error.status))
    return response
