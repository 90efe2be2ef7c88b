"""Push the metrics of a node to an OpenTelemetry collector, over OTLP/HTTP with JSON.

The HTTP process does this, in a thread for the network, so that neither the broker nor HTTP clients wait for a
collector. A push that fails is not repeated: counters are cumulative, so the next one has everything.

A request is an `ExportMetricsServiceRequest` of opentelemetry-proto, in its JSON mapping:

    counter  -> sum, cumulative and monotonic        summary -> summary with quantiles
    gauge    -> gauge                                untyped -> gauge

Aliases are left out: OpenTelemetry has no dashboards that know them.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from sskafka.model.counters import Labels, Sample
from sskafka.model.version import __version__
from sskafka.runtime.clock import Clock
from sskafka.servers.http.configuration import OtlpTarget
from sskafka.servers.http.metric_table import BROKER_METRICS, Metric, MetricKind, by_sample_name
from sskafka.servers.http.metrics import NodeMetrics
from sskafka.servers.local.link import BrokerGoneError

log = logging.getLogger(__name__)

PATH = "/v1/metrics"
CUMULATIVE = 2
QUANTILE = "quantile"
START = "process_start_time_seconds"


class OtlpExporter:
    def __init__(self, target: OtlpTarget, metrics: NodeMetrics, clock: Clock) -> None:
        self._target = target
        self._metrics = metrics
        self._clock = clock
        self._names = by_sample_name(BROKER_METRICS)
        self._has_failed = False

    async def run(self) -> None:
        """Push until cancelled, or until the broker is gone."""
        while True:
            await asyncio.sleep(self._target.interval_ms / 1000)
            try:
                await self.push()
            except BrokerGoneError:
                return
            except (OSError, ValueError) as error:
                self._note_failure(error)
            else:
                self._note_success()

    async def push(self) -> None:
        """Push once. Raises OSError if the collector does not take the metrics."""
        samples = await self._metrics.collect()
        request = export_request(samples, self._names, self._target.resource, int(self._clock.now_ms()))
        await asyncio.to_thread(_post, self._target, json.dumps(request).encode())

    def _note_failure(self, error: Exception) -> None:
        if not self._has_failed:
            reason = error.reason if isinstance(error, URLError) else error
            log.warning("the metrics could not be sent to %s: %s", self._target.endpoint, reason)
        self._has_failed = True

    def _note_success(self) -> None:
        if self._has_failed:
            log.warning("the metrics are sent to %s again", self._target.endpoint)
        self._has_failed = False


def _post(target: OtlpTarget, body: bytes) -> None:
    headers = {**target.headers, "Content-Type": "application/json"}
    request = Request(target.endpoint.rstrip("/") + PATH, body, headers, method="POST")
    try:
        with urlopen(request, timeout=target.timeout_ms / 1000) as response:
            response.read()
    except HTTPError as error:
        with error:
            raise OSError(f"HTTP {error.code} {error.reason}") from None


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
