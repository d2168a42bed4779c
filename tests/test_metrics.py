"""metrics.py: samples in Prometheus's text format."""

from __future__ import annotations

from aioinformer.metrics import Histogram, Sample, exposition


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
        "aioinformer_lists_total 2",
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
        "# TYPE leading gauge",
        "leading 1",
        "# TYPE depth gauge",
        'depth{name="a"} 1',
        'depth{name="b \\"\\\\\\n"} 1234567890123456',
        "# TYPE seconds histogram",
        'seconds_bucket{name="a",le="0.5"} 1',
        'seconds_bucket{name="a",le="+Inf"} 1',
        'seconds_sum{name="a"} 0.25',
        'seconds_count{name="a"} 1',
    ]
