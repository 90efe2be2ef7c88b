"""Bytes of segment files change while brokers run: consumers read everything, or get an error for damaged offsets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_process import StartBroker
from cluster_processes import ClusterProcesses
from http_client import HttpClient
from replica_files import stored_batches
from waiting import wait_until
from wire_connection import Connection, values_batch, values_in

from sskafka.model.properties import parse_properties

TOPIC = "orders"
BATCHES = 60
SCRUB_OFTEN = {"log.scrub.interval.ms": 500, "log.scrub.bytes.per.second": 100_000_000}
PREFIX = "kafka_log_logscrubber_"


class ScrubbedCluster(ClusterProcesses):
    server_options = ("--http-port", "0", "--no-adr")
    ready_timeout_s = 90

    def metric(self, node_id: int, name: str) -> float:
        properties = parse_properties((self.home(node_id) / "server.properties").read_text())
        client = HttpClient(properties["http.listener"])
        try:
            return _metric(client.http.get("/metrics").text, name)
        finally:
            client.close()

    def segments(self, node_id: int) -> list[Path]:
        return sorted((self.home(node_id) / "data" / f"{TOPIC}-0").glob("*.log"))


def _metric(text: str, name: str) -> float:
    found = [line for line in text.splitlines() if line.startswith(f"{PREFIX}{name} ")]
    return float(found[0].split()[-1]) if found else 0.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrubbedCluster]:
    cluster = ScrubbedCluster(tmp_path_factory.mktemp("scrubbed"), 3, SCRUB_OFTEN)
    try:
        cluster.start()
        cluster.create_topic(TOPIC, 1, 3, segment_bytes=1024, segment_ms=2**40, retention_ms=-1, min_insync_replicas=1)
        with Connection(cluster.address(cluster.partitions(TOPIC)[0].leader)) as connection:
            fill(connection)
        wait_until(lambda: len(_contents(cluster)) == 1, "all replicas have everything")
        yield cluster
    finally:
        cluster.close()


def fill(connection: Connection) -> None:
    for number in range(BATCHES):
        assert connection.produce(TOPIC, values_batch(b"%d" % number * 20), acks=-1).error_code == 0


def _contents(cluster: ScrubbedCluster) -> set[tuple[object, ...]]:
    return {tuple(stored_batches(cluster.home(node) / "data", TOPIC, 0)) for node in cluster.node_ids}


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0x04]))


def read_all(connection: Connection) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < BATCHES:
        answer = connection.fetch(TOPIC, offset=len(values))
        assert answer.error_code == 0, answer
        assert answer.records, f"nothing at offset {len(values)}"
        values += values_in(answer)
    return values


@pytest.mark.parametrize("which", ["closed", "active"])
@pytest.mark.parametrize("role", ["follower", "leader"])
@pytest.mark.parametrize("place", ["records", "header", "end of file"])
def test_a_damaged_batch_is_replaced_from_another_replica(
    cluster: ScrubbedCluster, role: str, which: str, place: str
) -> None:
    state = cluster.partitions(TOPIC)[0]
    node_id = state.leader if role == "leader" else next(node for node in state.isr if node != state.leader)
    segments = cluster.segments(node_id)
    assert len(segments) > 3
    path = segments[1] if which == "closed" else segments[-1]
    replaced, size = cluster.metric(node_id, "replacedranges_total"), path.stat().st_size
    if place == "end of file":
        path.write_bytes(path.read_bytes()[:-7] + bytes(7))
    else:
        flip(path, 80 if place == "records" else 9)
    wait_until(lambda: cluster.metric(node_id, "replacedranges_total") == replaced + 1, "the batch was replaced", 60)
    assert len(_contents(cluster)) == 1
    assert path.stat().st_size == size
    assert cluster.metric(node_id, "damagedranges") == 0
    assert cluster.partitions(TOPIC)[0] == state, "leader and ISR stay as they are"
    with Connection(cluster.address(state.leader)) as connection:
        assert read_all(connection) == [b"%d" % number * 20 for number in range(BATCHES)]


def test_without_another_replica_the_damage_is_reported_and_not_served(start_broker: StartBroker) -> None:
    broker = start_broker({**SCRUB_OFTEN, "log.segment.bytes": 1024, "log.retention.ms": -1})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(TOPIC)
        fill(connection)
        path = sorted((broker.data_directory / f"{TOPIC}-0").glob("*.log"))[1]
        first = int(path.stem)
        flip(path, 80)
        wait_until(lambda: connection.fetch(TOPIC, offset=first).error_code == 2, "the damage is noticed", 60)
        assert "no other replica is in sync" in broker.log
        assert broker.log.count("are damaged on disk") == 1
        before = list(values_in(connection.fetch(TOPIC, offset=0)))
        assert before == [b"%d" % number * 20 for number in range(len(before))]
        assert 0 < len(before) <= first
        assert values_in(connection.fetch(TOPIC, offset=first + 1))[0] == b"%d" % (first + 1) * 20


def test_leader_epochs_that_contradict_good_batches_are_rebuilt(start_broker: StartBroker) -> None:
    """The damage is in the middle of the file, where a start after a clean stop does not look."""
    broker = start_broker({**SCRUB_OFTEN, "log.retention.ms": -1})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(TOPIC)
    for _ in range(3):
        with Connection(broker.bootstrap) as connection:
            fill(connection)
        broker.stop()
        broker.start()
    broker.stop()
    path = broker.data_directory / f"{TOPIC}-0" / "leader-epoch-checkpoint"
    good = path.read_text()
    head, count, first, *rest = good.splitlines()
    assert len(rest) == 2, good
    path.write_text("\n".join([head, count, first, rest[0].replace(f" {BATCHES}", f" {BATCHES + 7}"), rest[1], ""]))
    broker.start()
    wait_until(lambda: path.read_text() == good, "the file is rebuilt", 60)
    assert "leader-epoch-checkpoint does not match the batches and is rebuilt" in broker.log
    assert "are damaged on disk" not in broker.log
    with Connection(broker.bootstrap) as connection:
        values = values_in(connection.fetch(TOPIC, offset=BATCHES))
        assert values[0] == b"0" * 20
