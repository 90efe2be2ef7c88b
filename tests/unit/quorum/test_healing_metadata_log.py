"""How a voter opens damaged metadata files if there are other voters from which it can fetch the records."""

import asyncio
import shutil
from pathlib import Path

import pytest
from controllers import create, register, running

from sskafka.model.settings import Settings
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.metadata_opening import MetadataError
from sskafka.raft.log_view import SnapshotId
from sskafka.raft.ready import SnapshotChunk
from sskafka.storage.disk import OsDisk
from sskafka.storage.synced_offset import read_synced_offset

TOPICS = 12
VOTERS = "1@localhost:19091,2@localhost:19092,3@localhost:19093"
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1"}


async def write(directory: Path, settings: dict[str, str]) -> None:
    async with running(OsDisk(), str(directory), settings) as node:
        await register(node)
        for number in range(TOPICS):
            await create(node, f"topic-{number}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("metadata") / "data"
    asyncio.run(write(directory, SNAPSHOTS))
    return directory


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "data"))


def open_log(data: Path, voters: str = VOTERS) -> MetadataLog:
    given = {"node.id": "1", "log.dirs": str(data)}
    if voters:
        given["controller.quorum.voters"] = voters
    return MetadataLog.open(OsDisk(), str(data), Settings.resolve(given), 0)


def files(data: Path, pattern: str) -> list[Path]:
    return sorted((data / "__cluster_metadata-0").glob(pattern))


def remove_snapshots(data: Path) -> None:
    for path in files(data, "*.checkpoint"):
        path.unlink()


def flip_in_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_an_intact_log_misses_nothing(data: Path) -> None:
    assert open_log(data).missing_end_offset is None


def test_a_damaged_log_is_cut_and_knows_what_it_misses(data: Path) -> None:
    remove_snapshots(data)
    end_offset = open_log(data).end_offset
    flip_in_the_middle(files(data, "*.log")[0])
    log = open_log(data)
    assert 0 < log.end_offset < end_offset
    assert log.missing_end_offset == end_offset


def test_the_loss_is_remembered_over_a_clean_stop(data: Path) -> None:
    remove_snapshots(data)
    flip_in_the_middle(files(data, "*.log")[0])
    log = open_log(data)
    missing_end_offset = log.missing_end_offset
    log.close()
    assert open_log(data).missing_end_offset == missing_end_offset
    assert read_synced_offset(OsDisk(), log.directory) == missing_end_offset


def test_after_it_was_regained_the_synced_offset_follows_the_log(data: Path) -> None:
    remove_snapshots(data)
    flip_in_the_middle(files(data, "*.log")[0])
    log = open_log(data)
    log.regained()
    log.close()
    assert open_log(data).missing_end_offset is None


def test_a_truncation_before_the_loss_ends_it(data: Path) -> None:
    remove_snapshots(data)
    flip_in_the_middle(files(data, "*.log")[0])
    log = open_log(data)
    log.truncate_to(1)  # as the leader asks: what follows had no place in its log
    assert read_synced_offset(OsDisk(), log.directory) == 1


def test_a_snapshot_that_ends_before_the_loss_does_not_replace_it(data: Path) -> None:
    snapshot = files(data, "*.checkpoint")[0]
    content, (offset, epoch) = snapshot.read_bytes(), map(int, snapshot.stem.split("-"))
    remove_snapshots(data)
    log_file = files(data, "*.log")[0]
    log_file.write_bytes(log_file.read_bytes()[:80])
    log = open_log(data)
    missing_end_offset = log.missing_end_offset
    assert missing_end_offset is not None
    assert offset < missing_end_offset
    log.write_chunk(SnapshotChunk(SnapshotId(offset, epoch), 0, content))
    log.install_snapshot(SnapshotId(offset, epoch))
    log.close()
    assert open_log(data).missing_end_offset == missing_end_offset


@pytest.mark.parametrize("voters", [VOTERS, ""], ids=["quorum", "alone"])
@pytest.mark.parametrize("length", [-1, 0, 30])
def test_a_snapshot_that_the_log_replaces_is_set_aside(data: Path, voters: str, length: int) -> None:
    end_offset = open_log(data, voters).end_offset
    newest = files(data, "*.checkpoint")[-1]
    newest.write_bytes(newest.read_bytes()[:length])
    log = open_log(data, voters)
    assert (log.end_offset, log.missing_end_offset) == (end_offset, None)
    assert [path.name for path in files(data, "*.damaged")] == [f"{newest.name}.damaged"]


def start_at_newest_snapshot(data: Path) -> None:
    log = open_log(data)
    newest = log.latest_snapshot_id()
    assert newest is not None
    log.write_chunk(SnapshotChunk(newest, 0, files(data, "*.checkpoint")[-1].read_bytes()))
    log.install_snapshot(newest)
    log.trim_to(newest)
    log.close()


def test_without_snapshot_and_log_everything_is_fetched(data: Path) -> None:
    start_at_newest_snapshot(data)
    end_offset = open_log(data).end_offset
    (snapshot,) = files(data, "*.checkpoint")
    flip_in_the_middle(snapshot)
    log = open_log(data)
    assert (log.start_offset, log.end_offset, log.missing_end_offset) == (0, 0, end_offset)
    assert not files(data, "*.checkpoint")
    log.close()
    assert open_log(data).missing_end_offset == end_offset


def test_a_node_alone_does_not_start_without_snapshot_and_log(data: Path) -> None:
    start_at_newest_snapshot(data)
    (snapshot,) = files(data, "*.checkpoint")
    flip_in_the_middle(snapshot)
    damaged = snapshot.read_bytes()
    with pytest.raises(MetadataError, match=r"\.checkpoint is damaged.*Restore .* from a copy"):
        open_log(data, "")
    assert snapshot.read_bytes() == damaged
