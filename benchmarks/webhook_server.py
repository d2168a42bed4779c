"""aioinformer's webhook server with one validating function of pods: ``python -m benchmarks.webhook_server``.

It prints its URL, and ends with its standard input. See ``webhooks.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from lightkube.models.core_v1 import Pod as ModelPod
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

from aioinformer import KubeObject
from aioinformer._core.garbage import freeze_garbage_collection
from aioinformer.metrics import render
from aioinformer.operator import AdmissionReview, Denied, Operator, WebhookApp, WebhookServer


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    """The field that is checked."""

    spec: Spec


def declare(form: str) -> Operator:
    """Return an operator whose function reads the pod as ``kubeobject``, ``struct`` or ``model``."""
    operator = Operator("benchmark", events=False)
    if form == "kubeobject":

        @operator.validate("pods")
        async def check(review: AdmissionReview[KubeObject]) -> None:
            _require_node(review.object["spec"].get("nodeName"))

    elif form == "struct":

        @operator.validate("pods")
        async def check_struct(review: AdmissionReview[KubeObject]) -> None:
            _require_node(review.object.decode(Pod).spec.node_name)

    else:

        @operator.validate(ModelPod)
        async def check_model(review: AdmissionReview[ModelPod]) -> None:
            spec: Any = review.object.spec
            _require_node(spec.nodeName)

    return operator


def _require_node(name: str | None) -> None:
    if not name:
        raise Denied("is required", field="spec.nodeName")


class Dropping(SpanExporter):
    """Exports nothing: what is measured is the process that makes the spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def observe(sampled: float) -> None:
    """Set up OpenTelemetry as programs do, to record this share of the spans."""
    provider = TracerProvider(ParentBasedTraceIdRatio(sampled), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Dropping()))
    trace.set_tracer_provider(provider)


async def scrape(app: WebhookApp) -> None:
    """Have prometheus-client write the metrics twice a second."""
    while True:
        samples = [sample for counts in app.counts for sample in counts.samples()]
        await asyncio.to_thread(render, samples)
        await asyncio.sleep(0.5)


async def serve(form: str, folder: Path, *, sampled: float | None) -> None:
    app = declare(form).webhook_app()
    if sampled is not None:
        observe(sampled)
    scraping = asyncio.create_task(scrape(app)) if sampled is not None else None
    cert, key = folder / "tls.crt", folder / "tls.key"
    async with WebhookServer(app, port=0, cert=cert, key=key, host="127.0.0.1") as server:
        (path,) = app.paths
        with freeze_garbage_collection():  # as `aioinformer run` does
            print(json.dumps({"url": f"https://127.0.0.1:{server.port}{path}"}), flush=True)
            await asyncio.to_thread(sys.stdin.read)
    if scraping is not None:
        scraping.cancel()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=["kubeobject", "struct", "model"], required=True)
    parser.add_argument("--certs", type=Path, required=True)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio")
    parser.add_argument(
        "--sampled",
        type=float,
        help="with metrics that are scraped, and a span for this share of the reviews",
    )
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if options.loop == "uvloop" else None) as runner:
        runner.run(serve(options.form, options.certs, sampled=options.sampled))


if __name__ == "__main__":
    main()
