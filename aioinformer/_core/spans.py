"""Spans of OpenTelemetry (extra ``otel``), if the program has set up its SDK. Otherwise they cost nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .texts import valid_text

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

NAME = "aioinformer"
"""The instrumentation scope."""

CONTROLLER, ATTEMPT = "aioinformer.controller", "aioinformer.attempt"
RESOURCE, SUBRESOURCE = "k8s.resource", "k8s.subresource"
KIND, NAMESPACE, OBJECT = "k8s.object.kind", "k8s.namespace.name", "k8s.object.name"
WEBHOOK, OPERATION, RESULT = "aioinformer.webhook", "aioinformer.operation", "aioinformer.result"
STATUS, ERROR = "http.response.status_code", "error.type"
"""Names of attributes; the names that OpenTelemetry has are its own."""

_tracers: dict[int, tuple[Any, Tracer]] = {}
"""The tracer of the last provider. Making one takes as long as a request's other work."""


def find_tracer() -> Tracer | None:
    """Return the tracer of the program's SDK; None if it has set up none."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    known = _tracers.get(id(provider))
    if known is None:
        _tracers.clear()
        known = _tracers[id(provider)] = provider, trace.get_tracer(NAME, tracer_provider=provider)
    return known[1]


class span:  # noqa: N801 -- a context manager, as a function would be one; a generator costs more than the span
    """Runs a block in a span, or without one if the program has set up no SDK.

    Args:
        name: The span's name.
        attributes: Its attributes; empty ones are left out.
        kind: ``"CLIENT"``, ``"SERVER"`` or ``"INTERNAL"``.
        is_current: Whether spans of the block become its children. Not in an async generator, whose context is its
            caller's.
    """

    __slots__ = ("_attributes", "_is_current", "_kind", "_name", "_opened", "_token")

    def __init__(
        self, name: str, attributes: Mapping[str, str | int], *, kind: str = "CLIENT", is_current: bool = True
    ) -> None:
        self._name = name
        self._attributes = attributes
        self._kind = kind
        self._is_current = is_current
        self._opened: Span | None = None
        self._token: Any = None

    def __enter__(self) -> Span | None:
        tracer = find_tracer()
        if tracer is None:
            return None
        from opentelemetry import context, trace

        given = {key: value for key, value in self._attributes.items() if value != ""}
        opened = self._opened = tracer.start_span(
            self._name, kind=getattr(trace.SpanKind, self._kind), attributes=given
        )
        if self._is_current:
            self._token = context.attach(trace.set_span_in_context(opened))
        return opened

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        opened = self._opened
        if opened is None:
            return
        if self._token is not None:
            from opentelemetry import context

            context.detach(self._token)
        if isinstance(error, Exception):
            fail_span(opened, type(error).__name__, str(error))
            if isinstance(status := getattr(error, "status", None), int):
                opened.set_attribute(STATUS, status)
        opened.end()


def fail_span(failed: Span, error_type: str, text: str) -> None:
    """Record in a span that its work failed."""
    from opentelemetry.trace import StatusCode

    failed.set_status(StatusCode.ERROR, valid_text(text[:1000]))
    failed.set_attribute(ERROR, error_type)


def trace_fields() -> dict[str, str]:
    """Return the ids of the current span and its trace, for a log message; nothing without a span."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
    }
