"""Push the metrics of a node to an OpenTelemetry collector, over OTLP/HTTP with JSON.

The HTTP process does this, in a thread for the network, so that neither the broker nor HTTP clients wait for a
collector. A push that fails is not repeated: counters are cumulative, so the next one has everything.
"""

import asyncio
import json
import logging
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from sskafka.runtime.clock import Clock
from sskafka.servers.http.configuration import OtlpTarget
from sskafka.servers.http.metric_table import BROKER_METRICS, by_sample_name
from sskafka.servers.http.metrics import NodeMetrics
from sskafka.servers.http.otlp import export_request
from sskafka.servers.local.link import BrokerGoneError

log = logging.getLogger(__name__)

PATH = "/v1/metrics"


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
