import re

from docs import generate

from sskafka.servers.http.metric_table import BROKER_METRICS, Metric, MetricKind, by_sample_name
from sskafka.servers.http.prometheus import exposition

METRICS = by_sample_name(
    (
        Metric("requests_total", MetricKind.COUNTER, "Requests.", ("request",)),
        Metric("memory_bytes", MetricKind.GAUGE, "Memory."),
        Metric("time_ms", MetricKind.SUMMARY, "Times."),
        Metric("bytesin_total", MetricKind.COUNTER, "Bytes.", (), "bytesinpersec"),
    )
)


def test_samples_of_a_name_stand_together_under_help_and_type() -> None:
    samples = [
        ("requests_total", [("request", "Fetch")], 3),
        ("memory_bytes", [], 1.5),
        ("requests_total", [("request", "Produce")], 4.0),
    ]
    assert exposition(samples, METRICS) == (
        "# HELP requests_total Requests.\n"
        "# TYPE requests_total counter\n"
        'requests_total{request="Fetch"} 3\n'
        'requests_total{request="Produce"} 4\n'
        "# HELP memory_bytes Memory.\n"
        "# TYPE memory_bytes gauge\n"
        "memory_bytes 1.5\n"
    )


def test_a_summary_has_quantiles_sum_and_count() -> None:
    samples = [("time_ms", [("quantile", "0.99")], 2), ("time_ms_sum", [], 5.5), ("time_ms_count", [], 3)]
    assert exposition(samples, METRICS) == (
        '# HELP time_ms Times.\n# TYPE time_ms summary\ntime_ms{quantile="0.99"} 2\ntime_ms_sum 5.5\ntime_ms_count 3\n'
    )


def test_an_alias_repeats_the_samples() -> None:
    assert exposition([("bytesin_total", [("topic", "t")], 7)], METRICS) == (
        '# HELP bytesin_total Bytes.\n# TYPE bytesin_total counter\nbytesin_total{topic="t"} 7\n'
        '# HELP bytesinpersec Bytes.\n# TYPE bytesinpersec untyped\nbytesinpersec{topic="t"} 7\n'
    )


def test_label_values_are_escaped() -> None:
    assert exposition([("x", [("path", 'a"b\\c\nd')], 1)], {}) == 'x{path="a\\"b\\\\c\\nd"} 1\n'


def test_nothing_counted_is_an_empty_page() -> None:
    assert exposition([], METRICS) == ""


# -- the table


def test_names_follow_the_rules_of_prometheus() -> None:
    names = [(name, kind) for metric in BROKER_METRICS for name, kind in names_of(metric)]
    assert len({name for name, _ in names}) == len(names)
    for name, kind in names:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert not name.endswith(("_ms", "_s", "_sec")), f"{name}: units are not abbreviated"
        if kind is not MetricKind.UNTYPED:
            assert (kind is MetricKind.COUNTER) == name.endswith("_total"), name
            assert not name.endswith(("_count", "_sum")), name
    for metric in BROKER_METRICS:
        assert re.fullmatch(r"[A-Z1][^\n]+\.", metric.help), metric
        assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels), metric


def names_of(metric: Metric) -> list[tuple[str, MetricKind]]:
    own = [(metric.name, metric.kind)]
    return own if metric.alias is None else [*own, (metric.alias, metric.alias_kind)]


def test_the_page_of_the_api_is_generated() -> None:
    page = (generate.DOCS / "api.md").read_text(encoding="utf-8")
    assert page == generate.api_page(), "run: python docs/generate.py"


def test_the_page_of_metrics_is_generated() -> None:
    page = (generate.DOCS / "metrics.md").read_text(encoding="utf-8")
    assert page == generate.metrics_page(page), "run: python docs/generate.py"
