"""A raw connection to a broker: what the client libraries would hide.

It sends frames in any order and number and reads answers one by one; requests that tests use often have a function.
"""

import socket
import struct
from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

from waiting import wait_until

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import HEADER_BYTES, read_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.record import Record, decode_records
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import decode_response_header, encode_request_header
from sskafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from sskafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

TIMEOUT_S = 15
PRODUCE_VERSION = 9
FETCH_VERSION = 12


class Connection:
    """One TCP connection. Reading from it fails after TIMEOUT_S, so that a broker that hangs fails the test."""

    def __init__(self, bootstrap: str, client_id: str = "raw") -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._client_id = client_id
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._correlation_ids = count(1)
        self._asked: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, message: Any, version: int) -> int:
        """Sends a request and returns its correlation id."""
        return self.send_body(message.SCHEMA.key, version, encode(message, version))

    def send_body(self, api_key: int, version: int, body: bytes) -> int:
        correlation_id = next(self._correlation_ids)
        self._asked[correlation_id] = api_key, version
        self.send_frame(encode_request_header(api_key, version, correlation_id, self._client_id) + body)
        return correlation_id

    def send_frame(self, content: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(content)) + content)

    def receive(self) -> tuple[int, Any]:
        """The next answer: the correlation id of its request, and the message."""
        frame = self.receive_frame()
        assert frame is not None, "the broker closed the connection"
        (correlation_id,) = struct.unpack_from(">i", frame)
        api_key, version = self._asked.pop(correlation_id)
        _, position = decode_response_header(api_key, version, frame)
        return correlation_id, decode(API_BY_KEY[api_key].response_class(), version, frame, position)

    def receive_frame(self) -> bytes | None:
        """The next frame without its size, or None when the broker has closed the connection."""
        size = self._receive_exactly(4)
        return None if size is None else self._receive_exactly(struct.unpack(">i", size)[0])

    def is_closed_by_broker(self) -> bool:
        """Waits for the end of the connection; anything else that arrives is an answer, and so a no."""
        return self.receive_frame() is None

    def call(self, message: Any, version: int) -> Any:
        correlation_id = self.send(message, version)
        answered, response = self.receive()
        assert answered == correlation_id
        return response

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> bytes:
        """Creates the topic (keywords are its settings, with _ for .) and returns its id once it is usable."""
        settings = [CreatableTopicConfig(key.replace("_", "."), str(value)) for key, value in configs.items()]
        wanted = CreatableTopic(name, num_partitions=partitions, replication_factor=1, configs=settings)
        (result,) = self.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            # A test that failed runs once more in CI, and the first attempt has left its topic on the shared broker.
            self.delete_topic(name)
            (result,) = self.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        assert result.error_code == 0, result
        for partition in range(partitions):
            wait_until(lambda p=partition: self.fetch(name, partition=p).error_code == 0, f"{name} has leaders")
        return bytes(result.topic_id)

    def delete_topic(self, name: str) -> None:
        """Deletes the topic and returns once the broker no longer knows it."""
        (result,) = self.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), version=5).responses
        assert result.error_code == 0, result
        wait_until(
            lambda: self.topic_metadata(name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is deleted"
        )

    def topic_metadata(self, name: str, *, create: bool = False) -> Any:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
        return self.call(request, version=12).topics[0]

    def auto_create_topic(self, name: str) -> Any:
        """Asks for the topic, as clients do, until it has been created; returns its description."""
        described: list[Any] = []

        def is_created() -> bool:
            described[:] = [self.topic_metadata(name, create=True)]
            return bool(described[0].error_code == 0)

        wait_until(is_created, f"{name} is created")
        return described[0]

    def produce(self, topic: str, batch: bytes, partition: int = 0, acks: int = -1) -> PartitionProduceResponse:
        response = self.call(produce_request(topic, batch, partition, acks), PRODUCE_VERSION)
        return response.responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int = 0, partition: int = 0, **options: int) -> PartitionData:
        response = self.call(fetch_request(topic, offset, partition, **options), FETCH_VERSION)
        return response.responses[0].partitions[0]

    def _receive_exactly(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(size - len(parts))
            except ConnectionResetError:
                return None
            if not part:
                return None
            parts += part
        return bytes(parts)


def values_batch(*values: bytes | None, **options: Any) -> bytearray:
    """A batch of records without keys; `options` are those of build_batch."""
    return build_batch([NewRecord(value=value, timestamp=1_700_000_000_000) for value in values], **options)


def produce_request(topic: str, batch: bytes, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(partition, batch)])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])


def fetch_request(
    topic: str,
    offset: int = 0,
    partition: int = 0,
    *,
    partition_max_bytes: int = 1 << 20,
    max_bytes: int = 1 << 24,
    min_bytes: int = 1,
    max_wait_ms: int = 0,
    **options: int,
) -> FetchRequest:
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
        **options,
    )


def records_in(data: PartitionData) -> list[Record]:
    """The records of a fetched partition, also those before the offset that was asked for.

    The last batch may be cut off by the limit of bytes; clients pass over it, and so does this.
    """
    assert data.error_code == 0, data
    buffer, position, records = memoryview(data.records or b""), 0, []
    while len(buffer) - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        if header.size_bytes > len(buffer) - position:
            break
        records += decode_records(buffer, header, position)
        position += header.size_bytes
    return records


def values_in(data: PartitionData) -> Sequence[bytes | None]:
    return [record.value for record in records_in(data)]
