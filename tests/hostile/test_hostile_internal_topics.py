"""Internal topics that a client tries to write rubbish to, or that hold some: groups keep working."""

from pathlib import Path
from urllib.request import urlopen

from broker_process import StartBroker
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import assign_offset, iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

PARTITIONS = 3
SETTINGS = {"offsets.topic.num.partitions": PARTITIONS, "http.listener": "127.0.0.1:0"}
RUBBISH = (
    NewRecord(b"", b""),
    NewRecord(b"\x00", b"x"),
    NewRecord(b"\x00\x01\x7f\xff", b"rubbish"),
    NewRecord(b"\x00\x02\x00\x01g", b"\x00\x03\xff\xff\xff"),
    NewRecord(b"\x00\x08\x00\x01g\x00\x01m", b"\x00\x00" + b"\xff" * 40),
)


def commit(connection: Connection, group: str, offset: int) -> None:
    def is_committed() -> bool:
        connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), version=4)
        partition = OffsetCommitRequestPartition(0, committed_offset=offset)
        asked = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic("t", partitions=[partition])])
        (topic,) = connection.call(asked, version=8).topics
        return bool(topic.partitions[0].error_code == ErrorCode.NONE)

    wait_until(is_committed, f"{group} has committed")


def committed(connection: Connection, group: str) -> int:
    def fetched() -> int | None:
        asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        (answer,) = connection.call(asked, version=8).groups
        return answer.topics[0].partitions[0].committed_offset if answer.error_code == ErrorCode.NONE else None

    return wait_until(fetched, f"the coordinator of {group} has loaded")


def test_the_admin_client_id_does_not_write_rubbish(start_broker: StartBroker) -> None:
    broker = start_broker(SETTINGS)
    with Connection(broker.bootstrap) as client, Connection(broker.bootstrap, "__admin_client") as admin:
        client.create_topic("t")
        commit(client, "g", 7)
        for record in RUBBISH:
            for partition in range(PARTITIONS):
                refused = admin.produce("__consumer_offsets", build_batch([record]), partition)
                assert refused.error_code == ErrorCode.INVALID_RECORD, record
        refused = client.produce("__consumer_offsets", build_batch([RUBBISH[0]]))
        assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert committed(client, "g") == 7


def test_a_coordinator_skips_records_that_it_cannot_read(start_broker: StartBroker) -> None:
    broker = start_broker(SETTINGS)
    groups = [f"g{number}" for number in range(10)]
    with Connection(broker.bootstrap) as client:
        client.create_topic("t")
        for number, group in enumerate(groups, start=1):
            commit(client, group, number)
    broker.stop()
    for partition in range(PARTITIONS):
        append_rubbish(broker.data_directory / f"__consumer_offsets-{partition}")
    broker.start()
    with Connection(broker.bootstrap) as client:
        assert [committed(client, group) for group in groups] == list(range(1, 11))
        commit(client, "g0", 99)
        assert committed(client, "g0") == 99
    metric = "kafka_server_group_coordinator_metrics_unreadable_records_total"
    assert f"{metric} {PARTITIONS * len(RUBBISH)}" in metrics(broker.http)
    assert broker.log.count("cannot be read and is skipped") == PARTITIONS
    assert "Traceback" not in broker.log


def append_rubbish(directory: Path) -> None:
    path = directory / f"{0:020}.log"
    stored = path.read_bytes()
    end_offset = max((header.next_offset for _, header in iter_headers(stored)), default=0)
    batch = build_batch(RUBBISH)
    assign_offset(batch, 0, end_offset, 0)
    path.write_bytes(stored + batch)


def metrics(http: str) -> str:
    with urlopen(f"http://{http}/metrics", timeout=10) as response:
        return str(response.read().decode())
