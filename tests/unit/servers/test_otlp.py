"""The JSON that is pushed to OpenTelemetry collectors is what their own schema reads."""

import json

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

from sskafka.model.counters import Sample
from sskafka.servers.http.metric_table import Metric, MetricKind, by_sample_name
from sskafka.servers.http.otlp import export_request

METRICS = by_sample_name(
    (
        Metric("requests_total", MetricKind.COUNTER, "Requests.", ("request",)),
        Metric("memory_bytes", MetricKind.GAUGE, "Memory."),
        Metric("time_ms", MetricKind.SUMMARY, "Times.", ("request",)),
    )
)
FETCH = (("request", "Fetch"),)
SAMPLES = [
    Sample("requests_total", FETCH, 3),
    Sample("memory_bytes", (), 1.5),
    Sample("time_ms", (*FETCH, ("quantile", "0.99")), 2),
    Sample("time_ms_sum", FETCH, 5.5),
    Sample("time_ms_count", FETCH, 3),
    Sample("process_start_time_seconds", (), 1000.5),
    Sample("not_in_the_table", (), 1),
]


def test_the_schema_of_opentelemetry_reads_it() -> None:
    text = json.dumps(export_request(SAMPLES, METRICS, {"service.name": "sskafka"}, now_ms=2_000_000))
    request = json_format.Parse(text, ExportMetricsServiceRequest())
    (resource,) = request.resource_metrics
    assert [(item.key, item.value.string_value) for item in resource.resource.attributes] == [
        ("service.name", "sskafka")
    ]
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    total = metrics["requests_total"].sum
    assert total.is_monotonic
    assert total.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = total.data_points
    assert (point.as_double, point.attributes[0].key, point.attributes[0].value.string_value) == (3, "request", "Fetch")
    assert (point.start_time_unix_nano, point.time_unix_nano) == (1_000_500_000_000, 2_000_000_000_000)
    assert metrics["memory_bytes"].gauge.data_points[0].as_double == 1.5
    (summary,) = metrics["time_ms"].summary.data_points
    assert (summary.count, summary.sum) == (3, 5.5)
    assert [(item.quantile, item.value) for item in summary.quantile_values] == [(0.99, 2)]
    assert metrics["not_in_the_table"].gauge.data_points[0].as_double == 1
