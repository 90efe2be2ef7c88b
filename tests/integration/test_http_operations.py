"""What operators ask a broker over HTTP: alive, ready, counters."""

import re
from pathlib import Path

import httpx
from broker_process import BrokerProcess, StartBroker
from confluent_kafka import Consumer, TopicPartition
from free_ports import free_ports
from http_client import HttpClient
from waiting import wait_until

HTTP = {"http.listener": "127.0.0.1:0"}
SAMPLE = re.compile(r"([a-z_]+)(\{[^}]*\})? (-?[0-9.e+]+)")


def metrics(http: HttpClient) -> dict[str, float]:
    response = http.http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {}
    for line in response.text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            samples[match[1] + (match[2] or "")] = float(match[3])
    return samples


def test_a_broker_that_serves_is_alive_and_ready(start_broker: StartBroker) -> None:
    http = HttpClient(start_broker(HTTP).http)
    assert http.get("/livez") == (200, {"status": "alive"})
    assert http.get("/readyz") == (200, {"status": "ready"})
    http.close()


def test_counters_have_the_names_of_kafkas_dashboards(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    http = HttpClient(broker.http)
    http.create("orders", 2)
    before = metrics(http)
    for _ in range(5):
        http.produce("orders-1", "payload")
    http.consume("orders-1")
    after = metrics(http)
    messages = 'kafka_server_brokertopicmetrics_messagesin_total{topic="orders"}'
    assert after[messages] - before[messages] == 5
    bytes_in = 'kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}'
    assert after[bytes_in] > before[bytes_in]
    produces = 'kafka_network_requestmetrics_requests_total{request="Produce"}'
    assert after[produces] - before[produces] == 5
    assert after["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert after["kafka_controller_kafkacontroller_globalpartitioncount"] >= 2
    assert after["kafka_controller_kafkacontroller_offlinepartitionscount"] == 0
    assert after["kafka_server_replicamanager_underreplicatedpartitions"] == 0
    assert after["kafka_server_replicamanager_leadercount"] >= 2
    assert after['kafka_log_log_size{topic="orders",partition="0"}'] > 0
    assert after['kafka_log_log_logendoffset{topic="orders",partition="0"}'] == 5
    assert after["process_resident_memory_bytes"] > 1e6
    http.close()


def test_many_topics_are_counted_in_turns(start_broker: StartBroker) -> None:
    http = HttpClient(start_broker(HTTP).http)
    http.create("wide", 120)

    def counted() -> int:
        return sum(name.startswith("kafka_log_log_size{") for name in metrics(http))

    wait_until(lambda: counted() == 120, "every partition is counted")
    http.close()


def test_groups_are_shown_with_their_lag(start_broker: StartBroker) -> None:
    broker = start_broker({**HTTP, "offsets.topic.num.partitions": 1})
    http = HttpClient(broker.http)
    http.create("read")
    for _ in range(5):
        http.produce("read-1", "payload")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("read", 0, 2)], asynchronous=False)
    consumer.close()
    labels = '{consumergroup="readers",topic="read",partition="0"}'
    found = metrics(http)
    assert found[f"kafka_consumergroup_current_offset{labels}"] == 2
    assert found[f"kafka_consumergroup_lag{labels}"] == 3
    assert http.delete("/admin/v1/topics/read") == (204, None)
    assert f"kafka_consumergroup_lag{labels}" not in metrics(http)
    http.close()


def test_a_broker_that_waits_for_its_quorum_is_alive_but_not_ready(tmp_path: Path) -> None:
    kafka_port, http_port, absent_port = free_ports(3)
    voters = f"1@127.0.0.1:{kafka_port},2@127.0.0.1:{absent_port}"
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{kafka_port}",
        "http.listener": f"127.0.0.1:{http_port}",
        "controller.quorum.voters": voters,
    }
    broker = BrokerProcess(tmp_path / "broker", settings)
    try:
        broker.launch()
        http = HttpClient(f"127.0.0.1:{http_port}")
        wait_until(lambda: answers(http), "the HTTP server answers")
        assert http.get("/readyz") == (503, {"detail": "the broker is not registered yet"})
        assert http.get("/healthcheck") == (200, {"status": "up", "broker_id": 1, "leader_broker_id": -1})
        assert http.get("/admin/v1/topics") == (421, {"detail": "leader is -1, can't accept"})
        http.close()
    finally:
        broker.close()


def answers(http: HttpClient) -> bool:
    try:
        return http.get("/livez") == (200, {"status": "alive"})
    except httpx.ConnectError:
        return False
