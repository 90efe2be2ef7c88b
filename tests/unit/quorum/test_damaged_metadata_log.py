"""A node never starts with less metadata than was once on its disk, however its files were damaged."""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest
from controllers import create, register, running

from sskafka.quorum.metadata_opening import MetadataError
from sskafka.records.batch import iter_headers
from sskafka.storage.disk import OsDisk
from sskafka.storage.synced_offset import read_synced_offset
from sskafka.storage.verification.directory import verify_directory
from sskafka.storage.verification.findings import Remedy
from sskafka.storage.verification.repair import Repair, repair_directory

TOPICS = 20


async def write(directory: Path, *, stops_cleanly: bool) -> None:
    async with running(OsDisk(), str(directory)) as node:
        await register(node)
        for number in range(TOPICS):
            await create(node, f"topic-{number}")
        if not stops_cleanly:
            node.crash()


async def topics_after_start(directory: Path) -> set[str]:
    async with running(OsDisk(), str(directory)) as node:
        return set(node.plane.committed.image.topics_by_name)


def log_file(directory: Path) -> Path:
    return directory / "__cluster_metadata-0" / "00000000000000000000.log"


@pytest.fixture(scope="module", params=[True, False], ids=["clean stop", "crash"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("metadata") / "data"
    asyncio.run(write(directory, stops_cleanly=request.param))
    return directory


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "data"))


def flip_a_bit(content: bytes, random: Random) -> bytes:
    damaged = bytearray(content)
    damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def cut_off(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content))]


def end_in_zeros(content: bytes, random: Random) -> bytes:
    return cut_off(content, random).ljust(len(content), b"\0")


def empty(content: bytes, random: Random) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [flip_a_bit, cut_off, end_in_zeros, empty])
@pytest.mark.parametrize("seed", range(4))
def test_a_node_does_not_start_without_metadata_that_it_had(
    data: Path, damage: Callable[[bytes, Random], bytes], seed: int
) -> None:
    damaged = damage(log_file(data).read_bytes(), Random(seed))
    log_file(data).write_bytes(damaged)
    with pytest.raises(MetadataError, match=r"may have been acknowledged.*--repair --allow-data-loss"):
        asyncio.run(topics_after_start(data))
    assert log_file(data).read_bytes() == damaged, "nothing is cut before somebody decided so"


def test_the_error_names_file_and_offset(data: Path) -> None:
    content = bytearray(log_file(data).read_bytes())
    position, header = list(iter_headers(bytes(content)))[5]
    content[position + header.size_bytes - 1] ^= 1
    log_file(data).write_bytes(content)
    with pytest.raises(MetadataError, match=rf"\.log is damaged at byte {position}, offset {header.base_offset}: "):
        asyncio.run(topics_after_start(data))


def test_a_torn_end_that_was_never_synced_is_cut(data: Path) -> None:
    whole = log_file(data).read_bytes()
    log_file(data).write_bytes(whole + whole[:70])
    assert len(asyncio.run(topics_after_start(data))) == TOPICS


def repairs_log(repairs: Iterable[Repair]) -> bool:
    (outcome,) = [repair.is_done for repair in repairs if repair.path.endswith("__cluster_metadata-0")]
    return outcome


def test_the_loss_is_accepted_in_so_many_words(data: Path) -> None:
    content = bytearray(log_file(data).read_bytes())
    content[len(content) // 2] ^= 1
    log_file(data).write_bytes(content)
    report = verify_directory(str(data))
    assert not repairs_log(repair_directory(OsDisk(), report, 0))
    with pytest.raises(MetadataError):
        asyncio.run(topics_after_start(data))
    assert repairs_log(repair_directory(OsDisk(), report, 0, may_lose=True))
    assert 0 < len(asyncio.run(topics_after_start(data))) < TOPICS


def test_a_torn_end_below_what_was_synced_is_no_torn_end(data: Path) -> None:
    log_file(data).write_bytes(log_file(data).read_bytes()[:-10])
    (partition,) = [one for one in verify_directory(str(data)).partitions if one.name == "__cluster_metadata-0"]
    assert partition.needs(Remedy.DATA_LOSS)


def test_an_unreadable_synced_offset_promises_nothing(data: Path) -> None:
    (data / "__cluster_metadata-0" / "synced-offset").write_bytes(b"12")
    assert read_synced_offset(OsDisk(), str(data / "__cluster_metadata-0")) is None
    assert len(asyncio.run(topics_after_start(data))) == TOPICS
