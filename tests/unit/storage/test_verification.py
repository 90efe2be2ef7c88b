"""Checks and repairs of a log directory: real files with every kind of damage that the check detects."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack

import pytest
from legacy_messages import message, old_segment
from logs import batch, marker

from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord, build_batch
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.verification.directory import held, verify_directory
from sskafka.storage.verification.findings import DirectoryReport, Remedy
from sskafka.storage.verification.repair import Repair, repair_directory

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=200)
BATCHES = 30


def open_manager(path: Path) -> LogManager:
    return LogManager.open(
        OsDisk(), [str(path)], node_id=1, format_as=lambda: MetaProperties("cluster", 1, bytes(16), 0)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory after a clean stop: one partition of several segments with indexes, snapshots and epochs."""
    path = tmp_path_factory.mktemp("verified") / "data"
    manager = open_manager(path)
    log = manager.open_log(ORDERS, TOPIC_ID, CONFIG, NOW_MS)
    for number in range(BATCHES):
        records = [NewRecord(b"key", b"value %d" % number * 5, (), NOW_MS + number)]
        batch = build_batch(records, producer_id=5, producer_epoch=0, base_sequence=number)
        log.append_as_leader(batch, number // 10, NOW_MS)
    manager.close()
    return path


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "data")
    return tmp_path / "data"


def segments(data: Path) -> list[Path]:
    return sorted((data / "orders-0").glob("*.log"))


def damages(report: DirectoryReport) -> list[tuple[str, Remedy]]:
    return [(Path(finding.path).name, finding.remedy) for finding in report.damages]


def repaired(data: Path, *, may_lose: bool = False) -> list[Repair]:
    return list(repair_directory(OsDisk(), verify_directory(str(data)), NOW_MS, may_lose=may_lose))


def files(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def served(data: Path) -> Iterator[tuple[int, int]]:
    """First and last offsets of the batches that a broker finds."""
    manager = open_manager(data)
    log = manager.open_log(ORDERS, TOPIC_ID, CONFIG, NOW_MS)
    for segment in log.segments:
        for _, header in segment.headers():
            yield header.base_offset, header.last_offset
    manager.release()


def test_a_sound_directory(data: Path) -> None:
    before = files(data)
    heard: list[str] = []
    report = verify_directory(str(data), lambda partition: heard.append(partition.name))
    assert report.all_findings == []
    (partition,) = report.partitions
    assert heard == ["orders-0"]
    assert (partition.batches, partition.start_offset, partition.end_offset) == (BATCHES, 0, BATCHES)
    assert partition.segments == len(segments(data)) > 2
    assert files(data) == before


@pytest.mark.parametrize("cut", [1, 30, 61, 90])
def test_a_torn_end_is_cut(cut: int, data: Path) -> None:
    last = segments(data)[-1]
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - cut)
    report = verify_directory(str(data))
    assert (last.name, Remedy.TRUNCATE) in damages(report)
    assert Remedy.DATA_LOSS not in {remedy for _, remedy in damages(report)}
    cut_, *pulled_back = repaired(data)
    assert "truncated by" in cut_.text
    assert [Path(one.path).name for one in pulled_back] == ["recovery-point-offset-checkpoint"]
    assert verify_directory(str(data)).all_findings == []
    assert [last for _, last in served(data)] == list(range(BATCHES - 1))


def test_zeros_and_half_a_batch_behind_the_end_are_cut(data: Path) -> None:
    last = segments(data)[-1]
    for rest in (bytes(5000), last.read_bytes()[:70]):
        with last.open("ab") as file:
            file.write(rest)
        assert damages(verify_directory(str(data))) == [(last.name, Remedy.TRUNCATE)]
        assert [one.is_done for one in repaired(data)] == [True]
        assert [last for _, last in served(data)] == list(range(BATCHES))


def test_gaps_are_counted(data: Path) -> None:
    last = segments(data)[-1]
    with last.open("ab") as file:
        for offset in (BATCHES + 10, BATCHES + 11, BATCHES + 20):
            file.write(batch(b"v", base_offset=offset, leader_epoch=2))
    (partition,) = verify_directory(str(data)).partitions
    assert (partition.gaps, partition.end_offset, partition.damages) == (2, BATCHES + 21, [])


def test_aborts_that_the_transaction_index_lacks(tmp_path: Path) -> None:
    manager = open_manager(tmp_path / "data")
    log = manager.open_log(ORDERS, TOPIC_ID, CONFIG, NOW_MS)
    producer = {"producer_id": 5, "producer_epoch": 0}
    for number, commit in enumerate((False, True, False)):
        log.append_as_leader(batch(b"v", transactional=True, base_sequence=number, **producer), 0, NOW_MS)
        log.append_as_leader(marker(5, 0, commit=commit), 0, NOW_MS, from_client=False)
    manager.close()
    index = tmp_path / "data" / "orders-0" / "00000000000000000000.txnindex"
    whole = index.read_bytes()
    assert verify_directory(str(tmp_path / "data")).all_findings == []
    for content in (b"", whole[:34]):
        index.write_bytes(content)
        (finding,) = verify_directory(str(tmp_path / "data")).damages
        assert finding.path.endswith(".txnindex")
        assert [one.is_done for one in repaired(tmp_path / "data")] == [True]
        assert index.read_bytes() == whole


def flip_byte(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("place", [0, 1, -1])
def test_good_batches_are_not_cut_unless_that_was_allowed(place: int, data: Path) -> None:
    """Damage in the first batch of a segment; others follow in it, and mostly whole segments too."""
    damaged = segments(data)[place]
    flip_byte(damaged, 70)
    assert (damaged.name, Remedy.DATA_LOSS) in damages(verify_directory(str(data)))
    before = files(data)
    assert [one.is_done for one in repaired(data)] == [False]
    assert files(data) == before
    assert [one.is_done for one in repaired(data, may_lose=True)] == [True, True]
    assert verify_directory(str(data)).all_findings == []
    assert [last for _, last in served(data)] == list(range(int(damaged.stem)))


def test_a_length_that_cannot_be_believed_hides_no_batches(data: Path) -> None:
    """Behind it batches are found by their checksums."""
    last = segments(data)[-1]
    flip_byte(last, 9)
    (finding,) = [one for one in verify_directory(str(data)).damages if one.path.endswith(".log")]
    assert finding.remedy is Remedy.DATA_LOSS
    assert "valid batches follow it" in finding.text


def write(content: bytes | str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


INDEX_DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "missing offset index": (".index", Path.unlink),
    "missing time index": (".timeindex", Path.unlink),
    "torn offset index": (".index", write(b"12345")),
    "torn time index": (".timeindex", write(b"12345")),
    "wrong position": (".index", write(pack(">ii", 3, 17))),
    "wrong offset": (".index", write(pack(">ii", 2000, 0))),
    "wrong timestamp": (".timeindex", write(pack(">qi", 1, 3))),
    "timestamps in disorder": (".timeindex", write(pack(">qi", NOW_MS + 3, 3) + pack(">qi", NOW_MS + 2, 4))),
    "time of no batch": (".timeindex", write(pack(">qi", NOW_MS, 5000))),
    "torn transaction index": (".txnindex", write(b"123")),
}


@pytest.mark.parametrize("name", INDEX_DAMAGES)
def test_indexes_are_made_anew(name: str, data: Path) -> None:
    suffix, damage = INDEX_DAMAGES[name]
    path = segments(data)[0].with_suffix(suffix)
    logs = {one: content for one, content in files(data).items() if one.endswith(".log")}
    damage(path)
    assert damages(verify_directory(str(data))) == [(path.name, Remedy.REBUILD)] * len(
        verify_directory(str(data)).damages
    )
    assert verify_directory(str(data)).damages
    assert [one.is_done for one in repaired(data)] == [True]
    assert verify_directory(str(data)).all_findings == []
    assert {one: content for one, content in files(data).items() if one.endswith(".log")} == logs


@pytest.mark.parametrize("content", ["nonsense", "0\n2\n0 0\n", "0\n2\n3 0\n1 5\n", "0\n1\n7 5000\n"])
def test_epochs_are_made_anew(content: str, data: Path) -> None:
    path = data / "orders-0" / "leader-epoch-checkpoint"
    right = path.read_text()
    path.write_text(content)
    assert damages(verify_directory(str(data))) == [(path.name, Remedy.REBUILD)]
    repaired(data)
    assert verify_directory(str(data)).all_findings == []
    if content != "0\n1\n7 5000\n":  # a readable file is believed up to the end of the log
        assert path.read_text() == right


def test_batches_of_another_epoch_than_the_checkpoint_says(data: Path) -> None:
    (data / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n9 0\n")
    assert (segments(data)[0].name, Remedy.DATA_LOSS) in damages(verify_directory(str(data)))
    assert [one.is_done for one in repaired(data)] == [False]


def test_snapshots_of_producers(data: Path) -> None:
    broken, beyond = data / "orders-0" / f"{BATCHES:020d}.snapshot", data / "orders-0" / f"{5000:020d}.snapshot"
    shutil.copy(broken, beyond)
    flip_byte(broken, 12)
    assert sorted(damages(verify_directory(str(data)))) == [
        (broken.name, Remedy.REBUILD),
        (beyond.name, Remedy.REBUILD),
    ]
    repaired(data)
    assert verify_directory(str(data)).all_findings == []
    assert not beyond.exists()


def test_checkpoints(data: Path) -> None:
    (data / "recovery-point-offset-checkpoint").write_text("0\n7\n")
    (data / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {BATCHES + 1}\n")
    found = damages(verify_directory(str(data)))
    assert found == [
        ("recovery-point-offset-checkpoint", Remedy.REMOVE),
        ("replication-offset-checkpoint", Remedy.REBUILD),
    ]
    assert [one.is_done for one in repaired(data)] == [True, True]
    assert (data / "replication-offset-checkpoint").read_text() == f"0\n1\norders 0 {BATCHES}\n"
    assert not (data / "recovery-point-offset-checkpoint").exists()


def test_whose_directory_it_is(data: Path) -> None:
    (data / "meta.properties").write_text("version=9\n")
    (data / "orders-0" / "partition.metadata").write_text("version: 0\n")
    assert damages(verify_directory(str(data))) == [
        ("meta.properties", Remedy.MANUAL),
        ("partition.metadata", Remedy.MANUAL),
    ]
    assert [one.is_done for one in repaired(data)] == [False, False]
    (data / "meta.properties").unlink()
    assert ("meta.properties", Remedy.MANUAL) in damages(verify_directory(str(data)))


def test_what_is_only_worth_knowing(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    for name in ("00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp", "00000000000000009999.index"):
        (data / "orders-0" / name).touch()
    report = verify_directory(str(data))
    assert report.damages == []
    assert len(report.all_findings) == 4
    assert repaired(data) == []


def test_messages_of_old_formats_are_checked_and_left_alone(data: Path) -> None:
    old = data / "archive-0"
    old.mkdir()
    path = old / "00000000000000000000.log"
    path.write_bytes(old_segment())
    report = verify_directory(str(data))
    assert report.partitions[0].has_old_formats
    assert report.partitions[0].end_offset == 11
    assert {remedy for name, remedy in damages(report)} == {Remedy.REBUILD}  # it has no indexes
    assert [one.is_done for one in repaired(data)] == [False]
    flip_byte(path, 30)
    path.write_bytes(path.read_bytes() + old_segment()[:20])
    found = [finding.text for finding in verify_directory(str(data)).damages if finding.remedy is Remedy.MANUAL]
    assert found[0] == "at byte 0: it does not match its checksum"
    assert "too few" in found[1]


def test_old_messages_behind_new_batches_are_no_torn_end(data: Path) -> None:
    last = segments(data)[-1]
    last.write_bytes(last.read_bytes() + message(BATCHES, b"k", b"v"))
    report = verify_directory(str(data))
    assert Remedy.TRUNCATE not in {finding.remedy for finding in report.all_findings}
    assert report.partitions[0].has_old_formats


def test_the_metadata_log(data: Path) -> None:
    metadata = data / "__cluster_metadata-0"
    metadata.mkdir()
    (metadata / "quorum-state").write_text("{}")
    batch = build_batch([NewRecord(None, b"v")])
    (metadata / "00000000000000000003-0000000001.checkpoint").write_bytes(batch + batch[:50])
    assert sorted(damages(verify_directory(str(data)))) == [
        ("00000000000000000003-0000000001.checkpoint", Remedy.MANUAL),
        ("quorum-state", Remedy.MANUAL),
    ]


def test_a_directory_in_use_is_left_alone(data: Path) -> None:
    manager = open_manager(data)
    try:
        with pytest.raises(LogDirectoryError, match="in use"), held(str(data)):
            pass
    finally:
        manager.release()
    with held(str(data)), pytest.raises(LogDirectoryError, match="in use"):
        open_manager(data)


def test_who_only_reads_makes_no_lock(tmp_path: Path) -> None:
    with held(str(tmp_path)):
        assert list(tmp_path.iterdir()) == []
    with held(str(tmp_path), for_writing=True):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    with pytest.raises(LogDirectoryError, match="not a directory"), held(str(tmp_path / "none")):
        pass
