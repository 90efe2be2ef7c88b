"""Progress of a run as Prometheus metrics, which the run serves itself: `sskafka pipeline run --metrics HOST:PORT`."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from sskafka.model.version import __version__
from sskafka.pipelines.runner.progress import QueryProgress, dead_letters
from sskafka.servers.http.metric_table import Metric, MetricKind, by_sample_name
from sskafka.servers.http.prometheus import CONTENT_TYPE, exposition

PREFIX = "sskafka_pipeline_"
REQUEST_TIMEOUT_S = 10.0

_RUN, _QUERY = ("pipeline",), ("pipeline", "query")
PIPELINE_METRICS = tuple(
    Metric(PREFIX + name, MetricKind.COUNTER if name.endswith("_total") else MetricKind.GAUGE, text, labels)
    for name, labels, text in (
        ("info", (*_RUN, "version"), "1, with the version in the labels."),
        ("dead_letters_total", _RUN, "Records that the run could not process and set aside."),
        ("rows_in_total", _QUERY, "Rows that the query has read."),
        ("rows_out_total", _QUERY, "Rows that the query has written."),
        ("lag_records", _QUERY, "Records between the position of the query and the end of its topics."),
        ("batch", _QUERY, "Number of the last batch."),
        ("batch_duration_seconds", _QUERY, "Duration of the last batch."),
        ("state_rows", _QUERY, "Rows that the query keeps in its state."),
        ("source_info", (*_QUERY, "topics"), "1, with the topics in the labels."),
        ("watermark_timestamp_seconds", _QUERY, "Watermark of the query, in seconds since 1970."),
        ("expectation_unmet_total", (*_QUERY, "expectation"), "Rows that did not meet an expectation."),
    )
)
_METRICS = by_sample_name(PIPELINE_METRICS)

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]


def samples(pipeline: str, queries: Sequence[QueryProgress]) -> Iterator[Sample]:
    """Yield the samples of a run; counters start at 0 with the run."""
    own: Labels = (("pipeline", pipeline),)
    yield f"{PREFIX}info", (*own, ("version", __version__)), 1
    yield f"{PREFIX}dead_letters_total", own, dead_letters(queries)
    for query in queries:
        yield from _of_query((*own, ("query", query.query)), query)


def _of_query(labels: Labels, query: QueryProgress) -> Iterator[Sample]:
    yield f"{PREFIX}rows_in_total", labels, query.rows_in
    yield f"{PREFIX}rows_out_total", labels, query.rows_out
    yield f"{PREFIX}lag_records", labels, query.lag
    yield f"{PREFIX}batch", labels, query.batch
    yield f"{PREFIX}batch_duration_seconds", labels, query.batch_ms / 1000
    yield f"{PREFIX}state_rows", labels, query.state_rows
    if query.reads:
        yield f"{PREFIX}source_info", (*labels, ("topics", query.topics)), 1
    if query.watermark:
        yield f"{PREFIX}watermark_timestamp_seconds", labels, datetime.fromisoformat(query.watermark).timestamp()
    for name, count in query.unmet.items():
        yield f"{PREFIX}expectation_unmet_total", (*labels, ("expectation", name)), count


class MetricsServer:
    """A context that serves `/metrics`; `update` replaces the metrics."""

    def __init__(self, pipeline: str, host: str, port: int) -> None:
        """Bind the address; raises OSError if that fails. Port 0 means any free port."""
        self._pipeline = pipeline
        self._text = exposition(samples(pipeline, ()), _METRICS)
        self._server = _Server((host, port), _handler(lambda: self._text))
        self._thread = threading.Thread(target=self._server.serve_forever, name="pipeline-metrics", daemon=True)

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def update(self, queries: Sequence[QueryProgress]) -> None:
        self._text = exposition(samples(self._pipeline, queries), _METRICS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection early; the base class prints a stack trace."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            body = text().encode() if self.path.split("?")[0] == "/metrics" else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name that the base class has
            """Do not log scrapes."""

    return Handler
