"""The configs of topics. A topic without a config uses the broker's setting, which is named as the fallback."""

from sskafka.model.setting import (
    LONG_MAX,
    AtLeast,
    Between,
    BetweenOr,
    EachOf,
    Fallback,
    Importance,
    OneOf,
    Setting,
    Type,
    Update,
    Value,
)
from sskafka.model.settings_table.storage import SEGMENT_BYTES_MIN
from sskafka.model.settings_table.unsupported import tiered_storage, tiered_tuning

MEDIUM, DYNAMIC = Importance.MEDIUM, Update.CLUSTER_WIDE
INT, LONG, STRING, LIST, BOOLEAN, DOUBLE = Type.INT, Type.LONG, Type.STRING, Type.LIST, Type.BOOLEAN, Type.DOUBLE


class ThrottledReplicas:
    """`*`, or partition:broker pairs."""

    def allows(self, value: Value) -> bool:
        return isinstance(value, tuple) and (value == ("*",) or all(map(self._is_pair, value)))

    @staticmethod
    def _is_pair(text: str) -> bool:
        partition, _, broker = text.partition(":")
        return partition.isdecimal() and broker.isdecimal()

    def kafka_refusal(self, value: Value) -> str:
        return (
            "must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    def __str__(self) -> str:
        return "* or partition:broker pairs"


# fmt: off
TOPICS = (
    Setting("cleanup.policy", LIST, ("delete",), EachOf(("compact", "delete")), DYNAMIC, MEDIUM,
            "How old segments are cleaned up: deleted, compacted to the last record of each key, or both.",
            fallbacks=(Fallback("log.cleanup.policy"),)),
    Setting("compression.type", STRING, "producer",
            OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")), DYNAMIC, MEDIUM,
            "Compression of stored batches; producer: as the producer sent them.",
            fallbacks=(Fallback("compression.type"),)),
    Setting("compression.gzip.level", INT, -1, BetweenOr(1, 9, -1), DYNAMIC, MEDIUM,
            "gzip level if the broker compresses.", fallbacks=(Fallback("compression.gzip.level"),)),
    Setting("compression.lz4.level", INT, 9, Between(1, 17), DYNAMIC, MEDIUM,
            "lz4 level if the broker compresses.", fallbacks=(Fallback("compression.lz4.level"),)),
    Setting("compression.zstd.level", INT, 3, Between(-131072, 22), DYNAMIC, MEDIUM,
            "zstd level if the broker compresses.", fallbacks=(Fallback("compression.zstd.level"),)),
    Setting("delete.retention.ms", LONG, 86400000, AtLeast(0), DYNAMIC, MEDIUM,
            "How long a tombstone is kept in a compacted topic.",
            fallbacks=(Fallback("log.cleaner.delete.retention.ms"),)),
    Setting("file.delete.delay.ms", LONG, 60000, AtLeast(0), DYNAMIC, MEDIUM,
            "How long a removed segment file is kept under another name before it is deleted.",
            fallbacks=(Fallback("log.segment.delete.delay.ms"),)),
    Setting("flush.messages", LONG, LONG_MAX, AtLeast(1), DYNAMIC, MEDIUM,
            "Number of records after which the log is flushed to disk; 1: before every acknowledgement.",
            fallbacks=(Fallback("log.flush.interval.messages"),)),
    Setting("flush.ms", LONG, LONG_MAX, AtLeast(0), DYNAMIC, MEDIUM,
            "Maximum time after which records are flushed to disk.", fallbacks=(Fallback("log.flush.interval.ms"),)),
    Setting("follower.replication.throttled.replicas", LIST, (), ThrottledReplicas(), DYNAMIC, MEDIUM,
            "Replicas that are throttled as followers."),
    Setting("leader.replication.throttled.replicas", LIST, (), ThrottledReplicas(), DYNAMIC, MEDIUM,
            "Replicas that are throttled as leaders."),
    Setting("index.interval.bytes", INT, 4096, AtLeast(0), DYNAMIC, MEDIUM,
            "Number of bytes of the log between two entries of the offset index, at most 65536.",
            fallbacks=(Fallback("log.index.interval.bytes"),)),
    tiered_tuning("local.retention.bytes", LONG, -2, AtLeast(-2), DYNAMIC, MEDIUM,
            "Size of local segments in tiered storage; -2 follows retention.bytes.",
            fallbacks=(Fallback("log.local.retention.bytes"),)),
    tiered_tuning("local.retention.ms", LONG, -2, AtLeast(-2), DYNAMIC, MEDIUM,
            "Age of local segments in tiered storage; -2 follows retention.ms.",
            fallbacks=(Fallback("log.local.retention.ms"),)),
    Setting("max.compaction.lag.ms", LONG, LONG_MAX, AtLeast(1), DYNAMIC, MEDIUM,
            "Maximum age at which a record becomes due for compaction.",
            fallbacks=(Fallback("log.cleaner.max.compaction.lag.ms"),)),
    Setting("max.message.bytes", INT, 1048588, AtLeast(0), DYNAMIC, MEDIUM,
            "Maximum size of a record batch, after compression.", fallbacks=(Fallback("message.max.bytes"),)),
    Setting("message.timestamp.after.max.ms", LONG, 3600000, AtLeast(0), DYNAMIC, MEDIUM,
            "How far the timestamp of a record may be in the future.",
            fallbacks=(Fallback("log.message.timestamp.after.max.ms"),)),
    Setting("message.timestamp.before.max.ms", LONG, LONG_MAX, AtLeast(0), DYNAMIC, MEDIUM,
            "How far the timestamp of a record may be in the past.",
            fallbacks=(Fallback("log.message.timestamp.before.max.ms"),)),
    Setting("message.timestamp.type", STRING, "CreateTime", OneOf(("CreateTime", "LogAppendTime")), DYNAMIC, MEDIUM,
            "Whether records keep the timestamp of the producer (CreateTime) or get the time of the append "
            "(LogAppendTime).",
            fallbacks=(Fallback("log.message.timestamp.type"),)),
    Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, Between(0, 1), DYNAMIC, MEDIUM,
            "Minimum ratio of dirty bytes to all bytes at which the log is compacted.",
            fallbacks=(Fallback("log.cleaner.min.cleanable.ratio"),)),
    Setting("min.compaction.lag.ms", LONG, 0, AtLeast(0), DYNAMIC, MEDIUM,
            "Minimum age at which a record may be removed by compaction.",
            fallbacks=(Fallback("log.cleaner.min.compaction.lag.ms"),)),
    Setting("min.insync.replicas", INT, 1, AtLeast(1), DYNAMIC, MEDIUM,
            "Minimum number of in-sync replicas that must have a record before a producer with acks=all gets its "
            "response.",
            fallbacks=(Fallback("min.insync.replicas"),)),
    Setting("preallocate", BOOLEAN, False, None, DYNAMIC, MEDIUM,
            "Whether a new segment file is preallocated.", fallbacks=(Fallback("log.preallocate"),)),
    tiered_tuning("remote.log.copy.disable", BOOLEAN, False, None, DYNAMIC, MEDIUM,
            "Whether copying of new segments of the topic to tiered storage is disabled."),
    tiered_tuning("remote.log.delete.on.disable", BOOLEAN, False, None, DYNAMIC, MEDIUM,
            "Whether tiered data is deleted when tiered storage is disabled for the topic."),
    tiered_storage("remote.storage.enable", BOOLEAN, False, None, DYNAMIC, MEDIUM,
            "Whether the topic uses tiered storage."),
    Setting("retention.bytes", LONG, -1, AtLeast(-1), DYNAMIC, MEDIUM,
            "Size of a partition above which its oldest segments are deleted; -1: no limit.",
            fallbacks=(Fallback("log.retention.bytes"),)),
    Setting("retention.ms", LONG, 604800000, AtLeast(-1), DYNAMIC, MEDIUM,
            "Age at which records may be deleted; -1: never.", fallbacks=(Fallback("log.retention.ms"),)),
    Setting("segment.bytes", INT, 1073741824, AtLeast(SEGMENT_BYTES_MIN), DYNAMIC, MEDIUM,
            "Size at which a log rolls a new segment.", fallbacks=(Fallback("log.segment.bytes"),)),
    Setting("internal.segment.bytes", INT, None, AtLeast(SEGMENT_BYTES_MIN), DYNAMIC, MEDIUM,
            "Size at which a log rolls a new segment, for tests: it may be smaller than Apache Kafka allows for "
            "segment.bytes.", hidden_while_unset=True),
    Setting("segment.index.bytes", INT, 10485760, AtLeast(4), DYNAMIC, MEDIUM,
            "Maximum size of an index file; a full index rolls a new segment.",
            fallbacks=(Fallback("log.index.size.max.bytes"),)),
    Setting("segment.jitter.ms", LONG, 0, AtLeast(0), DYNAMIC, MEDIUM,
            "Maximum random time that is subtracted from segment.ms, so that partitions do not all roll at the same "
            "time.",
            fallbacks=(Fallback("log.roll.jitter.ms"),)),
    Setting("segment.ms", LONG, 604800000, AtLeast(1), DYNAMIC, MEDIUM,
            "Age at which a log rolls a new segment, even if the active segment is not full.",
            fallbacks=(Fallback("log.roll.ms"),)),
    Setting("unclean.leader.election.enable", BOOLEAN, False, None, DYNAMIC, MEDIUM,
            "Whether a replica that is not in sync may become leader if no other replica can. Records may be lost.",
            fallbacks=(Fallback("unclean.leader.election.enable"),)),
)
