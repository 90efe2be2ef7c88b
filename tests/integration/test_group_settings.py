"""Settings of single groups over the protocol: changed, described, stored, and sent to members with their next
heartbeat."""

from typing import Any

from broker_process import BrokerProcess, StartBroker
from waiting import wait_until
from wire_connection import Connection

from sskafka.wire.messages import incremental_alter_configs as incremental
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from sskafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest

GROUP_RESOURCE, BROKER_RESOURCE = 32, 4
SET, DELETE = 0, 1
HEARTBEAT = "consumer.heartbeat.interval.ms"
SETTINGS = {"offsets.topic.num.partitions": 1}


def change(wire: Connection, name: str, operation: int, value: str | None, kind: int = GROUP_RESOURCE) -> Any:
    resource_name = "g" if kind == GROUP_RESOURCE else ""
    configs = [incremental.AlterableConfig(name, operation, value)]
    resource = incremental.AlterConfigsResource(kind, resource_name, configs)
    (outcome,) = wire.call(incremental.IncrementalAlterConfigsRequest([resource]), 1).responses
    return outcome


def shown(wire: Connection) -> tuple[str, int]:
    resource = DescribeConfigsResource(GROUP_RESOURCE, "g", [HEARTBEAT])
    (result,) = wire.call(DescribeConfigsRequest([resource]), 4).results
    assert result.error_code == 0
    (entry,) = result.configs
    return entry.value, entry.config_source


def join(wire: Connection) -> ConsumerGroupHeartbeatResponse:
    wait_until(lambda: wire.call(FindCoordinatorRequest("g"), 2).error_code == 0, "there is a coordinator")
    request = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    answers: list[ConsumerGroupHeartbeatResponse] = []

    def is_joined() -> bool:
        answers.append(wire.call(request, 1))
        return bool(answers[-1].error_code == 0)

    wait_until(is_joined, "the member has joined")
    return answers[-1]


def heartbeat_interval(wire: Connection, epoch: int) -> int:
    answer = wire.call(ConsumerGroupHeartbeatRequest("g", "m", epoch), 1)
    assert answer.error_code == 0
    return int(answer.heartbeat_interval_ms)


def test_a_group_has_settings_of_its_own(start_broker: StartBroker) -> None:
    broker: BrokerProcess = start_broker(SETTINGS)
    with Connection(broker.bootstrap) as wire:
        joined = join(wire)
        assert joined.heartbeat_interval_ms == 5000
        assert change(wire, HEARTBEAT, SET, "7000").error_code == 0
        wait_until(lambda: heartbeat_interval(wire, joined.member_epoch) == 7000, "members are told")
        assert shown(wire) == ("7000", 8)
    broker.stop()
    broker.start()
    with Connection(broker.bootstrap) as wire:
        assert shown(wire) == ("7000", 8)
        again = join(wire)
        assert again.heartbeat_interval_ms == 7000
        assert change(wire, HEARTBEAT, DELETE, None).error_code == 0
        wait_until(lambda: heartbeat_interval(wire, again.member_epoch) == 5000, "members are told")
        assert shown(wire) == ("5000", 5)
