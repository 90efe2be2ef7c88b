"""Snapshots of the metadata: the size of their batches, and what happens when one cannot be written."""

import asyncio
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from controllers import create, register, running, until
from simulated_disk import SimulatedDisk

from sskafka.metadata.features import LATEST_METADATA_VERSION
from sskafka.metadata.record_codec import decode_record
from sskafka.metadata.records import ConfigRecord
from sskafka.quorum import snapshot_writer
from sskafka.quorum.control_batches import QuorumSetup
from sskafka.quorum.snapshots import snapshot_batches, stored_records

MIB = 1024 * 1024
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "1000", "metadata.max.retention.bytes": "0"}


def batches_of(count: int, value_bytes: int) -> list[bytearray]:
    records = (ConfigRecord(2, "topic", f"name-{number}", "x" * value_bytes) for number in range(count))
    return list(snapshot_batches(records, LATEST_METADATA_VERSION, QuorumSetup(), 1, 0, 0))


def test_batches_with_large_records_stay_small() -> None:
    batches = batches_of(300, MIB)
    assert max(map(len, batches)) < 2 * MIB
    names = [
        decode_record(stored.record.value or b"").name
        for batch in batches
        for stored in stored_records(batch)
        if not stored.is_control
    ]
    assert names == [f"name-{number}" for number in range(300)]


@pytest.mark.parametrize(("value_bytes", "batches"), [(10, 2), (10_000, 3), (600_000, 300)])
def test_batches_are_cut_by_records_and_bytes(value_bytes: int, batches: int) -> None:
    header, *of_records, footer = batches_of(300, value_bytes)
    assert len(of_records) == batches
    offsets = [stored.record.offset for batch in (header, *of_records, footer) for stored in stored_records(batch)]
    assert offsets == list(range(len(offsets)))


def test_a_snapshot_that_cannot_be_written_is_reported_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any) -> Iterator[bytearray]:
        raise struct.error("'i' format requires -2147483648 <= number <= 2147483647")

    async def scenario() -> None:
        async with running(SimulatedDisk(), "/data", OFTEN) as node:
            await register(node)
            with monkeypatch.context() as patched:
                patched.setattr(snapshot_writer, "snapshot_batches", broken)
                for number in range(20):
                    await create(node, f"topic-{number}")
                await until(lambda: "no snapshot of the metadata could be written" in caplog.text)
                assert node.plane._log.start_offset == 0
            for number in range(20, 40):
                await create(node, f"topic-{number}")
            await until(lambda: node.plane._log.start_offset > 0)

    asyncio.run(scenario())
