"""A thread reads and verifies the parts of a response that are not in the page cache."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sskafka.model.buffers import Buffer
from sskafka.model.counters import ConnectionCounters
from sskafka.model.settings import Settings
from sskafka.records.batch import assign_offset
from sskafka.records.builder import NewRecord, build_batch
from sskafka.runtime.descriptors import ConnectionDescriptors
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.connection_quotas import ConnectionQuotas
from sskafka.servers.kafka.listener import ConnectionLimits, Listener
from sskafka.servers.kafka.request_memory import RequestMemory
from sskafka.storage.disk import File, OsDisk
from sskafka.storage.file_slice import FileSlice


async def read(part: FileSlice) -> tuple[Buffer | None, list[File]]:
    """Return what the response gets, and the files that are reported as damaged."""
    with ThreadPoolExecutor(1) as executor:
        quotas = ConnectionQuotas(Settings.resolve({}))
        listener = Listener(
            "L", {}, AllowAll(), ConnectionLimits(1000, 1000, 10), quotas, RequestMemory(1000), ConnectionCounters(),
            executor, ConnectionDescriptors(10),
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        listener._loop = loop
        damaged: list[File] = []
        listener.on_damaged_file = damaged.append
        done: asyncio.Future[Buffer | None] = loop.create_future()
        listener.read_in_background(part, done.set_result)
        return await done, damaged


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_bad_batch_is_not_sent_and_its_file_is_reported(tmp_path: Path, is_damaged: bool) -> None:
    second = build_batch([NewRecord(value=b"second")])
    assign_offset(second, 0, 1, 0)
    batches = build_batch([NewRecord(value=b"first")]) + second
    batches[-1] ^= is_damaged
    (tmp_path / "segment").write_bytes(batches)
    file = OsDisk().open(str(tmp_path / "segment"))
    data, damaged = asyncio.run(read(FileSlice(file, 0, len(batches))))
    assert data == (None if is_damaged else batches)
    assert damaged == ([file] if is_damaged else [])


def test_the_middle_of_a_batch_is_not_taken_for_its_start(tmp_path: Path) -> None:
    batches = build_batch([NewRecord(value=b"value" * 100)])
    (tmp_path / "segment").write_bytes(batches)
    file = OsDisk().open(str(tmp_path / "segment"))
    data, damaged = asyncio.run(read(FileSlice(file, 0, len(batches)).part(200, 100)))
    assert (data, damaged) == (batches[200:300], [])
