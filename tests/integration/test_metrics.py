"""What a running broker tells monitoring: the names that dashboards want, pushes to OpenTelemetry, logs as JSON."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from broker_process import BrokerProcess
from confluent_kafka import Consumer, Producer
from google.protobuf import json_format
from monitoring import dashboard_queries, metric_names, rule_queries
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from waiting import wait_until

from sskafka.servers.http.metric_table import BROKER_METRICS, by_sample_name

DASHBOARDS = sorted((Path(__file__).resolve().parents[1] / "support" / "dashboard_metrics").glob("*.txt"))
"""The metrics of brokers that the dashboards of Strimzi and Confluent ask for, without those of the JVM."""
TYPE = re.compile(r"# TYPE (\S+) \S+")
SAMPLE = re.compile(r"([a-z0-9_]+)(?:\{.*\})? \S+")


class Collector:
    """A stand-in for an OpenTelemetry collector: it keeps what it is sent, and refuses the first push."""

    def __init__(self) -> None:
        self.refusals = 1
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    @contextmanager
    def serving(self) -> Iterator[str]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_refused = collector.refusals > 0
                collector.refusals -= 1
                if not is_refused:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    collector.requests.append((self.path, headers, body))
                self.send_response(503 if is_refused else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Do not log."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture(scope="module")
def collector() -> Collector:
    return Collector()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[BrokerProcess]:
    """A broker that logs JSON and pushes its metrics, with a topic, a record and a group that has read it."""
    with collector.serving() as endpoint:
        settings = {
            "http.listener": "127.0.0.1:0",
            "offsets.topic.num.partitions": 1,
            "log.format": "json",
            "otel.exporter.otlp.endpoint": endpoint,
            "otel.exporter.otlp.headers": "api-key=secret",
            "otel.metric.export.interval": 200,
            "otel.resource.attributes": "deployment.environment=test",
        }
        broker = BrokerProcess(tmp_path_factory.mktemp("metrics"), settings)
        broker.start()
        try:
            write_and_read(broker.bootstrap)
            yield broker
        finally:
            broker.close()


def write_and_read(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"hello")
    producer.flush()
    options = {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer(options)
    consumer.subscribe(["orders"])
    assert wait_until(lambda: consumer.poll(0.5), "the record is read").value() == b"hello"
    consumer.commit(asynchronous=False)
    consumer.close()


def page(broker: BrokerProcess) -> list[str]:
    return httpx.get(f"http://{broker.http}/metrics").text.splitlines()


def names(lines: list[str]) -> set[str]:
    return {match[1] for line in lines if (match := SAMPLE.fullmatch(line))}


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda file: file.stem)
def test_dashboards_of_others_find_their_metrics(broker: BrokerProcess, dashboard: Path) -> None:
    wanted = dashboard.read_text(encoding="utf-8").split()
    assert sorted(set(wanted) - names(page(broker))) == []


def test_dashboard_and_rules_of_deploy_find_theirs(broker: BrokerProcess) -> None:
    there = names(page(broker))
    for title, expression in [*dashboard_queries(), *rule_queries()]:
        assert metric_names(expression) <= there, title


def test_every_sample_is_described_in_the_table(broker: BrokerProcess) -> None:
    lines = page(broker)
    described = by_sample_name(BROKER_METRICS)
    aliases = {metric.alias for metric in BROKER_METRICS if metric.alias is not None}
    own = {name for name in names(lines) if name not in aliases}
    assert sorted(own - set(described)) == []
    types = [match[1] for line in lines if (match := TYPE.fullmatch(line))]
    assert len(types) == len(set(types)), "each metric has one block"


def test_labels_are_those_of_the_table(broker: BrokerProcess) -> None:
    table = by_sample_name(BROKER_METRICS)
    for line in page(broker):
        if (match := SAMPLE.fullmatch(line)) and match[1] in table:
            metric = table[match[1]]
            found = set(re.findall(r'(\w+)="', line.partition("{")[2])) - {"quantile"}
            assert found == set(metric.labels), line


def test_metrics_are_pushed_to_a_collector(broker: BrokerProcess, collector: Collector) -> None:
    path, headers, body = wait_until(lambda: collector.requests, "metrics arrive")[-1]
    assert path == "/v1/metrics"
    assert (headers["content-type"], headers["api-key"]) == ("application/json", "secret")
    (resource,) = json_format.Parse(body, ExportMetricsServiceRequest()).resource_metrics
    attributes = {item.key: item.value.string_value for item in resource.resource.attributes}
    assert attributes == {
        "service.name": "sskafka",
        "service.instance.id": "1",
        "deployment.environment": "test",
    }
    found = {metric.name for metric in resource.scope_metrics[0].metrics}
    assert {"kafka_server_brokertopicmetrics_bytesin_total", "kafka_network_requestmetrics_totaltimems"} <= found


def test_every_line_of_the_log_is_json_and_failures_are_told_once(broker: BrokerProcess, collector: Collector) -> None:
    wait_until(lambda: collector.requests, "a push succeeds after the refused one")
    wait_until(lambda: "again" in broker.log, "the end of the failures is logged")
    lines = [json.loads(line) for line in broker.log.splitlines()]
    assert all(line.keys() >= {"time", "level", "logger", "message", "node_id", "process"} for line in lines)
    assert {line["process"] for line in lines} == {"broker", "http"}
    told = [line["message"] for line in lines if line["logger"] == "sskafka.servers.http.otlp"]
    assert len(told) == 2, told
    assert told[0].endswith("HTTP 503 Service Unavailable")
    ready = next(line for line in lines if "is ready" in line["message"])
    assert ready["details"]["clients"] == broker.bootstrap
    assert ready["node_id"] == 1


def test_a_push_without_an_http_process_is_refused(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "broker", {"otel.exporter.otlp.endpoint": "http://127.0.0.1:1"})
    broker.launch()
    assert broker.wait() != 0
    assert "set http.listener, too" in broker.log
    broker.close()
