"""Samples as an OTLP request in JSON: `ExportMetricsServiceRequest` of opentelemetry-proto, in its JSON mapping.

    counter  -> sum, cumulative and monotonic        summary -> summary with quantiles
    gauge    -> gauge                                untyped -> gauge

Aliases are left out: OpenTelemetry has no dashboards that know them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sskafka.model.counters import Labels, Sample
from sskafka.model.version import __version__
from sskafka.servers.http.metric_table import Metric, MetricKind

CUMULATIVE = 2
QUANTILE = "quantile"
START = "process_start_time_seconds"


def export_request(
    samples: Iterable[Sample], metrics: Mapping[str, Metric], resource: Mapping[str, str], now_ms: int
) -> dict[str, Any]:
    """Return the request. `metrics`: the metric of each sample name; `resource`: attributes of this node."""
    samples = list(samples)
    started_s = next((value for name, _, value in samples if name == START), now_ms / 1000)
    times = {"startTimeUnixNano": str(int(started_s * 1e9)), "timeUnixNano": str(now_ms * 1_000_000)}
    families: dict[str, tuple[Metric, list[Sample]]] = {}
    for sample in samples:
        metric = metrics.get(sample.name) or Metric(sample.name, MetricKind.UNTYPED, "")
        families.setdefault(metric.name, (metric, []))[1].append(sample)
    scope = {"name": "sskafka", "version": __version__}
    found = [_metric(metric, items, times) for metric, items in families.values()]
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(resource.items())},
                "scopeMetrics": [{"scope": scope, "metrics": found}],
            }
        ]
    }


def _metric(metric: Metric, samples: list[Sample], times: Mapping[str, str]) -> dict[str, Any]:
    described = {"name": metric.name, "description": metric.help}
    if metric.kind is MetricKind.SUMMARY:
        return {**described, "summary": {"dataPoints": _summaries(metric, samples, times)}}
    points = [{"attributes": _attributes(labels), **times, "asDouble": float(value)} for _, labels, value in samples]
    if metric.kind is MetricKind.COUNTER:
        return {**described, "sum": {"aggregationTemporality": CUMULATIVE, "isMonotonic": True, "dataPoints": points}}
    return {**described, "gauge": {"dataPoints": points}}


def _summaries(metric: Metric, samples: list[Sample], times: Mapping[str, str]) -> list[dict[str, Any]]:
    points: dict[Labels, dict[str, Any]] = {}
    for name, labels, value in samples:
        own = tuple(pair for pair in labels if pair[0] != QUANTILE)
        point = points.setdefault(own, {"attributes": _attributes(own), **times, "quantileValues": []})
        if name == metric.name:
            point["quantileValues"].append({QUANTILE: float(dict(labels)[QUANTILE]), "value": float(value)})
        elif name.endswith("_sum"):
            point["sum"] = float(value)
        else:
            point["count"] = str(int(value))
    return list(points.values())


def _attributes(pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in pairs]
