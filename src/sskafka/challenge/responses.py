"""Grammars of the responses; the names are those of Kafka's protocol descriptions."""

from sskafka.challenge.grammar import (
    BOOLEAN,
    COMPACT_NULLABLE_STRING,
    COMPACT_RECORDS,
    COMPACT_STRING,
    INT16,
    INT32,
    INT64,
    TAG_BUFFER,
    UUID,
    Array,
    Fields,
    Nullable,
)

CORRELATION_ID = Fields(correlation_id=INT32)

# ApiVersions keeps response header v0, because the client does not know yet which versions the broker supports.
_LISTED_API = Fields(api_key=INT16, min_version=INT16, max_version=INT16)
API_VERSIONS_V0 = Fields(
    correlation_id=INT32,
    error_code=INT16,
    api_keys=Array(_LISTED_API, is_compact=False),
)
API_VERSIONS_V4 = Fields(
    correlation_id=INT32,
    error_code=INT16,
    api_keys=Array(Fields(api_key=INT16, min_version=INT16, max_version=INT16, tags=TAG_BUFFER)),
    throttle_time_ms=INT32,
    tags=TAG_BUFFER,
)
ERROR_CODE = Fields(correlation_id=INT32, error_code=INT16)

_CURSOR = Fields(topic_name=COMPACT_STRING, partition_index=INT32, tags=TAG_BUFFER)
_DESCRIBED_PARTITION = Fields(
    error_code=INT16,
    partition_index=INT32,
    leader_id=INT32,
    leader_epoch=INT32,
    replica_nodes=Array(INT32),
    isr_nodes=Array(INT32),
    eligible_leader_replicas=Array(INT32),
    last_known_elr=Array(INT32),
    offline_replicas=Array(INT32),
    tags=TAG_BUFFER,
)
_DESCRIBED_TOPIC = Fields(
    error_code=INT16,
    name=COMPACT_NULLABLE_STRING,
    topic_id=UUID,
    is_internal=BOOLEAN,
    partitions=Array(_DESCRIBED_PARTITION),
    topic_authorized_operations=INT32,
    tags=TAG_BUFFER,
)
DESCRIBE_TOPIC_PARTITIONS_V0 = Fields(
    correlation_id=INT32,
    header_tags=TAG_BUFFER,
    throttle_time_ms=INT32,
    topics=Array(_DESCRIBED_TOPIC),
    next_cursor=Nullable(_CURSOR),
    tags=TAG_BUFFER,
)

_FETCHED_PARTITION = Fields(
    partition_index=INT32,
    error_code=INT16,
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=INT64,
    aborted_transactions=Array(Fields(producer_id=INT64, first_offset=INT64, tags=TAG_BUFFER)),
    preferred_read_replica=INT32,
    records=COMPACT_RECORDS,
    tags=TAG_BUFFER,
)
FETCH_V16 = Fields(
    correlation_id=INT32,
    header_tags=TAG_BUFFER,
    throttle_time_ms=INT32,
    error_code=INT16,
    session_id=INT32,
    responses=Array(Fields(topic_id=UUID, partitions=Array(_FETCHED_PARTITION), tags=TAG_BUFFER)),
    tags=TAG_BUFFER,
)

_PRODUCED_PARTITION = Fields(
    index=INT32,
    error_code=INT16,
    base_offset=INT64,
    log_append_time_ms=INT64,
    log_start_offset=INT64,
    record_errors=Array(Fields(batch_index=INT32, error_message=COMPACT_NULLABLE_STRING, tags=TAG_BUFFER)),
    error_message=COMPACT_NULLABLE_STRING,
    tags=TAG_BUFFER,
)
PRODUCE_V11 = Fields(
    correlation_id=INT32,
    header_tags=TAG_BUFFER,
    responses=Array(Fields(name=COMPACT_STRING, partition_responses=Array(_PRODUCED_PARTITION), tags=TAG_BUFFER)),
    throttle_time_ms=INT32,
    tags=TAG_BUFFER,
)
