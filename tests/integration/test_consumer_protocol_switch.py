"""Where the consumer protocol (KIP-848) is switched off: by group.coordinator.rebalance.protocols, by group.version."""

from broker_process import StartBroker
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sskafka.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

FEW = {"offsets.topic.num.partitions": 1}


def joined(wire: Connection) -> tuple[int, str | None]:
    request = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    answer = wire.call(request, 1)
    return answer.error_code, answer.error_message


def described(wire: Connection) -> int:
    (group,) = wire.call(ConsumerGroupDescribeRequest(["g"]), 1).groups
    return int(group.error_code)


def coordinator_is_ready(wire: Connection) -> None:
    wait_until(lambda: wire.call(FindCoordinatorRequest("g"), 2).error_code == 0, "there is a coordinator")


def test_only_the_protocols_that_are_configured_are_served(start_broker: StartBroker) -> None:
    broker = start_broker(FEW | {"group.coordinator.rebalance.protocols": "classic"})
    with Connection(broker.bootstrap) as wire:
        coordinator_is_ready(wire)
        assert joined(wire) == (ErrorCode.UNSUPPORTED_VERSION, None)
        assert described(wire) == ErrorCode.UNSUPPORTED_VERSION
        protocols = [JoinGroupRequestProtocol("range", b"")]
        classic = JoinGroupRequest("g", 30_000, 30_000, protocol_type="consumer", protocols=protocols)
        wait_until(
            lambda: wire.call(classic, 9).error_code == ErrorCode.MEMBER_ID_REQUIRED, "classic groups are served"
        )


def test_the_feature_group_version_switches_the_protocol(start_broker: StartBroker) -> None:
    broker = start_broker(FEW)
    with Connection(broker.bootstrap) as wire:
        coordinator_is_ready(wire)
        wait_until(lambda: joined(wire) == (ErrorCode.NONE, None), "the protocol is served")
        lower = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("group.version", 0, upgrade_type=2)])
        assert wire.call(lower, 1).error_code == ErrorCode.NONE
        wait_until(lambda: joined(wire) == (ErrorCode.UNSUPPORTED_VERSION, None), "the protocol is switched off")
        assert described(wire) == ErrorCode.UNSUPPORTED_VERSION
        upgrade = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("group.version", 1, upgrade_type=1)])
        assert wire.call(upgrade, 1).error_code == ErrorCode.NONE
        wait_until(lambda: joined(wire) == (ErrorCode.NONE, None), "the protocol is served again")
