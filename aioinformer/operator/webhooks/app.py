"""The webhooks of an operator as an application: bytes in, a status and bytes out. It is an ASGI application."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import anyio
import msgspec

from ..._core.cancellation import ending_when, maybe_await, time_limit
from ..._core.failure_log import FailureLog
from ..._core.log_fields import log_source
from ..._core.slow_calls import SLOW_CALL, SlowCalls, StepTimer
from ..._core.spans import KIND, NAMESPACE, OBJECT, OPERATION, WEBHOOK, fail_span, span
from ..._core.texts import valid_text
from ...errors import message_of
from ...objects.nesting import DECODE_ERRORS, reader_of
from ..webhook_counts import CONVERT, WebhookCounts
from .admission import Admission
from .conversion import ConversionRequest, Converter
from .review import AdmissionRequest

logger = logging.getLogger(__name__)

LARGEST_ADMISSION = 7 * 1024 * 1024
"""Bytes of a review: the API server takes objects of 3 MiB, and an update sends two (controller-runtime)."""
LARGEST_CONVERSION = 128 * 1024 * 1024
"""Bytes of a review: the server converts all objects of a page of a list at once."""
SHARE = 0.9
"""The part of the API server's timeout that a function gets."""
CONVERSION_TIMEOUT = 30.0
"""Seconds for all objects of a review. The API server asks for no limit."""

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")

Message = MutableMapping[str, Any]


class Answer(NamedTuple):
    """An HTTP response: JSON if the status is 200, else text."""

    status: int
    body: bytes

    @property
    def content_type(self) -> str:
        """The Content-Type."""
        return "application/json" if self.status == 200 else "text/plain; charset=utf-8"

    @classmethod
    def text(cls, status: int, message: str) -> Answer:
        """Return an answer of one line."""
        return cls(status, f"{valid_text(message)}\n".encode())


class _AdmissionReview(msgspec.Struct, rename="camel"):
    api_version: str
    request: AdmissionRequest


class _ConversionReview(msgspec.Struct, rename="camel"):
    api_version: str
    request: ConversionRequest


class _Endpoint(NamedTuple):
    """What answers at one path."""

    title: str
    read: Callable[[Any], Any]
    kind: str
    handle: Callable[[Any], Awaitable[dict[str, Any]]]
    timeout: float
    largest: int
    slow: SlowCalls


class _Call(NamedTuple):
    """A call, for log messages."""

    path: str
    operation: str
    request: Any

    def log_fields(self) -> dict[str, object]:
        return {
            "webhook": self.path,
            "operation": self.operation,
            "namespace": getattr(self.request, "namespace", ""),
            "name": getattr(self.request, "name", ""),
            "uid": self.request.uid,
        }


async def _review_converted(
    converter: Converter,
    admission: Admission,
    handle: Callable[[AdmissionRequest], Awaitable[dict[str, Any]]],
    request: AdmissionRequest,
) -> dict[str, Any]:
    return await handle(await converter.convert_review(admission.of, request))


class WebhookApp:
    """Answers the API server's reviews. An ASGI application; ``WebhookServer`` serves it with TLS.

    ``operator.webhook_app()`` makes one. In FastAPI: ``app.mount("/webhooks", operator.webhook_app())``.

    A failed webhook answers 500, so that the API server does what the failure policy says. The log has the error; the
    answer has only its type, because its text may be secret.

    Args:
        admissions: Each with the function that answers its requests.
        converters: Of the operator's kinds.
    """

    def __init__(
        self,
        admissions: Iterable[tuple[Admission, Callable[[AdmissionRequest], Awaitable[dict[str, Any]]]]],
        converters: Iterable[Converter],
    ) -> None:
        self._endpoints: dict[str, _Endpoint] = {}
        self._counts: dict[tuple[str, str], WebhookCounts] = {}
        self._log = FailureLog("webhooks", logger)
        converters = tuple(converters)
        converters_by_name = {converter.name: converter for converter in converters}
        for admission, handle in admissions:
            converter = converters_by_name.get(str(admission.of))
            if converter is not None and not admission.mutates and isinstance(admission.resource, type):
                handle = partial(_review_converted, converter, admission, handle)
            self._endpoints[admission.path] = _Endpoint(
                admission.title,
                reader_of(_AdmissionReview),
                "admission.k8s.io/v1 AdmissionReview",
                handle,
                float(admission.timeout),
                LARGEST_ADMISSION,
                SlowCalls(admission.title, logger),
            )
            for operation in admission.operations:
                self._counts_of(admission.path, operation)
        for converter in converters:
            title = f"the conversion of {converter.name}"
            converter.on_unfit = partial(self._record_unconverted, title, converter.path)
            self._endpoints[converter.path] = _Endpoint(
                title,
                reader_of(_ConversionReview),
                "apiextensions.k8s.io/v1 ConversionReview",
                converter.answer,
                CONVERSION_TIMEOUT,
                LARGEST_CONVERSION,
                SlowCalls(title, logger),
            )
            self._counts_of(converter.path, CONVERT)

    @property
    def counts(self) -> Iterable[WebhookCounts]:
        """What each webhook has answered to each operation."""
        return self._counts.values()

    def _counts_of(self, path: str, operation: str) -> WebhookCounts:
        key = path, operation
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = WebhookCounts(*key)
        return counts

    def _record_unconverted(self, title: str, path: str, key: str, error: Exception) -> None:
        self._counts_of(path, CONVERT).unconverted += 1
        self._log.log(
            error,
            "%s keeps the fields of %s as they are: it does not fit its class, and the function cannot convert it: %s",
            title, key, message_of(error), level=logging.WARNING,
        )  # fmt: skip

    @property
    def paths(self) -> list[str]:
        """Where it answers."""
        return [*self._endpoints]

    async def answer(
        self, method: str, path: str, query: str, content_type: str, chunks: AsyncIterator[bytes]
    ) -> Answer:
        """Answer one HTTP request.

        Args:
            method: ``"POST"``.
            path: One of ``paths``.
            query: The query, in which the API server says its timeout.
            content_type: The request's Content-Type.
            chunks: The body. It is read up to the largest size.
        """
        endpoint = self._endpoints.get(path)
        if endpoint is None:
            return Answer.text(404, f"no webhook is at {path}")
        began = monotonic()
        deadline = SHARE * min(endpoint.timeout, _timeout(query))
        end = asyncio.get_running_loop().time() + deadline
        answer: Any = Answer.text(408, f"{endpoint.title}: the review was not read within {deadline:.3g} s")
        with anyio.move_on_after(deadline):
            answer = await self._review(endpoint, method, content_type, chunks)
        if isinstance(answer, Answer):
            counts = self._counts_of(path, "")
            counts.record_failure(answer.body.decode().strip())
            counts.record_end(answer.status, monotonic() - began)
            return answer
        counts = self._counts_of(path, getattr(answer, "operation", CONVERT))
        counts.running += 1
        status = 500
        token = log_source.set(_Call(path, counts.operation, answer))
        try:
            with span(
                f"webhook {path}", _attributes(path, counts.operation, answer), kind="SERVER"
            ) as opened:
                reply = await self._handle(endpoint, answer, deadline, end, counts)
                status = reply.status
                if opened is not None and status != 200:
                    fail_span(opened, str(status), reply.body.decode().strip())
            return reply
        finally:
            log_source.reset(token)
            counts.running -= 1
            counts.record_end(status, monotonic() - began)

    async def _review(
        self, endpoint: _Endpoint, method: str, content_type: str, chunks: AsyncIterator[bytes]
    ) -> Any:
        """Return the review's request, or an Answer that refuses it."""
        if method != "POST":
            return Answer.text(405, f"{endpoint.title} answers POST only")
        if content_type.partition(";")[0].strip().lower() != "application/json":
            return Answer.text(415, f"{endpoint.title} reads application/json only")
        body = bytearray()
        try:
            async for chunk in chunks:
                body += chunk
                if len(body) > endpoint.largest:
                    return Answer.text(413, f"{endpoint.title} reads at most {endpoint.largest:,} bytes")
        except BaseException as error:
            body.clear()  # the error's traceback may keep it for long
            if not isinstance(error, ConnectionError):
                raise
            return Answer.text(400, f"{endpoint.title}: the connection was lost before the review was read")
        try:
            review = endpoint.read(body)
        except DECODE_ERRORS as error:
            return Answer.text(400, f"{endpoint.title} cannot read the review: {error}")
        if review.api_version != endpoint.kind.split()[0]:
            return Answer.text(400, f"{endpoint.title} reads {endpoint.kind}, not {review.api_version}")
        return review.request

    async def _handle(
        self, endpoint: _Endpoint, request: Any, deadline: float, end: float, counts: WebhookCounts
    ) -> Answer:
        call = StepTimer(endpoint.handle(request))
        late = TimeoutError(f"took longer than {deadline:.3g} s")
        task = asyncio.current_task()
        assert task is not None
        try:
            async with time_limit(end - asyncio.get_running_loop().time(), lambda: late) as limit:
                with ending_when(task, limit.expired):
                    response: Any = await maybe_await(call)
                version, kind = endpoint.kind.split()
                body = msgspec.json.encode({"apiVersion": version, "kind": kind, "response": response})
            if response.get("allowed") or response.get("result", {}).get("status") == "Success":
                counts.allowed += 1
            else:
                counts.denied += 1
            return Answer(200, body)
        except Exception as error:
            if error is late:
                counts.record_failure(str(late), timed_out=True)
                self._log.log(error, "%s %s and was cancelled", endpoint.title, late)
                return Answer.text(500, f"{endpoint.title} {late}")
            counts.record_failure(message_of(error))
            self._log.log(error, "%s failed: %s", endpoint.title, message_of(error), traceback=error)
            return Answer.text(
                500, f"{endpoint.title} failed: {type(error).__name__}; see the operator's log"
            )
        finally:
            if call.longest > SLOW_CALL:
                parts = (getattr(request, "namespace", ""), getattr(request, "name", ""))
                key = "/".join(filter(None, parts)) or request.uid
                endpoint.slow.record(key, call.longest, call, counts.running - 1)

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Serve one ASGI scope: a request, or the lifespan."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"webhooks answer HTTP, not {scope['type']}")
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        headers = dict(scope["headers"])
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        query = scope.get("query_string", b"").decode("latin-1")
        answer = await self.answer(scope["method"], path, query, content_type, _body(receive))
        sent = [
            (b"content-type", answer.content_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": answer.body})


def _attributes(path: str, operation: str, request: Any) -> dict[str, str | int]:
    """Return the attributes of a call's span; a conversion is about many objects."""
    return {
        WEBHOOK: path,
        OPERATION: operation,
        KIND: getattr(getattr(request, "kind", None), "kind", ""),
        NAMESPACE: getattr(request, "namespace", ""),
        OBJECT: getattr(request, "name", ""),
    }


def _timeout(query: str) -> float:
    """Return the API server's timeout in seconds, which is in the query as Go writes it: ``timeout=10s``."""
    match = _SECONDS.fullmatch(parse_qs(query).get("timeout", [""])[0])
    return float(match[1]) if match else float("inf")


async def _body(receive: Callable[[], Awaitable[Message]]) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _live(
    receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
