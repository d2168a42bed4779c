"""dashboard.py: the Grafana dashboard, against the metrics that a running operator serves."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from aioinformer import Client
from aioinformer.operator import AdmissionReview, Operator, Request, RunOptions, run
from aioinformer.operator.manifests import make_dashboard
from aioinformer.testing import APIServer, eventually
from tests.kubernetes.process import free_ports
from tests.prometheus.promtool import require_success, write_yaml

from ..webhooks.certificates import Certificates
from ..webhooks.kinds import WebsiteV1, review, site

Object = dict[str, Any]

SELECTED = 'job=~"$job", instance=~"$instance"'
_NAME = re.compile(r"([a-z_]+)\{")


@pytest.fixture
async def scraped(tmp_path: Path) -> dict[str, set[str]]:
    """The labels of each metric that an operator with all its parts serves, by name."""
    certificates = Certificates(tmp_path)
    labels: dict[str, set[str]] = {}
    for options in (RunOptions(leader_elect=True), RunOptions(shards=4)):
        for family in parse(await run_and_scrape(certificates, options)):
            for line in family.samples:
                labels.setdefault(line.name, set()).update(line.labels)
    return labels


async def run_and_scrape(certificates: Certificates, options: RunOptions) -> str:
    """Return the metrics of an operator that has reconciled an object and answered a webhook."""
    operator = Operator("websites", events=False)

    @operator.controller(WebsiteV1)
    async def reconcile(request: Request[WebsiteV1]) -> None: ...

    @operator.validate(WebsiteV1)
    async def check(request: AdmissionReview[WebsiteV1]) -> None: ...

    metrics, webhooks = free_ports(2)
    options = msgspec.structs.replace(
        options, install_crds=True, metrics_port=metrics, probe_port=0, webhook_port=webhooks,
        tls_cert=str(certificates.cert), tls_key=str(certificates.key), host="127.0.0.1",
    )  # fmt: skip
    trusting = ssl.create_default_context(cadata=certificates.ca.decode())
    async with APIServer() as server, aiohttp.ClientSession() as session:
        running = asyncio.create_task(run(operator, Client.from_url(server.url), options))
        url = f"http://127.0.0.1:{metrics}/metrics"

        async def read() -> str:
            with suppress(aiohttp.ClientConnectionError):
                async with session.get(url) as answer:
                    return await answer.text()
            return ""

        try:
            await eventually(lambda: server.list("hooks.example.com/v1", "websites") == [], within=30)
            server.create("hooks.example.com/v1", "websites", site())
            while 'result="success"} 1.0' not in await read():  # noqa: ASYNC110 -- polls over HTTP
                await asyncio.sleep(0.05)
            async with session.post(
                f"https://127.0.0.1:{webhooks}{operator.webhook_app().paths[0]}",
                json=review(site()),
                ssl=trusting,
            ) as answer:
                assert answer.status == 200
            return await read()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def panels(kind: str = "") -> list[Object]:
    made = make_dashboard("websites")["panels"]
    return [panel for panel in made if panel["type"] == kind or (not kind and panel["type"] != "row")]


def targets() -> Iterator[tuple[str, str]]:
    """Yield each expression with its legend."""
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


async def test_a_running_operator_serves_every_metric_of_the_dashboard(scraped: dict[str, set[str]]) -> None:
    for expression, legend in targets():
        names = _NAME.findall(expression.replace(SELECTED, ""))
        assert names, expression
        for name in names:
            assert name in scraped, expression
            grouped = re.search(r"by \(([a-z, ]+)\)", expression)
            for label in grouped[1].split(", ") if grouped else ():
                assert label in scraped[name] | {"instance"}, expression
        for label in re.findall(r"\{\{(\w+)\}\}", legend):
            assert re.search(rf"by \([^)]*\b{label}\b", expression), (legend, expression)
    for variable in make_dashboard("websites")["templating"]["list"][1:]:
        assert _NAME.search(variable["query"])[1] in scraped  # type: ignore[index]


def test_the_dashboard_keeps_the_rules_of_grafanas_linter() -> None:
    """The rules of grafana/dashboard-linter, whose module no Go proxy has."""
    made = make_dashboard("websites")
    assert made["editable"] is False
    datasource, *variables = made["templating"]["list"]
    assert (datasource["name"], datasource["label"], datasource["query"]) == (
        "datasource", "Data source", "prometheus",
    )  # fmt: skip
    for variable in variables:
        assert (variable["type"], variable["datasource"]["uid"]) == ("query", "${datasource}")
        assert (variable["label"], variable["multi"], variable["allValue"], variable["refresh"]) == (
            variable["name"].title(), True, ".+", 2,
        )  # fmt: skip
    for panel in panels():
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"] in {
            *("short", "percentunit", "s", "ops", "reqps", "bytes"),
        }
        assert panel["targets"]
    for expression, _ in targets():
        assert SELECTED in expression
        for name in _NAME.findall(expression):
            if name.endswith(("_total", "_bucket")):
                assert re.search(rf"rate\({name}\{{[^}}]*\}}\[\$__rate_interval\]\)", expression), expression


def test_promtool_accepts_every_expression(promtool: Path, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel_{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (expression, _) in enumerate(targets())
    ]
    path = write_yaml(tmp_path / "rules.yaml", {"groups": [{"name": "dashboard", "rules": rules}]})
    require_success(promtool, "check", "rules", path)


def test_panels_do_not_overlap_and_have_their_own_ids() -> None:
    made = make_dashboard("websites")["panels"]
    assert len({panel["id"] for panel in made}) == len(made)
    cells = [
        (x, y)
        for panel in made
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_the_uid_fits_grafana() -> None:
    assert len(make_dashboard("w" * 63)["uid"]) == 40
    assert json.loads(json.dumps(make_dashboard("websites")))["uid"] == "aioinformer-websites"
