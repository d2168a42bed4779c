"""Spans of OpenTelemetry (extra ``otel``), if the program has set up its SDK. Otherwise they cost nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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


@contextmanager
def span(
    name: str, attributes: Mapping[str, str | int], *, kind: str = "CLIENT", is_current: bool = True
) -> Iterator[Span | None]:
    """Run a block in a span, or without one if the program has set up no SDK.

    Args:
        name: The span's name.
        attributes: Its attributes; empty ones are left out.
        kind: ``"CLIENT"``, ``"SERVER"`` or ``"INTERNAL"``.
        is_current: Whether spans of the block become its children. Not in an async generator, whose context is its
            caller's.
    """
    tracer = find_tracer()
    if tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind, use_span

    given = {key: value for key, value in attributes.items() if value != ""}
    opened = tracer.start_span(name, kind=SpanKind[kind], attributes=given)
    try:
        if is_current:
            with use_span(opened, record_exception=False, set_status_on_exception=False):
                yield opened
        else:
            yield opened
    except Exception as error:
        fail_span(opened, type(error).__name__, str(error))
        if isinstance(status := getattr(error, "status", None), int):
            opened.set_attribute(STATUS, status)
        raise
    finally:
        opened.end()


def fail_span(failed: Span, error_type: str, text: str) -> None:
    """Record in a span that its work failed."""
    from opentelemetry.trace import StatusCode

    failed.set_status(StatusCode.ERROR, text[:1000])
    failed.set_attribute(ERROR, error_type)


def trace_fields() -> dict[str, str]:
    """Return the ids of the current span and its trace, for a log message; nothing without a span."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    context = None if trace is None else trace.get_current_span().get_span_context()
    if context is None or not context.is_valid:
        return {}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
    }
