"""A real Prometheus scrapes a cluster: the pages are clean, and every query of deploy/ finds series.

Prometheus comes from Debian and is unpacked into build/; nothing is installed.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer
from free_ports import free_ports
from monitoring import DEPLOY, dashboard_queries, rule_queries, rules
from waiting import wait_until

from sskafka.model.properties import parse_properties
from sskafka.testing.process_cluster import ProcessCluster

BUILD = DEPLOY.parent / "build" / "prometheus"
FIRES_WITHOUT_A_BROKER = ("SSKafkaBrokerDown", "SSKafkaUnderReplicated", "SSKafkaFencedBroker")


class HttpCluster(ProcessCluster):
    server_options = ("--http-port", "0", "--no-adr")
    ready_timeout_s = 90.0

    def http(self, node_id: int) -> str:
        return parse_properties((self.home(node_id) / "server.properties").read_text())["http.listener"]


@pytest.fixture(scope="module")
def programs() -> Path:
    """The directory of prometheus and promtool."""
    there = BUILD / "usr" / "bin"
    if not (there / "promtool").exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "-qq", "prometheus"], cwd=BUILD, check=True, timeout=120)
            (package,) = BUILD.glob("prometheus_*.deb")
            subprocess.run(["dpkg", "-x", package, BUILD], check=True, timeout=120)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            pytest.skip(f"Prometheus cannot be had from Debian: {error}")
    return there


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpCluster]:
    settings = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
    with HttpCluster(3, settings, directory=tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic("orders", partitions=3, replication_factor=3)
        yield cluster


def load(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(50):
        producer.produce("orders", str(number))
    producer.flush()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    wait_until(lambda: consumer.poll(0.2), "a record is read", 30)
    consumer.commit(asynchronous=False)
    consumer.close()


class Prometheus:
    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expression: str) -> list[Any]:
        url = f"http://{self._address}/api/v1/query?{urlencode({'query': expression})}"
        with urlopen(url, timeout=10) as response:
            return json.load(response)["data"]["result"]  # type: ignore[no-any-return]

    def is_up(self) -> bool:
        try:
            return len(self.query("up == 1")) == 3
        except URLError:
            return False


@contextmanager
def running(programs: Path, directory: Path, targets: list[str]) -> Iterator[Prometheus]:
    config = directory / "prometheus.yml"
    scrape = {"job_name": "sskafka", "static_configs": [{"targets": targets}]}
    times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    files = [str(DEPLOY / "prometheus-rules.yml")]
    config.write_text(json.dumps({"global": times, "rule_files": files, "scrape_configs": [scrape]}))
    address = f"127.0.0.1:{free_ports(1)[0]}"
    command = [
        programs / "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(address)
    finally:
        process.terminate()
        process.wait(30)


def test_pages_pass_promtool(programs: Path, cluster: HttpCluster) -> None:
    load(cluster.bootstrap_servers)
    for node_id in cluster.node_ids:
        with urlopen(f"http://{cluster.http(node_id)}/metrics", timeout=10) as response:
            page = response.read()
        checked = subprocess.run(
            [programs / "promtool", "check", "metrics"], input=page, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


@pytest.mark.parametrize(("what", "file"), [("rules", "prometheus-rules.yml"), ("config", "prometheus.yml")])
def test_files_pass_promtool(programs: Path, what: str, file: str) -> None:
    command = [programs / "promtool", "check", what, DEPLOY / file]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_query_finds_series_and_alerts_fire(programs: Path, cluster: HttpCluster, tmp_path: Path) -> None:
    with running(programs, tmp_path, [cluster.http(node_id) for node_id in cluster.node_ids]) as prometheus:
        wait_until(prometheus.is_up, "all brokers are scraped", 60)
        load(cluster.bootstrap_servers)
        for title, expression in [*dashboard_queries(), *rule_queries()]:
            wait_until(lambda asked=expression: prometheus.query(asked), f"{title}: {expression}", 30)
        firing = {rule["alert"]: rule["expr"] for rule in rules()}
        assert [name for name in FIRES_WITHOUT_A_BROKER if prometheus.query(firing[name])] == []
        cluster.kill(2)
        for name in FIRES_WITHOUT_A_BROKER:
            wait_until(fires(prometheus, firing[name]), f"{name} fires", 60)


def fires(prometheus: Prometheus, expression: str) -> Callable[[], bool]:
    def check() -> bool:
        time.sleep(0.2)  # a query takes longer than the pause between two looks
        return bool(prometheus.query(expression))

    return check
