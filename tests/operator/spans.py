"""Spans of a test, by OpenTelemetry's SDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()


@contextmanager
def recording() -> Iterator[Spans]:
    """Record spans in a block, as if the program had set up the SDK. A process can set its provider only once."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer_provider", lambda: provider)
        yield Spans(exporter)
    provider.shutdown()
