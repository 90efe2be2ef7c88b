"""The state of the cluster according to the metadata log, up to one offset.

`replay` is the only way to change an image, and it is the same on controllers and brokers. A published image never
changes: `fork` returns a draft that shares all data with it, and copies a topic or the configs of a resource on the
first write.

Replay trusts the log, because decisions validated its records; a record that does not fit is a broken invariant.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.delta import ConfigResource, MetadataDelta
from sskafka.metadata.features import ELR_VERSION, LATEST_METADATA_VERSION, METADATA_VERSION
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
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
from sskafka.model.ids import Uuid

__all__ = ["ClusterImage", "PartitionImage", "TopicImage"]

QuotaEntity = tuple[tuple[str, str | None], ...]
K = TypeVar("K")


class TopicImage:
    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid, partitions: dict[int, PartitionImage] | None = None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions if partitions is not None else {}

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {len(self.partitions)} partitions)"


class ClusterImage:
    def __init__(self) -> None:
        self.next_offset = 0
        """Offset of the next record of the metadata log."""
        self.topics_by_name: dict[str, TopicImage] = {}
        self.topics_by_id: dict[Uuid, TopicImage] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.features: dict[str, int] = {}
        """Finalized feature levels."""
        self.next_producer_id = 0
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        """The same object until a quota changes; so is `access_control` until an ACL changes."""
        self.scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        self.access_control: dict[Uuid, AccessControlEntryRecord] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._own_topics: set[Uuid] = set()
        self._own_configs: set[ConfigResource] = set()
        self._owns_client_quotas = self._owns_access_control = True

    def fork(self) -> "ClusterImage":
        """Return a draft to replay records into; this image does not change."""
        draft = ClusterImage.__new__(ClusterImage)
        draft.next_offset = self.next_offset
        draft.topics_by_name = self.topics_by_name.copy()
        draft.topics_by_id = self.topics_by_id.copy()
        draft.brokers = self.brokers.copy()
        draft.controllers = self.controllers.copy()
        draft.features = self.features.copy()
        draft.next_producer_id = self.next_producer_id
        draft.client_quotas = self.client_quotas
        draft.scram_credentials = self.scram_credentials.copy()
        draft.delegation_tokens = self.delegation_tokens.copy()
        draft.access_control = self.access_control
        draft._configs = self._configs.copy()
        draft._own_topics = set()
        draft._own_configs = set()
        draft._owns_client_quotas = draft._owns_access_control = False
        return draft

    @property
    def metadata_version(self) -> int:
        """The finalized level. A log without one was written by SSKafka at its latest level."""
        return self.features.get(METADATA_VERSION, LATEST_METADATA_VERSION)

    @property
    def uses_eligible_leader_replicas(self) -> bool:
        return self.features.get(ELR_VERSION, 0) >= 1

    def partition(self, topic_name: str, partition: int) -> PartitionImage | None:
        topic = self.topics_by_name.get(topic_name)
        return topic.partitions.get(partition) if topic else None

    def configs(self, resource: ConfigResource) -> Mapping[str, str]:
        return self._configs.get(resource, {})

    def config_resources(self) -> Iterator[ConfigResource]:
        return iter(self._configs)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs(ConfigResource(RESOURCE_TOPIC, name))

    def broker_configs(self, broker_id: int) -> Mapping[str, str]:
        return self.configs(ConfigResource(RESOURCE_BROKER, str(broker_id)))

    def broker_default_configs(self) -> Mapping[str, str]:
        return self.configs(ConfigResource(RESOURCE_BROKER, ""))

    def active_brokers(self) -> list[BrokerRegistration]:
        return [broker for broker in self.brokers.values() if broker.is_active]

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        for topic in self.topics_by_name.values():
            for number, state in topic.partitions.items():
                yield topic, number, state

    def replay(self, record: MetadataRecord, delta: MetadataDelta) -> None:
        """Apply one record and add its changes to `delta`."""
        self.next_offset += 1
        match record:
            case TopicRecord():
                self._replay_topic(record, delta)
            case PartitionRecord():
                self._replay_partition(record, delta)
            case PartitionChangeRecord():
                self._replay_partition_change(record, delta)
            case RemoveTopicRecord():
                self._replay_remove_topic(record, delta)
            case ConfigRecord():
                self._replay_config(record, delta)
            case FeatureLevelRecord():
                self._replay_feature(record, delta)
            case ClearElrRecord():
                self._replay_clear_elr(record, delta)
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case NoOpRecord() | ZkMigrationStateRecord():
                pass
            case _:
                self._replay_node_or_security(record, delta)

    def _replay_node_or_security(self, record: MetadataRecord, delta: MetadataDelta) -> None:
        match record:
            case RegisterBrokerRecord():
                self._set_broker(BrokerRegistration.from_record(record), delta)
            case BrokerRegistrationChangeRecord():
                self._replay_registration_change(record, delta)
            case FenceBrokerRecord():
                change = BrokerRegistrationChangeRecord(record.id, record.epoch, fenced=1)
                self._replay_registration_change(change, delta)
            case UnfenceBrokerRecord():
                change = BrokerRegistrationChangeRecord(record.id, record.epoch, fenced=-1)
                self._replay_registration_change(change, delta)
            case UnregisterBrokerRecord():
                del self.brokers[record.broker_id]
                delta.brokers_changed.add(record.broker_id)
            case RegisterControllerRecord():
                self.controllers[record.controller_id] = record
            case _:
                self._replay_security(record, delta)

    def _replay_security(self, record: MetadataRecord, delta: MetadataDelta) -> None:
        match record:
            case ClientQuotaRecord():
                self._replay_client_quota(record)
            case UserScramCredentialRecord():
                self.scram_credentials[record.name, record.mechanism] = record
            case RemoveUserScramCredentialRecord():
                del self.scram_credentials[record.name, record.mechanism]
            case DelegationTokenRecord():
                self.delegation_tokens[record.token_id] = record
            case RemoveDelegationTokenRecord():
                del self.delegation_tokens[record.token_id]
            case AccessControlEntryRecord():
                self._own_access_control()[record.id] = record
            case RemoveAccessControlEntryRecord():
                del self._own_access_control()[record.id]
            case _:
                delta.skipped.append(type(record).__name__)

    def _replay_topic(self, record: TopicRecord, delta: MetadataDelta) -> None:
        topic = TopicImage(record.name, record.topic_id)
        self._put_topic(topic)
        delta.topics_created.add(topic.topic_id)

    def _replay_partition(self, record: PartitionRecord, delta: MetadataDelta) -> None:
        topic = self._own_topic(record.topic_id)
        topic.partitions[record.partition_id] = PartitionImage.from_record(record)
        delta.partition_changed(topic.topic_id, record.partition_id)

    def _replay_partition_change(self, record: PartitionChangeRecord, delta: MetadataDelta) -> None:
        topic = self._own_topic(record.topic_id)
        topic.partitions[record.partition_id] = topic.partitions[record.partition_id].changed_by(record)
        delta.partition_changed(topic.topic_id, record.partition_id)

    def _replay_remove_topic(self, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        del self.topics_by_name[topic.name]
        self._drop_configs(ConfigResource(RESOURCE_TOPIC, topic.name))
        delta.topic_deleted(topic)

    def _replay_config(self, record: ConfigRecord, delta: MetadataDelta) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = self._own_config(resource)
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if not configs:
            self._drop_configs(resource)
        delta.configs_changed.add(resource)

    def _replay_feature(self, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        delta.features_changed.add(record.name)

    def _replay_clear_elr(self, record: ClearElrRecord, delta: MetadataDelta) -> None:
        names = [record.topic_name] if record.topic_name else list(self.topics_by_name)
        cleared = PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
        for topic in [self._own_topic(self.topics_by_name[name].topic_id) for name in names]:
            for number, state in topic.partitions.items():
                if state.eligible_leader_replicas or state.last_known_eligible_leader_replicas:
                    topic.partitions[number] = state.changed_by(cleared)
                    delta.partition_changed(topic.topic_id, number)

    def _replay_registration_change(self, record: BrokerRegistrationChangeRecord, delta: MetadataDelta) -> None:
        broker = self.brokers[record.broker_id]
        assert broker.epoch == record.broker_epoch, f"{record} does not fit {broker}"
        self._set_broker(broker.changed_by(record), delta)

    def _set_broker(self, broker: BrokerRegistration, delta: MetadataDelta) -> None:
        self.brokers[broker.id] = broker
        delta.brokers_changed.add(broker.id)

    def _replay_client_quota(self, record: ClientQuotaRecord) -> None:
        entity = tuple(sorted((item.entity_type, item.entity_name) for item in record.entity))
        if not self._owns_client_quotas:
            self.client_quotas = {known: quotas.copy() for known, quotas in self.client_quotas.items()}
            self._owns_client_quotas = True
        quotas = self.client_quotas.setdefault(entity, {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self.client_quotas[entity]

    def _own_access_control(self) -> dict[Uuid, AccessControlEntryRecord]:
        """Return the ACLs for writing, copied first if a published image shares them."""
        if not self._owns_access_control:
            self.access_control = self.access_control.copy()
            self._owns_access_control = True
        return self.access_control

    def _own_topic(self, topic_id: Uuid) -> TopicImage:
        """Return the topic for writing, copied first if a published image shares it."""
        topic = self.topics_by_id[topic_id]
        if topic_id not in self._own_topics:
            topic = TopicImage(topic.name, topic.topic_id, topic.partitions.copy())
            self._put_topic(topic)
        return topic

    def _put_topic(self, topic: TopicImage) -> None:
        self.topics_by_name[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._own_topics.add(topic.topic_id)

    def _own_config(self, resource: ConfigResource) -> dict[str, str]:
        if resource not in self._own_configs:
            self._configs[resource] = dict(self._configs.get(resource, {}))
            self._own_configs.add(resource)
        return self._configs[resource]

    def _drop_configs(self, resource: ConfigResource) -> None:
        self._configs.pop(resource, None)
        self._own_configs.discard(resource)


def changes_between(old: ClusterImage, new: ClusterImage) -> MetadataDelta:
    """Return the delta between two images, for consumers of deltas that receive a snapshot instead."""
    delta = MetadataDelta(
        topics_created=set(new.topics_by_id) - set(old.topics_by_id),
        topics_deleted={
            topic_id: topic for topic_id, topic in old.topics_by_id.items() if topic_id not in new.topics_by_id
        },
        configs_changed={
            resource
            for resource in {*old.config_resources(), *new.config_resources()}
            if old.configs(resource) != new.configs(resource)
        },
        brokers_changed=_different(old.brokers, new.brokers),
        features_changed=_different(old.features, new.features),
    )
    for topic in new.topics_by_id.values():
        _note_partitions(old.topics_by_id.get(topic.topic_id), topic, delta)
    return delta


def _note_partitions(old: TopicImage | None, new: TopicImage, delta: MetadataDelta) -> None:
    known = old.partitions if old is not None else {}
    for number, state in new.partitions.items():
        if known.get(number) != state:
            delta.partition_changed(new.topic_id, number)


def _different(old: Mapping[K, object], new: Mapping[K, object]) -> set[K]:
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}
