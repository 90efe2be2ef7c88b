"""Bytes of a compacted log change whose replicas were compacted differently: they are replaced, and no key is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_damaged_batches import SCRUB_OFTEN, TOPIC, ScrubbedCluster, flip
from waiting import wait_until
from wire_connection import Connection, records_in

from sskafka.records.batch import HEADER_BYTES, iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.record import decode_records
from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SETTINGS = {**SCRUB_OFTEN, "log.cleaner.backoff.ms": 200}
BROKER_RESOURCE = 4
KEYS = 7
BATCHES = 80

State = dict[bytes | None, bytes | None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrubbedCluster]:
    cluster = ScrubbedCluster(tmp_path_factory.mktemp("compacted"), 2, SETTINGS)
    try:
        yield cluster.start()
    finally:
        cluster.close()


def stop_cleaner(cluster: ScrubbedCluster, node_id: int) -> None:
    never = AlterableConfig("log.cleaner.backoff.ms", 0, str(10**9))
    resource = AlterConfigsResource(BROKER_RESOURCE, str(node_id), [never])
    (answer,) = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1, at=node_id).responses
    assert answer.error_code == 0, answer


def fill(connection: Connection) -> State:
    """Return the last value of every key; some keys are deleted."""
    state: State = {}
    for number in range(BATCHES):
        key, value = b"%d" % (number % KEYS), None if number % 10 == 9 else b"%d" % number * 20
        batch = build_batch([NewRecord(key, value, (), 1_700_000_000_000)])
        assert connection.produce(TOPIC, batch, acks=-1).error_code == 0
        state[key] = value
    return {key: value for key, value in state.items() if value is not None}


def stored(cluster: ScrubbedCluster, node_id: int) -> State | None:
    """Return the last values in the files of a replica, None while they are being replaced."""
    state: State = {}
    try:
        for path in cluster.segments(node_id):
            content = path.read_bytes()
            for position, header in iter_headers(content):
                state |= {record.key: record.value for record in decode_records(content, header, position)}
    except FileNotFoundError:
        return None
    return {key: value for key, value in state.items() if value is not None}


def served(connection: Connection) -> State:
    state: State = {}
    offset = 0
    while True:
        answer = connection.fetch(TOPIC, offset=offset)
        assert answer.error_code == 0, answer
        if not answer.records:
            return {key: value for key, value in state.items() if value is not None}
        for record in records_in(answer):
            state[record.key] = record.value
        offset = max(header.next_offset for _, header in iter_headers(answer.records))


def is_smaller(paths: list[Path], others: list[Path]) -> bool:
    """Return whether a replica takes less than half as much room as another."""
    try:
        return sum(path.stat().st_size for path in paths) < sum(path.stat().st_size for path in others) / 2
    except FileNotFoundError:  # replaced just now
        return False


def is_settled(cluster: ScrubbedCluster, node_id: int) -> bool:
    """Return whether nothing is compacted any more: a file that is damaged while it is being replaced stays intact."""
    before = [(path, path.stat().st_ino) for path in cluster.segments(node_id) if path.exists()]
    time.sleep(2)  # ten times log.cleaner.backoff.ms
    return before == [(path, path.stat().st_ino) for path in cluster.segments(node_id) if path.exists()]


@pytest.mark.long
def test_replicas_that_were_compacted_differently_mend_each_other(cluster: ScrubbedCluster) -> None:
    """First the replica that was compacted, from the one that was not; then the other way round."""
    compacted, other = cluster.node_ids
    stop_cleaner(cluster, other)  # when it has looked once more, and found nothing to do
    cluster.create_topic(
        TOPIC,
        1,
        2,
        cleanup_policy="compact",
        segment_bytes=1024,
        min_cleanable_dirty_ratio=0.01,
        min_insync_replicas=1,
    )
    before = cluster.partitions(TOPIC)[0]
    with Connection(cluster.address(before.leader)) as connection:
        expected = fill(connection)
        wait_until(lambda: is_smaller(cluster.segments(compacted), cluster.segments(other)), "one is compacted")
        for node_id in (compacted, other):
            wait_until(lambda at=node_id: is_settled(cluster, at), "the cleaner has nothing to do", 60)
            replaced = cluster.metric(node_id, "replacedranges_total")
            flip(next(path for path in cluster.segments(node_id) if path.stat().st_size > HEADER_BYTES), 80)
            wait_until(
                lambda at=node_id, count=replaced + 1: cluster.metric(at, "replacedranges_total") == count,
                f"the batches of broker {node_id} are replaced",
                60,
            )
            assert cluster.metric(node_id, "damagedranges") == 0
            wait_until(lambda at=node_id: stored(cluster, at) == expected, f"broker {node_id} has every key")
            assert served(connection) == expected
        assert cluster.partitions(TOPIC)[0] == before, "leader and ISR stay as they are"
        assert connection.produce(TOPIC, build_batch([NewRecord(b"0", b"goes on", (), 0)]), acks=-1).error_code == 0
    wait_until(lambda: stored(cluster, other) == {**expected, b"0": b"goes on"}, "replication goes on")
