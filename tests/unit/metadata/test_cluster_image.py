from metadata_clusters import cluster, replayed, with_topic

from sskafka.metadata.delta import ConfigResource, MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from sskafka.metadata.transactions import Replayer

ID = bytes(range(16))


def image_with_topic() -> ClusterImage:
    image = ClusterImage()
    replayed(image, [TopicRecord("t", ID), PartitionRecord(0, ID, [1, 2], [1, 2], leader=1, leader_epoch=0)])
    return image


def test_a_topic_appears_under_its_name_and_its_id() -> None:
    image = ClusterImage()
    delta = replayed(image, [TopicRecord("t", ID), PartitionRecord(0, ID, [1], [1]), PartitionRecord(1, ID, [1], [1])])
    assert image.topics_by_name["t"] is image.topics_by_id[ID]
    assert sorted(image.topics_by_name["t"].partitions) == [0, 1]
    assert delta.topics_created == {ID}
    assert list(delta.changed_partitions()) == [(ID, 0), (ID, 1)]


def test_epochs_move_with_what_changes() -> None:
    image = image_with_topic()
    replayed(image, [PartitionChangeRecord(0, ID, isr=[1])])
    state = image.topics_by_name["t"].partitions[0]
    assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((1,), 1, 0, 0)
    replayed(image, [PartitionChangeRecord(0, ID, leader=-1)])
    replayed(image, [PartitionChangeRecord(0, ID, leader=1)])
    state = image.topics_by_name["t"].partitions[0]
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 2, 2)


def test_replicas_that_stay_keep_their_directory() -> None:
    image = ClusterImage()
    first, second = bytes([1] * 16), bytes([2] * 16)
    replayed(image, [TopicRecord("t", ID), PartitionRecord(0, ID, [1, 2], [1, 2], directories=[first, second])])
    replayed(image, [PartitionChangeRecord(0, ID, replicas=[2, 3])])
    state = image.topics_by_name["t"].partitions[0]
    assert (state.directory_of(2), state.directory_of(3)) == (second, bytes(16))


def test_removing_a_topic_removes_its_configs() -> None:
    image = image_with_topic()
    replayed(image, [ConfigRecord(RESOURCE_TOPIC, "t", "retention.ms", "5")])
    delta = replayed(image, [RemoveTopicRecord(ID)])
    assert not image.topics_by_name
    assert not image.topics_by_id
    assert image.topic_configs("t") == {}
    assert delta.topics_deleted[ID].name == "t"


def test_a_topic_can_be_recreated_with_configs() -> None:
    image = image_with_topic()
    config = ConfigRecord(RESOURCE_TOPIC, "t", "retention.ms", "5")
    replayed(image, [config, RemoveTopicRecord(ID), TopicRecord("t", bytes(16)), config])
    assert image.topic_configs("t") == {"retention.ms": "5"}
    assert image.topics_by_name["t"].partitions == {}


def test_a_topic_created_and_deleted_within_one_delta_is_not_reported() -> None:
    image = ClusterImage()
    delta = replayed(image, [TopicRecord("t", ID), PartitionRecord(0, ID, [1], [1]), RemoveTopicRecord(ID)])
    assert delta == MetadataDelta()


def test_settings_are_set_and_removed() -> None:
    image = ClusterImage()
    replayed(image, [ConfigRecord(RESOURCE_BROKER, "", "log.retention.ms", "1")])
    replayed(image, [ConfigRecord(RESOURCE_BROKER, "3", "log.retention.ms", "2")])
    assert image.broker_default_configs() == {"log.retention.ms": "1"}
    assert image.broker_configs(3) == {"log.retention.ms": "2"}
    delta = replayed(image, [ConfigRecord(RESOURCE_BROKER, "", "log.retention.ms", None)])
    assert list(image.config_resources()) == [ConfigResource(RESOURCE_BROKER, "3")]
    assert delta.configs_changed == {ConfigResource(RESOURCE_BROKER, "")}


def test_brokers_are_fenced_and_unfenced_by_old_and_new_records() -> None:
    image = ClusterImage()
    replayed(image, [RegisterBrokerRecord(1, broker_epoch=4)])
    assert not image.is_active(1)
    replayed(image, [UnfenceBrokerRecord(1, 4)])
    assert image.is_active(1)
    replayed(image, [FenceBrokerRecord(1, 4)])
    assert not image.is_active(1)
    replayed(image, [BrokerRegistrationChangeRecord(1, 4, fenced=-1)])
    assert image.is_active(1)
    replayed(image, [BrokerRegistrationChangeRecord(1, 4, in_controlled_shutdown=1)])
    assert not image.is_active(1)
    delta = replayed(image, [UnregisterBrokerRecord(1, 4)])
    assert (image.brokers, delta.brokers_changed) == ({}, {1})


def test_features_producer_ids_and_controllers() -> None:
    image = ClusterImage()
    records = [FeatureLevelRecord("metadata.version", 20), FeatureLevelRecord("group.version", 1)]
    delta = replayed(image, [*records, ProducerIdsRecord(1, 4, 2000), RegisterControllerRecord(1)])
    assert (image.metadata_version, image.next_producer_id, list(image.controllers)) == (20, 2000, [1])
    assert delta.features_changed == {"metadata.version", "group.version"}
    replayed(image, [FeatureLevelRecord("group.version", 0)])
    assert image.features == {"metadata.version": 20}


def test_security_and_quotas() -> None:
    image = ClusterImage()
    user = [EntityData("user", "ann"), EntityData("client-id", None)]
    replayed(image, [ClientQuotaRecord(user, "producer_byte_rate", 5.0), UserScramCredentialRecord("ann", 1)])
    replayed(image, [DelegationTokenRecord(token_id="x"), AccessControlEntryRecord(ID)])
    assert image.client_quotas == {(("client-id", None), ("user", "ann")): {"producer_byte_rate": 5.0}}
    assert (list(image.scram_credentials), list(image.delegation_tokens)) == ([("ann", 1)], ["x"])
    replayed(image, [ClientQuotaRecord(user, "producer_byte_rate", remove=True)])
    replayed(image, [RemoveUserScramCredentialRecord("ann", 1), RemoveDelegationTokenRecord("x")])
    replayed(image, [RemoveAccessControlEntryRecord(ID)])
    left = [image.client_quotas, image.scram_credentials, image.delegation_tokens, image.access_control]
    assert left == [{}, {}, {}, {}]


def test_no_op_and_unknown_records_only_advance_the_offset() -> None:
    image = ClusterImage()
    delta = replayed(image, [NoOpRecord(), ZkMigrationStateRecord(), EntityData()])  # type: ignore[list-item]
    assert image.next_offset == 3
    assert delta.skipped == ["EntityData"]


def test_eligible_leaders_are_cleared_for_one_topic_or_for_all() -> None:
    image = image_with_topic()
    replayed(image, [PartitionChangeRecord(0, ID, eligible_leader_replicas=[2], last_known_elr=[1])])
    delta = replayed(image, [ClearElrRecord("")])
    assert image.topics_by_name["t"].partitions[0].eligible_leader_replicas == ()
    assert delta.partitions_changed == {ID: {0}}
    assert replayed(image, [ClearElrRecord("t")]).partitions_changed == {}


def test_a_fork_does_not_change_the_image() -> None:
    image = image_with_topic()
    replayed(image, [ConfigRecord(RESOURCE_TOPIC, "t", "retention.ms", "5"), RegisterBrokerRecord(1)])
    before = image.topics_by_name["t"].partitions[0]
    draft = image.fork()
    replayed(draft, [PartitionChangeRecord(0, ID, leader=2), PartitionRecord(1, ID, [1], [1])])
    replayed(draft, [ConfigRecord(RESOURCE_TOPIC, "t", "retention.ms", "6"), UnregisterBrokerRecord(1)])
    replayed(draft, [FeatureLevelRecord("x", 1), TopicRecord("u", bytes(16))])
    assert image.topics_by_name["t"].partitions == {0: before}
    assert image.topic_configs("t") == {"retention.ms": "5"}
    assert (list(image.brokers), image.features, list(image.topics_by_name)) == ([1], {}, ["t"])
    assert draft.topics_by_name["t"].partitions[0].leader == 2
    assert draft.topics_by_id[ID] is draft.topics_by_name["t"]


def test_transactions_are_applied_when_they_end_and_dropped_when_aborted() -> None:
    image = ClusterImage()
    replayer = Replayer(image, MetadataDelta())
    replayer.replay(BeginTransactionRecord("x"))
    replayer.replay(TopicRecord("aborted", ID))
    assert replayer.in_transaction
    replayer.replay(AbortTransactionRecord())
    replayer.replay(BeginTransactionRecord())
    replayer.replay(TopicRecord("t", ID))
    assert list(image.topics_by_name) == []
    replayer.replay(EndTransactionRecord())
    assert list(image.topics_by_name) == ["t"]
    assert not replayer.in_transaction


def test_the_delta_from_an_empty_image_contains_everything() -> None:
    image = with_topic(cluster(2), "t", 3, retention_ms="5")
    delta = MetadataDelta.from_empty(image)
    topic_id = image.topics_by_name["t"].topic_id
    assert delta.topics_created == {topic_id}
    assert delta.partitions_changed == {topic_id: {0, 1, 2}}
    assert delta.brokers_changed == {1, 2}
    assert delta.configs_changed == {ConfigResource(RESOURCE_TOPIC, "t")}
    assert "metadata.version" in delta.features_changed
