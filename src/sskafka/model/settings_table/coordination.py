"""Consumer groups, their offsets, share and streams groups, transactions."""

from sskafka.model.setting import (
    INT_MAX,
    AtLeast,
    Between,
    EachOf,
    Importance,
    OneOf,
    Setting,
    Type,
    Update,
    Value,
)
from sskafka.model.settings_table.unsupported import buffers, share_groups, share_state, streams_groups, threads

INT, SHORT, LONG, STRING, LIST, BOOLEAN = Type.INT, Type.SHORT, Type.LONG, Type.STRING, Type.LIST, Type.BOOLEAN
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, CLUSTER_WIDE = Update.READ_ONLY, Update.CLUSTER_WIDE

ASSIGNOR_CLASSES = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ("uniform", "range")
}
"""Class names of Apache Kafka's assignors, which are accepted too."""


class Assignors:
    """A list of at least one assignor without duplicates."""

    def allows(self, value: Value) -> bool:
        names = [ASSIGNOR_CLASSES.get(item, item) for item in value] if isinstance(value, tuple) else []
        return bool(names) and len(set(names)) == len(names) and set(names) <= set(ASSIGNOR_CLASSES.values())

    def kafka_refusal(self, value: Value) -> str:
        return f"Assignors must be among: {', '.join(ASSIGNOR_CLASSES.values())}"

    def __str__(self) -> str:
        return "uniform, range or both; custom assignors cannot be loaded"


class AnyCaseOf(OneOf):
    """As `OneOf`, in capital or small letters."""

    def allows(self, value: Value) -> bool:
        return isinstance(value, str) and value.lower() in self.choices


# fmt: off
GROUPS = (
    Setting("group.min.session.timeout.ms", INT, 6000, None, READ_ONLY, MEDIUM,
            "Minimum session timeout of members of classic groups."),
    Setting("group.max.session.timeout.ms", INT, 1800000, None, READ_ONLY, MEDIUM,
            "Maximum session timeout of members of classic groups."),
    Setting("group.initial.rebalance.delay.ms", INT, 3000, None, READ_ONLY, MEDIUM,
            "How long a new classic group waits for further members before its first rebalance completes."),
    Setting("group.max.size", INT, INT_MAX, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum number of members of a classic group."),
    Setting("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"),
            EachOf(("consumer", "classic", "share", "streams")), READ_ONLY, MEDIUM,
            "Rebalance protocols that are served: classic is required, share is refused, streams has no effect."),
    threads("group.coordinator.threads", INT, 4, AtLeast(1), READ_ONLY, HIGH,
            "Number of threads of the group coordinator in Apache Kafka."),
    threads("group.coordinator.background.threads", INT, 2, AtLeast(1), READ_ONLY, HIGH,
            "Number of background threads of the group coordinator in Apache Kafka."),
    Setting("group.coordinator.append.linger.ms", INT, -1, AtLeast(-1), READ_ONLY, MEDIUM,
            "How long changes of groups are collected before they are appended in one batch; 0: each change has a "
            "batch of its own; -1: changes that arrive together share one."),
    buffers("group.coordinator.cached.buffer.max.bytes", INT, 1048588, AtLeast(524288), CLUSTER_WIDE, MEDIUM,
            "Maximum size of a write buffer that is kept for reuse."),
    Setting("group.consumer.session.timeout.ms", INT, 45000, AtLeast(1), READ_ONLY, MEDIUM,
            "A consumer that sends no heartbeat for this long is removed from its group."),
    Setting("group.consumer.min.session.timeout.ms", INT, 45000, AtLeast(1), READ_ONLY, MEDIUM,
            "Minimum of the group config consumer.session.timeout.ms."),
    Setting("group.consumer.max.session.timeout.ms", INT, 60000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum of the group config consumer.session.timeout.ms."),
    Setting("group.consumer.heartbeat.interval.ms", INT, 5000, AtLeast(1), READ_ONLY, MEDIUM,
            "Heartbeat interval of consumers."),
    Setting("group.consumer.min.heartbeat.interval.ms", INT, 5000, AtLeast(1), READ_ONLY, MEDIUM,
            "Minimum of the group config consumer.heartbeat.interval.ms."),
    Setting("group.consumer.max.heartbeat.interval.ms", INT, 15000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum of the group config consumer.heartbeat.interval.ms."),
    Setting("group.consumer.assignment.interval.ms", INT, 1000, AtLeast(0), CLUSTER_WIDE, MEDIUM,
            "Minimum time between two target assignments of a consumer group."),
    Setting("group.consumer.min.assignment.interval.ms", INT, 0, AtLeast(0), READ_ONLY, MEDIUM,
            "Minimum of the group config consumer.assignment.interval.ms."),
    Setting("group.consumer.max.assignment.interval.ms", INT, 15000, AtLeast(0), READ_ONLY, MEDIUM,
            "Maximum of the group config consumer.assignment.interval.ms."),
    Setting("group.consumer.max.size", INT, INT_MAX, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum number of members of a consumer group."),
    Setting("group.consumer.assignors", LIST, ("uniform", "range"), Assignors(), READ_ONLY, MEDIUM,
            "Assignors, the default first; the class names of Apache Kafka are accepted, too."),
    Setting("group.consumer.migration.policy", STRING, "bidirectional",
            AnyCaseOf(("disabled", "downgrade", "upgrade", "bidirectional")), READ_ONLY, MEDIUM,
            "Whether groups may be converted between the classic and the consumer protocol."),
    share_groups("group.share.session.timeout.ms", INT, 45000, AtLeast(1), READ_ONLY, MEDIUM,
            "A member that sends no heartbeat for this long is removed from its share group."),
    share_groups("group.share.min.session.timeout.ms", INT, 45000, AtLeast(1), READ_ONLY, MEDIUM,
            "Minimum of the group config share.session.timeout.ms."),
    share_groups("group.share.max.session.timeout.ms", INT, 60000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum of the group config share.session.timeout.ms."),
    share_groups("group.share.heartbeat.interval.ms", INT, 5000, AtLeast(1), READ_ONLY, MEDIUM,
            "Heartbeat interval of members of share groups."),
    share_groups("group.share.min.heartbeat.interval.ms", INT, 5000, AtLeast(1), READ_ONLY, MEDIUM,
            "Minimum of the group config share.heartbeat.interval.ms."),
    share_groups("group.share.max.heartbeat.interval.ms", INT, 15000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum of the group config share.heartbeat.interval.ms."),
    share_groups("group.share.assignment.interval.ms", INT, 1000, AtLeast(0), CLUSTER_WIDE, MEDIUM,
            "Minimum time between two target assignments of a share group."),
    share_groups("group.share.min.assignment.interval.ms", INT, 0, AtLeast(0), READ_ONLY, MEDIUM,
            "Minimum of the group config share.assignment.interval.ms."),
    share_groups("group.share.max.assignment.interval.ms", INT, 15000, AtLeast(0), READ_ONLY, MEDIUM,
            "Maximum of the group config share.assignment.interval.ms."),
    share_groups("group.share.max.size", INT, 200, Between(1, 1000), READ_ONLY, MEDIUM,
            "Maximum number of members of a share group."),
    share_groups("group.share.assignors", LIST, ("simple",), None, READ_ONLY, MEDIUM,
            "Assignors of share groups."),
    share_groups("group.share.delivery.count.limit", INT, 5, Between(2, 10), READ_ONLY, MEDIUM,
            "Maximum number of deliveries of a record to a share group."),
    share_groups("group.share.min.delivery.count.limit", INT, 2, Between(2, 5), READ_ONLY, MEDIUM,
            "Minimum of the group config share.delivery.count.limit."),
    share_groups("group.share.max.delivery.count.limit", INT, 10, Between(5, 25), READ_ONLY, MEDIUM,
            "Maximum of the group config share.delivery.count.limit."),
    share_groups("group.share.record.lock.duration.ms", INT, 30000, Between(1000, 3600000), READ_ONLY, MEDIUM,
            "How long a member holds the lock of a record that it acquired."),
    share_groups("group.share.min.record.lock.duration.ms", INT, 15000, Between(1000, 30000), READ_ONLY, MEDIUM,
            "Minimum of the group config share.record.lock.duration.ms."),
    share_groups("group.share.max.record.lock.duration.ms", INT, 60000, Between(30000, 3600000), READ_ONLY, MEDIUM,
            "Maximum of the group config share.record.lock.duration.ms."),
    share_groups("group.share.partition.max.record.locks", INT, 2000, Between(100, 10000), READ_ONLY, MEDIUM,
            "Maximum number of records of a partition that are locked at the same time."),
    share_groups("group.share.min.partition.max.record.locks", INT, 100, Between(100, 2000), READ_ONLY, MEDIUM,
            "Minimum of the group config share.partition.max.record.locks."),
    share_groups("group.share.max.partition.max.record.locks", INT, 4000, Between(2000, 10000), READ_ONLY, MEDIUM,
            "Maximum of the group config share.partition.max.record.locks."),
    share_groups("group.share.max.share.sessions", INT, 2000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum number of share sessions."),
    streams_groups("group.streams.session.timeout.ms", INT, 45000, AtLeast(1), READ_ONLY, MEDIUM,
            "A member that sends no heartbeat for this long is removed from its streams group."),
    streams_groups("group.streams.min.session.timeout.ms", INT, 45000, AtLeast(1), READ_ONLY, MEDIUM,
            "Minimum of the group config streams.session.timeout.ms."),
    streams_groups("group.streams.max.session.timeout.ms", INT, 60000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum of the group config streams.session.timeout.ms."),
    streams_groups("group.streams.heartbeat.interval.ms", INT, 5000, AtLeast(1), READ_ONLY, MEDIUM,
            "Heartbeat interval of members of streams groups."),
    streams_groups("group.streams.min.heartbeat.interval.ms", INT, 5000, AtLeast(1), READ_ONLY, MEDIUM,
            "Minimum of the group config streams.heartbeat.interval.ms."),
    streams_groups("group.streams.max.heartbeat.interval.ms", INT, 15000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum of the group config streams.heartbeat.interval.ms."),
    streams_groups("group.streams.assignment.interval.ms", INT, 1000, AtLeast(0), CLUSTER_WIDE, MEDIUM,
            "Minimum time between two target assignments of a streams group."),
    streams_groups("group.streams.min.assignment.interval.ms", INT, 0, AtLeast(0), READ_ONLY, MEDIUM,
            "Minimum of the group config streams.assignment.interval.ms."),
    streams_groups("group.streams.max.assignment.interval.ms", INT, 15000, AtLeast(0), READ_ONLY, MEDIUM,
            "Maximum of the group config streams.assignment.interval.ms."),
    streams_groups("group.streams.initial.rebalance.delay.ms", INT, 3000, AtLeast(0), READ_ONLY, MEDIUM,
            "How long a new streams group waits for further members before its first assignment."),
    streams_groups("group.streams.max.size", INT, INT_MAX, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum number of members of a streams group."),
    streams_groups("group.streams.num.standby.replicas", INT, 0, AtLeast(0), READ_ONLY, MEDIUM,
            "Number of standby replicas of each task of a streams group."),
    streams_groups("group.streams.max.standby.replicas", INT, 2, AtLeast(0), READ_ONLY, MEDIUM,
            "Maximum of the group config streams.num.standby.replicas."),
    Setting("offsets.topic.num.partitions", INT, 50, AtLeast(1), READ_ONLY, HIGH,
            "Number of partitions of __consumer_offsets when it is created."),
    Setting("offsets.topic.replication.factor", SHORT, 3, AtLeast(1), READ_ONLY, HIGH,
            "Replication factor of __consumer_offsets when it is created, limited to the number of brokers."),
    Setting("offsets.topic.segment.bytes", INT, 104857600, AtLeast(1), READ_ONLY, HIGH,
            "Segment size of __consumer_offsets."),
    Setting("offsets.topic.compression.codec", INT, 0, Between(0, 4), READ_ONLY, HIGH,
            "Compression of new batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."),
    Setting("offsets.load.buffer.size", INT, 5242880, AtLeast(1), READ_ONLY, HIGH,
            "Number of bytes per read while a coordinator loads groups from the log."),
    Setting("offsets.commit.timeout.ms", INT, 5000, AtLeast(1), READ_ONLY, HIGH,
            "Maximum time for which an offset commit waits for the replicas."),
    Setting("offsets.retention.minutes", INT, 10080, AtLeast(1), READ_ONLY, HIGH,
            "How long the committed offsets of a group without members are kept."),
    Setting("offsets.retention.check.interval.ms", LONG, 600000, AtLeast(1), READ_ONLY, HIGH,
            "How often the coordinator checks for expired offsets."),
    Setting("offset.metadata.max.bytes", INT, 4096, None, READ_ONLY, HIGH,
            "Maximum size of the metadata of a committed offset."),
)

TRANSACTIONS = (
    Setting("transaction.max.timeout.ms", INT, 900000, AtLeast(1), READ_ONLY, HIGH,
            "Maximum transaction timeout that a producer may request."),
    Setting("transactional.id.expiration.ms", INT, 604800000, AtLeast(1), READ_ONLY, HIGH,
            "How long the coordinator keeps a transactional id that is not used."),
    Setting("transaction.state.log.num.partitions", INT, 50, AtLeast(1), READ_ONLY, HIGH,
            "Number of partitions of __transaction_state when it is created."),
    Setting("transaction.state.log.replication.factor", SHORT, 3, AtLeast(1), READ_ONLY, HIGH,
            "Replication factor of __transaction_state when it is created, limited to the number of brokers."),
    Setting("transaction.state.log.min.isr", INT, 2, AtLeast(1), READ_ONLY, HIGH,
            "min.insync.replicas of __transaction_state."),
    Setting("transaction.state.log.segment.bytes", INT, 104857600, AtLeast(1), READ_ONLY, HIGH,
            "Segment size of __transaction_state."),
    Setting("transaction.state.log.load.buffer.size", INT, 5242880, AtLeast(1), READ_ONLY, HIGH,
            "Number of bytes per read while a coordinator loads transactions from the log."),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000, AtLeast(1), READ_ONLY, LOW,
            "How often the coordinator checks for transactions that have timed out."),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3600000, AtLeast(1), READ_ONLY, LOW,
            "How often the coordinator checks for expired transactional ids."),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, None, CLUSTER_WIDE, LOW,
            "Whether the leader of a partition asks the coordinator whether a transaction is open before it appends "
            "the first batch."),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, None, READ_ONLY, LOW,
            "Whether producers may take part in two-phase commits: their transactions have no timeout (KIP-939)."),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, AtLeast(1), READ_ONLY, HIGH,
            "Delay before the broker tries again to add a partition to a transaction."),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, AtLeast(0), READ_ONLY, HIGH,
            "Maximum time for which the broker tries to add a partition to a transaction."),
    share_state("share.coordinator.state.topic.num.partitions", INT, 50, AtLeast(1), READ_ONLY, HIGH,
            "Number of partitions of __share_group_state when it is created."),
    share_state("share.coordinator.state.topic.replication.factor", SHORT, 3, AtLeast(1), READ_ONLY, HIGH,
            "Replication factor of __share_group_state when it is created."),
    share_state("share.coordinator.state.topic.min.isr", SHORT, 2, AtLeast(1), READ_ONLY, HIGH,
            "min.insync.replicas of __share_group_state."),
    share_state("share.coordinator.state.topic.segment.bytes", INT, 104857600, AtLeast(1), READ_ONLY, HIGH,
            "Segment size of __share_group_state."),
    share_state("share.coordinator.append.linger.ms", INT, -1, AtLeast(-1), READ_ONLY, MEDIUM,
            "How long changes of share groups are collected before they are appended in one batch; -1: adapts to the "
            "load."),
    share_state("share.coordinator.cached.buffer.max.bytes", INT, 1048588, AtLeast(524288), CLUSTER_WIDE, MEDIUM,
            "Maximum size of a write buffer that is kept for reuse."),
    share_state("share.coordinator.load.buffer.size", INT, 5242880, AtLeast(1), READ_ONLY, HIGH,
            "Number of bytes per read while the state of share groups is loaded."),
    share_state("share.coordinator.snapshot.update.records.per.snapshot", INT, 500, AtLeast(0), READ_ONLY, MEDIUM,
            "Number of updates of the state of a share group between two snapshots."),
    share_state("share.coordinator.state.topic.compression.codec", INT, 0, None, READ_ONLY, HIGH,
            "Compression codec of __share_group_state, by its number."),
    share_state("share.coordinator.threads", INT, 1, AtLeast(1), READ_ONLY, MEDIUM,
            "Number of threads of the share coordinator in Apache Kafka."),
    share_state("share.coordinator.write.timeout.ms", INT, 5000, AtLeast(1), READ_ONLY, HIGH,
            "Maximum time for which a change of the state of a share group waits for the replicas."),
)
