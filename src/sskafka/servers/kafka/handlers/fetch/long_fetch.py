"""Fetch requests that name hundreds of partitions or more: decoded in slices, so that others have their turn.

The decoder of all other Fetch requests (wire/fetch.py) is faster, but does everything in one turn of the event loop:
20,000 partitions kept all other clients waiting for 50 ms.
"""

from collections.abc import Generator

from sskafka.model.ids import METADATA_TOPIC_ID
from sskafka.servers.kafka.handlers.fetch.session import Target
from sskafka.servers.kafka.long_requests import LongRequest
from sskafka.wire.codec import decode_in_slices
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.fetch import REPLICA_STATE_FROM, TOPIC_ID_FROM, FetchRequestView
from sskafka.wire.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic

LONG_FETCH_BYTES = 16 * 1024


def decode_long_fetch(long: LongRequest) -> Generator[None, None, tuple[FetchRequestView, list[Target]]]:
    """Return the request without its topics, and the partitions that it names. Raise MalformedMessageError."""
    request: FetchRequest = yield from decode_in_slices(FetchRequest, long.version, long.frame, long.position)
    long.release_frame()
    replica_id, replica_epoch = request.replica_id, -1
    if long.version >= REPLICA_STATE_FROM:
        replica_id, replica_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    forgotten = []
    for topic in request.forgotten_topics_data:
        forgotten.append((_topic(topic, long.version), topic.partitions))
        yield
    targets = yield from _targets(request, long.version)
    view = FetchRequestView(
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
        replica_id,
        replica_epoch,
        [],
        forgotten,
        request.rack_id,
        request.cluster_id,
        {},
    )
    return view, targets


def _targets(request: FetchRequest, version: int) -> Generator[None, None, list[Target]]:
    targets = []
    for topic in request.topics:
        name = _topic(topic, version)
        if name == METADATA_TOPIC_ID:
            raise MalformedMessageError("a Fetch of the metadata log names no other partitions")
        for part in topic.partitions:
            targets.append(
                Target(
                    name,
                    part.partition,
                    part.current_leader_epoch,
                    part.fetch_offset,
                    part.last_fetched_epoch,
                    part.log_start_offset,
                    part.partition_max_bytes,
                )
            )
            yield
    return targets


def _topic(topic: FetchTopic | ForgottenTopic, version: int) -> str | bytes:
    return topic.topic_id if version >= TOPIC_ID_FROM else topic.topic
