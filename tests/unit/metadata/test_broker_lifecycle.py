from metadata_clusters import SETTINGS, cluster, decided, replayed, with_topic

from sskafka.metadata.brokers.lifecycle import (
    begin_controlled_shutdown,
    fence_brokers,
    register_broker,
    start_single_broker,
    supported_features,
    unfence_broker,
    unregister_broker,
)
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import FeatureLevelRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from sskafka.wire.messages.unregister_broker import UnregisterBrokerRequest

CLUSTER = "c"


def request(incarnation: int = 1, broker_id: int = 1, cluster_id: str = CLUSTER) -> BrokerRegistrationRequest:
    listeners = [Listener("PLAINTEXT", "localhost", 9092, 0)]
    directories = [bytes(15) + bytes([101])]
    return BrokerRegistrationRequest(
        broker_id, cluster_id, bytes([incarnation] * 16), listeners, supported_features(), "rack", log_dirs=directories
    )


def start(image: ClusterImage, incarnation: int = 1) -> int:
    response = decided(image, start_single_broker(image, request(incarnation), CLUSTER, SETTINGS))
    assert response.error_code == 0
    return response.broker_epoch


def partition(image: ClusterImage) -> PartitionImage:
    return image.topics_by_name["t"].partitions[0]


def test_a_broker_is_registered_fenced_with_the_offset_as_its_epoch() -> None:
    image = ClusterImage()
    image.next_offset = 41
    decision = register_broker(image, request(), CLUSTER, SETTINGS, previous_may_be_alive=False)
    assert decided(image, decision).broker_epoch == 41
    broker = image.brokers[1]
    assert (broker.fenced, broker.rack, broker.epoch) == (True, "rack", 41)
    endpoint = broker.endpoint("PLAINTEXT")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("localhost", 9092)


def test_partitions_prepared_for_a_new_broker_keep_their_epochs() -> None:
    """At the first start, a crash cannot have lost records that a client has read; after a restart it can."""
    image, topic_id = ClusterImage(), b"\x07" * 16
    prepared = PartitionRecord(
        0, topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0, directories=request().log_dirs
    )
    replayed(image, [TopicRecord("t", topic_id), prepared])
    start(image)
    assert (partition(image).leader, partition(image).leader_epoch) == (1, 0)
    start(image, incarnation=2)
    assert (partition(image).leader, partition(image).leader_epoch) == (1, 1)


def test_invalid_registrations_are_rejected() -> None:
    image = ClusterImage()
    start(image)
    other = register_broker(image, request(2, cluster_id="other"), CLUSTER, SETTINGS, previous_may_be_alive=False)
    assert other.response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    second = register_broker(image, request(2), CLUSTER, SETTINGS, previous_may_be_alive=True)
    assert second.response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    replayed(image, [FeatureLevelRecord("metadata.version", 25)])
    old = request(2)
    old.features = [Feature("metadata.version", 7, 24)]
    too_old = register_broker(image, old, CLUSTER, SETTINGS, previous_may_be_alive=False)
    assert too_old.response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_copied_directory_is_rejected() -> None:
    image = cluster(2)
    copied = request(2, broker_id=7)
    copied.log_dirs = list(image.brokers[2].directories)
    refused = register_broker(image, copied, CLUSTER, SETTINGS, previous_may_be_alive=False)
    assert refused.response.error_code == ErrorCode.INVALID_REGISTRATION
    copied.log_dirs = [b"\x07" * 16] * 2
    refused = register_broker(image, copied, CLUSTER, SETTINGS, previous_may_be_alive=False)
    assert refused.response.error_code == ErrorCode.INVALID_REGISTRATION


def test_a_stopping_broker_may_be_replaced_at_once() -> None:
    image = with_topic(cluster(2), "t", 1, 2)
    decided(image, begin_controlled_shutdown(image, 1, SETTINGS))
    again = register_broker(image, request(2), CLUSTER, SETTINGS, previous_may_be_alive=True)
    assert again.response.error_code == 0
    decided(image, again)
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, False)


def test_a_process_registers_once() -> None:
    image = ClusterImage()
    epoch = start(image)
    again = register_broker(image, request(), CLUSTER, SETTINGS, previous_may_be_alive=True)
    assert (again.response.broker_epoch, list(again.records)) == (epoch, [])


def test_a_single_broker_leads_again_in_a_new_epoch_after_a_crash() -> None:
    image = cluster()
    with_topic(image, "t")
    first = partition(image)
    start(image, incarnation=2)
    state = partition(image)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), first.leader_epoch + 1)
    assert image.is_active(1)


def test_after_a_clean_stop_an_eligible_leader_leads_again() -> None:
    image = with_topic(cluster(), "t")
    decided(image, fence_brokers(image, [1], SETTINGS))
    state = partition(image)
    assert (state.leader, state.isr) == (-1, ())
    assert (state.eligible_leader_replicas, state.last_known_eligible_leader_replicas) == ((1,), (1,))
    assert fence_brokers(image, [1], SETTINGS).records == []
    start(image, incarnation=2)
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (1, (1,), ())
    assert state.last_known_eligible_leader_replicas == ()


def test_without_eligible_leaders_the_last_in_sync_replica_stays() -> None:
    image = with_topic(cluster(elr=False), "t")
    decided(image, fence_brokers(image, [1], SETTINGS))
    assert (partition(image).leader, partition(image).isr) == (-1, (1,))
    decided(image, unfence_broker(image, 1, SETTINGS))
    assert (partition(image).leader, partition(image).isr) == (1, (1,))
    assert unfence_broker(image, 1, SETTINGS).records == []


def test_an_in_sync_replica_replaces_a_fenced_leader() -> None:
    image = with_topic(cluster(3), "t", 1, 3)
    before = partition(image)
    decided(image, fence_brokers(image, [before.leader], SETTINGS))
    state = partition(image)
    assert state.leader == next(replica for replica in before.replicas if replica != before.leader)
    assert set(state.isr) == set(before.isr) - {before.leader}
    assert state.leader_epoch == before.leader_epoch + 1
    assert state.eligible_leader_replicas == ()


def test_replicas_that_leave_below_min_insync_stay_eligible() -> None:
    image = with_topic(cluster(3), "t", 1, 3, min_insync_replicas="2")
    first, second, third = partition(image).replicas
    decided(image, fence_brokers(image, [first], SETTINGS))
    assert partition(image).eligible_leader_replicas == ()
    decided(image, fence_brokers(image, [second], SETTINGS))
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (third, (third,), (second,))


def test_a_stopping_follower_does_not_change_the_leader_epoch() -> None:
    image = with_topic(cluster(2), "t", 1, 2)
    leader, follower = partition(image).replicas
    decided(image, fence_brokers(image, [follower], SETTINGS))
    state = partition(image)
    assert (state.leader, state.isr, state.leader_epoch) == (leader, (leader,), 0)


def test_a_returning_broker_does_not_lead_partitions_that_wait_for_another() -> None:
    image = with_topic(cluster(2), "t", 1, 2)
    topic_id = image.topics_by_name["t"].topic_id
    replayed(image, [PartitionChangeRecord(0, topic_id, isr=[], leader=-1, eligible_leader_replicas=[1])])
    decided(image, fence_brokers(image, [1, 2], SETTINGS))
    decided(image, unfence_broker(image, 2, SETTINGS))
    assert partition(image).leader == -1
    decided(image, unfence_broker(image, 1, SETTINGS))
    assert partition(image).leader == 1


def test_a_broker_is_unregistered() -> None:
    image = with_topic(cluster(2), "t", 1, 2)
    gone = partition(image).leader
    response = decided(image, unregister_broker(image, UnregisterBrokerRequest(gone), SETTINGS))
    assert (response.error_code, gone in image.brokers, partition(image).leader != gone) == (0, False, True)
    again = unregister_broker(image, UnregisterBrokerRequest(gone), SETTINGS)
    assert again.response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
