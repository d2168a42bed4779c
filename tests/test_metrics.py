"""metrics.py: samples in Prometheus's text format."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from aioinformer import ConfigError
from aioinformer.metrics import (
    Histogram,
    LeftOutError,
    Sample,
    SamplesCollector,
    exposition,
    new_registry,
    render,
)

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def test_histogram_counts_values_below_each_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 3.0):
        histogram.observe(value)
    assert histogram.counts == [2, 1, 1]
    assert (histogram.count, histogram.sum) == (4, 6.0)


def test_bounds_are_written_as_other_clients_write_them() -> None:
    histogram = Histogram((1e-8, 0.005, 0.1, 1.0, 5, 10.0, 1000.0))
    bounds = [
        sample.labels["le"] for sample in histogram.samples("seconds", {}) if sample.suffix == "_bucket"
    ]
    assert bounds == ["1e-08", "0.005", "0.1", "1", "5", "10", "1000", "+Inf"]


def test_known_metrics_have_help_text() -> None:
    assert exposition([Sample("aioinformer_lists_total", "counter", {}, 2)]).splitlines() == [
        "# HELP aioinformer_lists_total Lists started.",
        "# TYPE aioinformer_lists_total counter",
        "aioinformer_lists_total 2.0",
    ]


def test_text_has_each_name_once_with_its_type() -> None:
    histogram = Histogram((0.5,))
    histogram.observe(0.25)
    samples = [
        Sample("leading", "gauge", {}, True),
        Sample("depth", "gauge", {"name": "a"}, 1),
        *histogram.samples("seconds", {"name": "a"}),
        Sample("depth", "gauge", {"name": 'b "\\\n'}, 1234567890123456),
    ]
    assert exposition(samples).splitlines() == [
        "# HELP leading ",
        "# TYPE leading gauge",
        "leading 1.0",
        "# HELP depth ",
        "# TYPE depth gauge",
        'depth{name="a"} 1.0',
        'depth{name="b \\"\\\\\\n"} 1.234567890123456e+15',
        "# HELP seconds ",
        "# TYPE seconds histogram",
        'seconds_bucket{le="0.5",name="a"} 1.0',
        'seconds_bucket{le="+Inf",name="a"} 1.0',
        'seconds_sum{name="a"} 0.25',
        'seconds_count{name="a"} 1.0',
    ]


def samples() -> list[Sample]:
    histogram = Histogram((1.0, 2.5))
    histogram.observe(2.0)
    return [
        Sample("changes", "gauge", {"feed": "pods"}, 3),
        Sample("changes_total", "counter", {"feed": "pods"}, 7),
        *histogram.samples("seconds", {"name": "a"}),
    ]


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_parsers_of_both_formats_read_the_same_values(accept: str) -> None:
    body, content_type = render(samples(), accept=accept)
    assert content_type.startswith("application/openmetrics-text" if accept else "text/plain; version=0.0.4")
    families = (parse_openmetrics if accept else parse)(body.decode())
    values = {
        (line.name, line.labels.get("le")): line.value for family in families for line in family.samples
    }
    one = "1.0" if accept else "1"
    assert values == {
        ("changes", None): 3.0, ("changes_total", None): 7.0,
        ("seconds_bucket", one): 0.0, ("seconds_bucket", "2.5"): 1.0, ("seconds_bucket", "+Inf"): 1.0,
        ("seconds_sum", None): 2.0, ("seconds_count", None): 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("version", ["a.b.c", "\udcff", "1.0.0;escaping=\udcff"])
def test_each_accept_header_is_answered(version: str) -> None:
    body, content_type = render(samples(), accept=f"application/openmetrics-text;version={version}")
    assert b"changes" in body
    assert content_type.isascii()


def test_a_registry_of_your_own_serves_samples_of_each_scrape() -> None:
    registry, counted = CollectorRegistry(), [1.0]
    registry.register(SamplesCollector(lambda: [Sample("lists_total", "counter", {}, counted[0])]))
    assert registry.get_sample_value("lists_total") == 1.0
    counted[0] = 2.0
    assert registry.get_sample_value("lists_total") == 2.0


class _Broken:
    def collect(self) -> list[object]:
        raise OSError("the meter is gone")


def test_a_broken_registry_hides_no_other_metric() -> None:
    own, errors = CollectorRegistry(), list[LeftOutError]()
    Counter("published", "Published sites.", registry=own).inc()
    body, _ = render(samples(), [_Broken(), own], on_error=errors.append)
    assert "published_total 1.0" in body.decode()
    assert 'changes{feed="pods"} 3.0' in body.decode()
    assert str(errors[0].reason) == "the meter is gone"
    with pytest.raises(OSError, match="the meter is gone"):
        exposition(samples(), _Broken())


def test_a_registry_cannot_take_the_name_of_a_metric() -> None:
    own = CollectorRegistry()
    Counter("changes", "Mine.", registry=own)
    with pytest.raises(ConfigError, match="aioinformer's names: changes"):
        exposition(samples(), own)


class _Collector:
    """Yields families, and then fails if it has an error."""

    def __init__(self, *families: object, error: BaseException | None = None) -> None:
        self._families = families
        self._error = error

    def __repr__(self) -> str:
        return "<the meter>"

    def collect(self) -> Iterator[Any]:
        yield from self._families
        if self._error is not None:
            raise self._error


def family(name: str, *labels: str | None, kind: str = "gauge") -> Metric:
    made = Metric(name, "Mine.", kind)
    for label in labels:
        made.add_sample(name, {"path": label}, 1)  # type: ignore[dict-item]
    return made


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (_Collector(error=OSError("gone")), "<the meter>: OSError: gone"),
        (_Collector(error=asyncio.CancelledError("gone")), "<the meter>: CancelledError: gone"),
        (_Collector(None), "None of <the meter>: AttributeError"),
        (_Collector(family("sizes", None)), "'sizes' of <the meter>: "),
        (_Collector(family("sizes", "/d/\udcff")), "'sizes' of <the meter>: UnicodeEncodeError"),
        (_Collector(family("changes_total", "a")), "aioinformer's names: changes_total"),
        (_Collector(family("seconds_bucket", "a")), "aioinformer's names: seconds_bucket"),
        (_Collector(family("published", "a")), "another collector has published, too"),
    ],
)
def test_what_is_broken_costs_only_itself(accept: str, broken: _Collector, words: str) -> None:
    own, errors = new_registry(), list[LeftOutError]()
    Gauge("published", "Published sites.", registry=own).set(1)
    own.register(broken)
    own.register(_Collector(family("loads", "a"), error=ValueError("later")))
    Gauge("planned", "Planned sites.", registry=own).set(2)
    own.set_target_info({"zone": "eu"})
    body, _ = render(samples(), [own], accept=accept, on_error=errors.append)
    families = (parse_openmetrics if accept else parse)(body.decode())
    values = {
        (line.name, line.labels.get("le")): line.value for family in families for line in family.samples
    }
    assert {"changes", "changes_total", "seconds_bucket", "published", "planned", "loads", "target_info"} <= {
        name for name, _ in values
    }
    assert values["changes_total", None] == 7.0
    first, later = sorted(errors, key=lambda error: "later" in str(error))
    assert words in str(first)
    assert isinstance(later.reason, ValueError)


def test_a_registry_of_others_is_served_until_a_collector_fails() -> None:
    own, errors = CollectorRegistry(), list[LeftOutError]()
    Gauge("published", "Published sites.", registry=own).set(1)
    own.register(_Collector(family("sizes", "\ud800"), error=OSError("gone")))
    body, _ = render(samples(), [own], on_error=errors.append)
    assert "published 1.0" in body.decode()
    assert {type(error.reason) for error in errors} == {OSError, UnicodeEncodeError}


def test_names_that_json_cannot_hold_are_labels() -> None:
    assert 'depth{name="/d/?"} 1.0' in exposition([Sample("depth", "gauge", {"name": "/d/\udcff"}, 1)])


def test_a_collector_is_removed_from_the_registry() -> None:
    own = new_registry()
    gauge = Gauge("published", "Published sites.", registry=own)
    own.unregister(gauge)
    assert own.collectors() == []
    Gauge("published", "Published sites.", registry=own)
    with pytest.raises(ValueError, match="published"):
        Gauge("published", "Published sites.", registry=own)
    assert len(own.collectors()) == 1


def test_without_prometheus_client_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'aioinformer\[metrics\]'"):
        exposition(samples())
    with pytest.raises(ConfigError, match=r"aioinformer\[metrics\]"):
        SamplesCollector(samples)
