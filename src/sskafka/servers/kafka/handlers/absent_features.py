"""APIs of features that SSKafka does not have. They respond as Apache Kafka does while the feature is disabled.

    share.version 0     share groups are refused with UNSUPPORTED_VERSION; no broker coordinates their state
    streams.version 0   streams groups are refused with UNSUPPORTED_VERSION
    no metrics plugin   clients are not asked for telemetry

ApiVersions lists these APIs nevertheless, because clients infer the release of a broker from that list.
"""

import os
from collections.abc import Callable
from typing import Any
from zlib import crc32

from sskafka.model.error_texts import error_text
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.servers.kafka.refusals import element_class
from sskafka.servers.kafka.registry import MessageHandler
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from sskafka.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from sskafka.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

PUSH_INTERVAL_MS = 300_000
TELEMETRY_BYTES_MAX = 1_048_576
TELEMETRY_COMPRESSION_TYPES = [4, 3, 1, 2]  # zstd, lz4, gzip, snappy: the preferred one first


def _refusal(key: ApiKey, code: ErrorCode, **fields: object) -> MessageHandler[Any]:
    response_class = API_BY_KEY[key].response_class()
    return lambda message, request: response_class(error_code=code, **fields)


# --- groups -----------------------------------------------------------------------------------------


def _groups_refusal(key: ApiKey) -> Callable[[Any, Request], Any]:
    response_class = API_BY_KEY[key].response_class()
    group_class = element_class(response_class, "groups")

    def describe(message: Any, request: Request) -> Any:
        code = ErrorCode.UNSUPPORTED_VERSION
        return response_class(groups=[group_class(code, group_id=group_id) for group_id in message.group_ids])

    return describe


def describe_share_group_offsets(
    message: DescribeShareGroupOffsetsRequest, request: Request
) -> DescribeShareGroupOffsetsResponse:
    code = ErrorCode.UNSUPPORTED_VERSION
    return DescribeShareGroupOffsetsResponse(
        groups=[DescribeShareGroupOffsetsResponseGroup(group.group_id, error_code=code) for group in message.groups]
    )


def _share_state_refusal(key: ApiKey) -> Callable[[Any, Request], Any]:
    """Refuse every partition: no broker coordinates the state of share groups."""
    response_class = API_BY_KEY[key].response_class()
    result_class = element_class(response_class, "results")
    partition_class = element_class(result_class, "partitions")
    verb = key.name.replace("_", " ").lower()  # say "read share group state"
    text = f"Unable to {verb}: This is not the correct coordinator."

    def refuse(message: Any, request: Request) -> Any:
        return response_class(
            results=[
                result_class(
                    topic.topic_id,
                    [partition_class(item.partition, ErrorCode.NOT_COORDINATOR, text) for item in topic.partitions],
                )
                for topic in message.topics
            ]
        )

    return refuse


_UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION

share_group_heartbeat = _refusal(ApiKey.SHARE_GROUP_HEARTBEAT, _UNSUPPORTED)
share_group_describe = _groups_refusal(ApiKey.SHARE_GROUP_DESCRIBE)
share_fetch = _refusal(ApiKey.SHARE_FETCH, _UNSUPPORTED)
share_acknowledge = _refusal(ApiKey.SHARE_ACKNOWLEDGE, _UNSUPPORTED)
streams_group_heartbeat = _refusal(ApiKey.STREAMS_GROUP_HEARTBEAT, _UNSUPPORTED)
streams_group_describe = _groups_refusal(ApiKey.STREAMS_GROUP_DESCRIBE)
alter_share_group_offsets = _refusal(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS, _UNSUPPORTED, error_message=error_text(_UNSUPPORTED)
)
delete_share_group_offsets = _refusal(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS, _UNSUPPORTED, error_message=error_text(_UNSUPPORTED)
)
initialize_share_group_state = _share_state_refusal(ApiKey.INITIALIZE_SHARE_GROUP_STATE)
read_share_group_state = _share_state_refusal(ApiKey.READ_SHARE_GROUP_STATE)
write_share_group_state = _share_state_refusal(ApiKey.WRITE_SHARE_GROUP_STATE)
delete_share_group_state = _share_state_refusal(ApiKey.DELETE_SHARE_GROUP_STATE)
read_share_group_state_summary = _share_state_refusal(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY)


# --- telemetry --------------------------------------------------------------------------------------


def get_telemetry_subscriptions(
    message: GetTelemetrySubscriptionsRequest, request: Request
) -> GetTelemetrySubscriptionsResponse:
    """Return no subscription, so that the client pushes no metrics."""
    client = message.client_instance_id if message.client_instance_id != ZERO_UUID else os.urandom(16)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client,
        subscription_id=_subscription_id(client),
        accepted_compression_types=TELEMETRY_COMPRESSION_TYPES,
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=TELEMETRY_BYTES_MAX,
        delta_temporality=True,
    )


def push_telemetry(message: PushTelemetryRequest, request: Request) -> PushTelemetryResponse:
    client = message.client_instance_id
    if client == ZERO_UUID:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    if message.subscription_id != _subscription_id(client):
        return PushTelemetryResponse(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    return PushTelemetryResponse()


def _subscription_id(client_instance_id: bytes) -> int:
    return crc32(client_instance_id) >> 1
