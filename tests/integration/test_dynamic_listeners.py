"""Listeners that are added and removed while the broker runs."""

import socket
from pathlib import Path
from typing import Any

import pytest
from broker_process import BrokerProcess, StartBroker
from clients import confluent_consumer
from confluent_kafka import TopicPartition
from free_ports import free_ports
from waiting import wait_until
from wire_connection import Connection, values_batch, values_in

from sskafka import Consumer, Producer
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sskafka.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

BROKER, SET = 4, 0
LISTENERS, PROTOCOLS = "listeners", "listener.security.protocol.map"
ADVERTISED = {"advertised.listeners": "PLAINTEXT://127.0.0.1:0"}
AT_START = "PLAINTEXT://127.0.0.1:0"


def alter(connection: Connection, *, validate_only: bool = False, **configs: str) -> Any:
    names = {"listeners": LISTENERS, "map": PROTOCOLS}
    wanted = [AlterableConfig(names[key], SET, value) for key, value in configs.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "1", wanted)], validate_only)
    return connection.call(request, version=1).responses[0]


def with_extra(port: int, name: str = "EXTRA") -> dict[str, str]:
    return {"listeners": f"{AT_START},{name}://127.0.0.1:{port}", "map": f"PLAINTEXT:PLAINTEXT,{name}:PLAINTEXT"}


def listeners(connection: Connection) -> str:
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "1", [LISTENERS])])
    value: str = connection.call(request, version=4).results[0].configs[0].value
    return value


def is_refused(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def test_an_added_listener_serves_and_a_removed_one_is_closed(start_broker: StartBroker) -> None:
    broker = start_broker(ADVERTISED)
    (port,) = free_ports(1)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        for number in range(2):  # a name that was removed may come back
            assert alter(connection, **with_extra(port)).error_code == 0
            with Connection(f"127.0.0.1:{port}") as added:
                assert added.produce("orders", values_batch(b"%d" % number)).error_code == 0
                assert values_in(added.fetch("orders"))[-1:] == [b"%d" % number]
                assert alter(connection, listeners=AT_START).error_code == 0
                assert added.is_closed_by_broker()
            assert is_refused(port)
        assert values_in(connection.fetch("orders")) == [b"0", b"1"]


def test_clients_of_a_listener_that_is_not_advertised_are_told_so(start_broker: StartBroker) -> None:
    broker = start_broker(ADVERTISED)
    (port,) = free_ports(1)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        alter(connection, **with_extra(port))
    for version, error in ((5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)):
        with Connection(f"127.0.0.1:{port}") as added:
            described = added.call(MetadataRequest([MetadataRequestTopic(name="orders")]), version=version)
        (partition,) = described.topics[0].partitions
        assert (described.brokers, partition.error_code, partition.leader_id) == ([], error, -1)
        assert partition.offline_replicas == [1]
    with Connection(f"127.0.0.1:{port}") as added:
        asked = DescribeTopicPartitionsRequest([TopicRequest("orders")])
        (paged,) = added.call(asked, version=0).topics[0].partitions
    assert (paged.error_code, paged.leader_id, paged.offline_replicas) == (ErrorCode.NONE, -1, [1])


def test_a_port_that_cannot_be_bound_is_refused(start_broker: StartBroker) -> None:
    broker = start_broker(ADVERTISED)
    with Connection(broker.bootstrap) as connection, socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refusal = alter(connection, **with_extra(port))
        assert refusal.error_code == ErrorCode.INVALID_REQUEST
        assert f"port {port} is taken" in refusal.error_message
        assert listeners(connection) == AT_START


def test_a_change_that_is_only_checked_opens_nothing(start_broker: StartBroker) -> None:
    broker = start_broker(ADVERTISED)
    (port,) = free_ports(1)
    with Connection(broker.bootstrap) as connection:
        assert alter(connection, validate_only=True, **with_extra(port)).error_code == 0
        assert is_refused(port)
        assert alter(connection, **with_extra(port)).error_code == 0  # its port was given back
        assert not is_refused(port)


def test_a_new_listener_may_have_the_port_of_one_that_goes(start_broker: StartBroker) -> None:
    broker = start_broker(ADVERTISED)
    (port,) = free_ports(1)
    with Connection(broker.bootstrap) as connection:
        assert alter(connection, **with_extra(port)).error_code == 0
        with Connection(f"127.0.0.1:{port}") as old:
            assert alter(connection, **with_extra(port, "OTHER")).error_code == 0
            assert old.is_closed_by_broker()
        with Connection(f"127.0.0.1:{port}") as new:
            assert listeners(new) == f"{AT_START},OTHER://127.0.0.1:{port}"


@pytest.mark.parametrize("unclean", [False, True])
def test_an_added_listener_is_there_after_a_restart(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker(ADVERTISED)
    (port,) = free_ports(1)
    with Connection(broker.bootstrap) as connection:
        assert alter(connection, **with_extra(port)).error_code == 0
    broker.restart(unclean=unclean)
    with Connection(f"127.0.0.1:{port}") as added:
        assert f"EXTRA://127.0.0.1:{port}" in listeners(added)


def snapshot_end(broker: BrokerProcess) -> int:
    """The offset up to which the newest snapshot of the metadata reaches."""
    files = Path(broker.data_directory, "__cluster_metadata-0").glob("*.checkpoint")
    return max((int(file.name.partition("-")[0]) for file in files), default=0)


def test_a_listener_of_a_metadata_snapshot_is_registered_at_the_next_start(start_broker: StartBroker) -> None:
    """Then clients find the brokers there."""
    broker = start_broker({"metadata.log.max.record.bytes.between.snapshots": 1})
    (port,) = free_ports(1)
    with Connection(broker.bootstrap) as connection:
        assert alter(connection, **with_extra(port)).error_code == 0
        before = snapshot_end(broker)
        connection.create_topic("orders")
        wait_until(lambda: snapshot_end(broker) > before, "a snapshot is written")
    broker.restart()
    address = f"127.0.0.1:{port}"
    with Producer(address) as producer:
        producer.send("orders", "key", "by the new listener")
    with Consumer(address) as consumer:
        consumer.subscribe("orders")
        assert [record.value for record in consumer.poll(timeout_ms=10_000)] == [b"by the new listener"]
    official = confluent_consumer(address)
    try:
        official.assign([TopicPartition("orders", 0, 0)])
        message = official.poll(10.0)
        assert message is not None
        assert message.value() == b"by the new listener"
    finally:
        official.close()


def test_listeners_that_a_controller_took_unchecked_leave_the_open_ones_alone(start_broker: StartBroker) -> None:
    (controller,) = free_ports(1)
    broker = start_broker(
        {
            "listeners": f"{AT_START},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            PROTOCOLS: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    with Connection(broker.bootstrap) as connection, Connection(f"127.0.0.1:{controller}") as direct:
        assert alter(direct, listeners="garbage").error_code == 0
        wait_until(lambda: "the listeners are not changed" in broker.log, "the broker says so")
        assert listeners(connection) == "garbage"
    broker.restart()
    with Connection(broker.bootstrap) as connection:
        assert listeners(connection) == "garbage"
