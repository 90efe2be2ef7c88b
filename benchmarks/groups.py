"""Consumer groups: offset commits per second, and the time that a large group takes to join and rebalance.

    python -m benchmarks.groups [--members 100] [--seconds 5] [--kafka]

Requests are encoded in advance and responses are only counted, so that the broker is the bottleneck; `--kafka` measures
Apache Kafka in the same way. All members join at once, without initial rebalance delay. The time is measured from the
first JoinGroup until the last member has its assignment.
"""

import argparse
import asyncio
import struct
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import Broker, BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.machine import describe
from benchmarks.processes import read_cpu
from sskafka.model.errors import ErrorCode
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import decode_response_header, encode_request_header
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC = "numbers"
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
CONNECTIONS = 4
IN_FLIGHT = 50
COMMIT_VERSION, JOIN_VERSION, SYNC_VERSION = 8, 7, 5
SIZE = struct.Struct(">i")


class Wire:
    """One connection that sends and receives frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._correlation_ids = count(1)

    @classmethod
    async def open(cls, broker: Broker) -> "Wire":
        return cls(*await asyncio.open_connection(broker.host, broker.port))

    def frame(self, message: Any, version: int) -> bytes:
        header = encode_request_header(message.SCHEMA.key, version, next(self._correlation_ids), "bench")
        body = header + encode(message, version)
        return SIZE.pack(len(body)) + body

    async def receive(self) -> bytes:
        (size,) = SIZE.unpack(await self._reader.readexactly(SIZE.size))
        return await self._reader.readexactly(size)

    async def call(self, message: Any, version: int) -> Any:
        self.writer.write(self.frame(message, version))
        frame, key = await self.receive(), message.SCHEMA.key
        _, position = decode_response_header(key, version, frame)
        return decode(API_BY_KEY[key].response_class(), version, frame, position)


class Result(NamedTuple):
    name: str
    commits_per_second: float
    cpu_us_per_commit: float
    join_seconds: float
    rejoin_seconds: float


async def prepare(broker: Broker) -> None:
    wire = await Wire.open(broker)
    await wire.call(CreateTopicsRequest(topics=[CreatableTopic(TOPIC, 1, 1)]), 5)
    while not await is_ready(wire):  # noqa: ASYNC110  it happens in the broker
        await asyncio.sleep(0.05)
    wire.writer.close()


async def is_ready(wire: Wire) -> bool:
    """Return whether there is a coordinator that has loaded its partition."""
    if (await wire.call(FindCoordinatorRequest("any"), 2)).error_code != ErrorCode.NONE:
        return False
    answer = await wire.call(commit_request("any", 0), COMMIT_VERSION)
    return bool(answer.topics[0].partitions[0].error_code == ErrorCode.NONE)


def commit_request(group: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, offset, 0, "")
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=[partition])])


# -- commit rate


async def commit_for(broker: Broker, number: int, until: float) -> int:
    """Commit with a window of requests in flight; return the number of responses."""
    wire = await Wire.open(broker)
    frames = [wire.frame(commit_request(f"commits-{number}", offset), COMMIT_VERSION) for offset in range(IN_FLIGHT)]
    wire.writer.write(b"".join(frames))
    good = (await wire.receive())[4:]
    answered = 1
    while time.monotonic() < until:
        wire.writer.write(frames[answered % IN_FLIGHT])
        assert (await wire.receive())[4:] == good, "a commit was rejected"
        answered += 1
    wire.writer.close()
    return answered


async def commit_rate(broker: Broker, seconds: float) -> tuple[float, float]:
    cpu_before, began = read_cpu(broker.pid), time.monotonic()
    counts = await asyncio.gather(*(commit_for(broker, number, began + seconds) for number in range(CONNECTIONS)))
    elapsed, cpu_seconds = time.monotonic() - began, read_cpu(broker.pid).seconds - cpu_before.seconds
    return sum(counts) / elapsed, 1e6 * cpu_seconds / sum(counts)


# -- joining members


class Member:
    def __init__(self, wire: Wire, group: str) -> None:
        self._wire = wire
        self._group = group
        self.member_id = ""

    async def join(self) -> None:
        """Join and sync until the member has its assignment."""
        while True:
            joined = await self._wire.call(self._join_request(), JOIN_VERSION)
            self.member_id = joined.member_id or self.member_id
            if joined.error_code == ErrorCode.NONE and await self._sync(joined):
                return

    def _join_request(self) -> JoinGroupRequest:
        protocols = [JoinGroupRequestProtocol("range", b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00")]
        return JoinGroupRequest(self._group, 30_000, 60_000, self.member_id, None, "consumer", protocols)

    async def _sync(self, joined: Any) -> bool:
        shares = [SyncGroupRequestAssignment(member.member_id, b"share") for member in joined.members]
        request = SyncGroupRequest(
            self._group, joined.generation_id, self.member_id, None, "consumer", joined.protocol_name, shares
        )
        synced = await self._wire.call(request, SYNC_VERSION)
        return bool(synced.error_code == ErrorCode.NONE and synced.assignment == b"share")


async def join_times(broker: Broker, size: int) -> tuple[float, float]:
    """Return the seconds for a new group, and for a rebalance that its leader requests."""
    members = [Member(await Wire.open(broker), "many") for _ in range(size)]
    began = time.monotonic()
    await asyncio.gather(*(member.join() for member in members))
    joined = time.monotonic()
    await asyncio.gather(*(member.join() for member in members))
    return joined - began, time.monotonic() - joined


# -- main


async def measure(broker: Broker, arguments: argparse.Namespace) -> Result:
    await prepare(broker)
    await commit_rate(broker, min(1.0, arguments.seconds))  # warm-up
    rate, cpu_us = await commit_rate(broker, arguments.seconds)
    return Result(broker.name, rate, cpu_us, *await join_times(broker, arguments.members))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka, too")
    arguments = parser.parse_args()
    kinds: list[BrokerKind] = [sskafka_kind()]
    if arguments.kafka:
        kinds.append(apache_kafka_kind(resolve_kafka_libs()))
    print(describe(f"{arguments.members} members", "groups"))
    for kind in kinds:
        with tempfile.TemporaryDirectory() as directory, kind.running(Path(directory), SETTINGS) as broker:
            result = asyncio.run(measure(broker, arguments))
        print(
            f"{result.name}: {result.commits_per_second:,.0f} commits/s, {result.cpu_us_per_commit:.0f} us of CPU each"
        )
        print(
            f"  {arguments.members} members: {result.join_seconds:.2f} s to join, {result.rejoin_seconds:.2f} s again"
        )


if __name__ == "__main__":
    main()
