"""A small program that takes on the challenge: python challenge_server.py FLAW server.properties

With the flaw `none` it does everything that is asked for; each other flaw breaks one thing, and the tester must notice.
One thread a connection. It knows the topics by reading the prepared metadata log.
"""

import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sskafka.metadata.record_codec import decode_record
from sskafka.metadata.records import PartitionRecord, TopicRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.model.properties import parse_properties
from sskafka.records.batch import iter_headers
from sskafka.records.record import decode_records
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import decode_request_header, encode_response_header
from sskafka.wire.messages import api_versions as versions_api
from sskafka.wire.messages import describe_topic_partitions as describe_api
from sskafka.wire.messages import fetch as fetch_api
from sskafka.wire.messages import produce as produce_api

FLAWS = (
    "none",
    "exits",
    "never_listens",
    "ignores_sigterm",
    "wrong_correlation_id",
    "fixed_correlation_id",
    "unknown_version_taken",
    "fetch_not_listed",
    "old_versions_listed",
    "closes_after_one_request",
    "one_connection_at_a_time",
    "answers_out_of_order",
    "size_too_large",
    "surplus_byte",
    "missing_byte",
    "unknown_topic_without_error",
    "topics_unsorted",
    "wrong_topic_id",
    "limit_ignored",
    "unknown_topic_id_without_error",
    "high_watermark_behind",
    "records_changed",
    "first_batch_only",
    "offsets_of_refusals",
    "not_on_disk",
    "on_disk_too_late",
    "offset_in_file",
    "one_partition_written",
)
LISTED = {0: 11, 1: 16, 18: 4, 75: 0}


class Server:
    def __init__(self, flaw: str, properties: dict[str, str]) -> None:
        self.flaw = flaw
        self.directory = Path(properties["log.dirs"])
        self.port = int(properties["listeners"].split(",")[0].rpartition(":")[2])
        self.ids: dict[str, bytes] = {}
        self.partitions: dict[bytes, list[int]] = {}
        self.read_metadata()

    def read_metadata(self) -> None:
        path = self.directory / "__cluster_metadata-0" / "00000000000000000000.log"
        log = path.read_bytes() if path.exists() else b""
        for position, header in iter_headers(log):
            for record in decode_records(log, header, position):
                match decode_record(record.value or b""):
                    case TopicRecord(name=name, topic_id=topic_id):
                        self.ids[name] = topic_id
                        self.partitions[topic_id] = []
                    case PartitionRecord(topic_id=topic_id, partition_id=partition):
                        self.partitions[topic_id].append(partition)

    def serve(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port), backlog=16)
        while True:
            connection, _ = listener.accept()
            if self.flaw == "one_connection_at_a_time":
                self.talk(connection)
            else:
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            is_first = True
            while len(size := stream.read(4)) == 4:
                answer = self.framed(self.answer(stream.read(struct.unpack(">i", size)[0])))
                if self.flaw == "answers_out_of_order" and is_first:
                    threading.Timer(0.2, connection.sendall, (answer,)).start()
                else:
                    connection.sendall(answer)
                is_first = False
                if self.flaw == "closes_after_one_request":
                    return

    def framed(self, answer: bytes) -> bytes:
        if self.flaw == "missing_byte":
            answer = answer[:-1]
        if self.flaw == "surplus_byte":
            answer += b"\0"
        return struct.pack(">i", len(answer) + (self.flaw == "size_too_large")) + answer

    def answer(self, frame: bytes) -> bytes:
        header = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        correlation_id = header.correlation_id + (self.flaw == "wrong_correlation_id")
        if self.flaw == "fixed_correlation_id":
            correlation_id = 7
        if key == 18 and version > LISTED[18]:
            error = 0 if self.flaw == "unknown_version_taken" else ErrorCode.UNSUPPORTED_VERSION
            return struct.pack(">i", correlation_id) + encode(self.versions(error), 0)
        request = decode(API_BY_KEY[key].request_class(), version, frame, header.body_position)
        answers: dict[int, Callable[[Any], Any]] = {
            0: self.produce,
            1: self.fetch,
            18: lambda _: self.versions(0),
            75: self.describe,
        }
        return encode_response_header(key, version, correlation_id) + encode(answers[key](request), version)

    def versions(self, error: int) -> versions_api.ApiVersionsResponse:
        listed = {key: highest for key, highest in LISTED.items() if key != 1 or self.flaw != "fetch_not_listed"}
        if self.flaw == "old_versions_listed":
            listed = dict.fromkeys(listed, 0)
        keys = [versions_api.ApiVersion(key, 0, highest) for key, highest in listed.items()]
        return versions_api.ApiVersionsResponse(error_code=error, api_keys=keys)

    def describe(
        self, request: describe_api.DescribeTopicPartitionsRequest
    ) -> describe_api.DescribeTopicPartitionsResponse:
        names = [topic.name for topic in request.topics]
        limit = 1000 if self.flaw == "limit_ignored" else request.response_partition_limit
        response = describe_api.DescribeTopicPartitionsResponse()
        for name in names if self.flaw == "topics_unsorted" else sorted(names):
            topic = self.described(name)
            start = request.cursor.partition_index if request.cursor and limit < 1000 else 0
            rest = topic.partitions[start + limit :]
            topic.partitions = topic.partitions[start : start + limit]
            response.topics.append(topic)
            if rest:
                response.next_cursor = describe_api.Cursor(name, rest[0].partition_index)
        return response

    def described(self, name: str) -> describe_api.DescribeTopicPartitionsResponseTopic:
        topic_id = self.ids.get(name)
        if topic_id is None:
            code = 0 if self.flaw == "unknown_topic_without_error" else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return describe_api.DescribeTopicPartitionsResponseTopic(code, name, ZERO_UUID)
        partitions = [
            describe_api.DescribeTopicPartitionsResponsePartition(0, number, 1, 0, [1], [1], [], [], [])
            for number in self.partitions[topic_id]
        ]
        shown = bytes(16) if self.flaw == "wrong_topic_id" else topic_id
        return describe_api.DescribeTopicPartitionsResponseTopic(0, name, shown, False, partitions)

    def fetch(self, request: fetch_api.FetchRequest) -> fetch_api.FetchResponse:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        responses = [
            fetch_api.FetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=[self.fetched(names.get(topic.topic_id), wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
        return fetch_api.FetchResponse(responses=responses)

    def fetched(self, name: str | None, wanted: fetch_api.FetchPartition) -> fetch_api.PartitionData:
        if name is None:
            code = 0 if self.flaw == "unknown_topic_id_without_error" else ErrorCode.UNKNOWN_TOPIC_ID
            return fetch_api.PartitionData(wanted.partition, code, -1, log_start_offset=-1)
        log = self.segment(name, wanted.partition).read_bytes()
        headers = list(iter_headers(log))
        end = headers[-1][1].next_offset if headers else 0
        start = next((at for at, header in headers if header.last_offset >= wanted.fetch_offset), len(log))
        records = bytearray(log[start:])
        if records and self.flaw == "records_changed":
            records[-1] ^= 1
        if records and self.flaw == "first_batch_only":
            del records[headers[0][1].size_bytes :]
        watermark = 0 if self.flaw == "high_watermark_behind" else end
        return fetch_api.PartitionData(wanted.partition, 0, watermark, watermark, 0, records=bytes(records))

    def produce(self, request: produce_api.ProduceRequest) -> produce_api.ProduceResponse:
        responses = [
            produce_api.TopicProduceResponse(
                name=topic.name,
                partition_responses=[self.produced(topic.name, data) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
        return produce_api.ProduceResponse(responses=responses)

    def produced(self, name: str, data: produce_api.PartitionProduceData) -> produce_api.PartitionProduceResponse:
        topic_id = self.ids.get(name)
        if topic_id is None or data.index not in self.partitions[topic_id]:
            offset = 0 if self.flaw == "offsets_of_refusals" else -1
            return produce_api.PartitionProduceResponse(
                data.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, offset, -1, log_start_offset=offset
            )
        batch = bytes(data.records or b"")
        if self.flaw == "on_disk_too_late":
            threading.Thread(target=self.write_late, args=(name, data.index, batch), daemon=True).start()
        elif self.flaw != "not_on_disk" and not (self.flaw == "one_partition_written" and data.index):
            self.write(name, data.index, batch)
        return produce_api.PartitionProduceResponse(data.index, 0, 0, -1, log_start_offset=0)

    def write_late(self, name: str, partition: int, batch: bytes) -> None:
        time.sleep(1)
        self.write(name, partition, batch)

    def write(self, name: str, partition: int, batch: bytes) -> None:
        if self.flaw == "offset_in_file":
            batch = struct.pack(">q", 5) + batch[8:]
        with self.segment(name, partition).open("ab") as file:
            file.write(batch)

    def segment(self, name: str, partition: int) -> Path:
        return self.directory / f"{name}-{partition}" / "00000000000000000000.log"


def main(flaw: str, properties: str) -> None:
    if flaw == "exits":
        sys.exit(3)
    if flaw == "never_listens":
        time.sleep(60)
    if flaw == "ignores_sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Server(flaw, parse_properties(Path(properties).read_text())).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
