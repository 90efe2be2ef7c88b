"""Whatever is done to the files of a log: a check gets through, and a repair takes no batch that can be read."""

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.model.ids import TopicPartition
from sskafka.records.batch import iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.storage.disk import OsDisk
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.storage.verification.directory import verify_directory
from sskafka.storage.verification.findings import Remedy
from sskafka.storage.verification.repair import repair_directory

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damaged") / "data"
    manager = LogManager.open(
        OsDisk(), [str(path)], node_id=1, format_as=lambda: MetaProperties("cluster", 1, bytes(16), 0)
    )
    log = manager.open_log(TopicPartition("orders", 0), bytes(range(16)), CONFIG, NOW_MS)
    for number in range(20):
        records = [NewRecord(b"key", b"value %d" % number, (), NOW_MS + number)]
        log.append_as_leader(
            build_batch(records, producer_id=5, producer_epoch=0, base_sequence=number), number // 8, NOW_MS
        )
    manager.close()
    return path


@cache
def batches_of(log: bytes) -> frozenset[bytes]:
    return frozenset(log[position : position + header.size_bytes] for position, header in iter_headers(log))


def readable(written: Path, damaged: Path) -> Iterator[bytes]:
    """The batches of `written` that are still somewhere in the files."""
    logs = [path.read_bytes() for path in sorted((damaged / "orders-0").glob("*.log"))]
    for path in sorted((written / "orders-0").glob("*.log")):
        for batch in batches_of(path.read_bytes()):
            if any(batch in log for log in logs):
                yield batch


def damage(path: Path, kind: str, place: int, content: bytes) -> None:
    data = bytearray(path.read_bytes())
    at = place % (len(data) + 1)
    match kind:
        case "remove":
            path.unlink()
            return
        case "cut":
            del data[at:]
        case "overwrite":
            data[at : at + len(content)] = content
        case "insert":
            data[at:at] = content
        case "append":
            data += content
    path.write_bytes(data)


DAMAGE = st.tuples(
    st.integers(0, 100),
    st.sampled_from(["remove", "cut", "overwrite", "insert", "append"]),
    st.integers(0, 2000),
    st.binary(min_size=1, max_size=80) | st.integers(1, 80).map(bytes),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(DAMAGE, min_size=1, max_size=3))
def test_no_batch_that_can_be_read_is_lost(written: Path, damages: list[tuple[int, str, int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        shutil.copytree(written, data)
        for number, kind, place, content in damages:
            files = sorted(path for path in data.rglob("*") if path.is_file() and path.name != ".lock")
            damage(files[number % len(files)], kind, place, content)
        before = set(readable(written, data))
        report = verify_directory(str(data))
        repairs = list(repair_directory(OsDisk(), report, NOW_MS))
        assert before <= set(readable(written, data))
        left = verify_directory(str(data))
        if all(repair.is_done for repair in repairs):
            assert left.damages == []
        else:
            assert {finding.remedy for finding in left.damages} & {Remedy.DATA_LOSS, Remedy.MANUAL}
