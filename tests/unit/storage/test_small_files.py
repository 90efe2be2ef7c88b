"""meta.properties, partition.metadata, checkpoints, directory names and the clean-shutdown mark."""

import pytest
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition, parse_uuid
from sskafka.storage import checkpoints
from sskafka.storage.clean_shutdown import remove_clean_shutdown_file, write_clean_shutdown_file
from sskafka.storage.errors import CorruptFileError, LogDirectoryError
from sskafka.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from sskafka.storage.partition_directory import directory_name, is_deleted, parse_directory_name, set_aside_name
from sskafka.storage.partition_metadata import read_topic_id, write_topic_id

UUID = parse_uuid("Xb7dRVqPTU2pnOJ-dAzhKg")


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("/a")
    return disk


def put(disk: SimulatedDisk, name: str, content: bytes) -> None:
    file = disk.open(f"/a/{name}", create=True)
    file.truncate(0)
    file.write_at(content, 0)


# ---- meta.properties


def test_meta_properties_are_written_and_read(disk: SimulatedDisk) -> None:
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, UUID, 1, {"future.key": "x=y"})
    write_meta_properties(disk, "/a", meta)
    assert read_meta_properties(disk, "/a") == meta
    assert b"version=1\n" in disk.nodes["/a/meta.properties"].data


def test_apache_kafkas_own_is_read(disk: SimulatedDisk) -> None:
    put(
        disk,
        "meta.properties",
        b"#\n#Sat Nov 15 12:00:00 UTC 2025\n"
        b"cluster.id=abc\nversion=1\ndirectory.id=Xb7dRVqPTU2pnOJ-dAzhKg\nnode.id=7\n",
    )
    assert read_meta_properties(disk, "/a") == MetaProperties("abc", 7, UUID)


def test_the_old_version_says_broker_id(disk: SimulatedDisk) -> None:
    put(disk, "meta.properties", b"version=0\nbroker.id=3\ncluster.id=abc\n")
    assert read_meta_properties(disk, "/a") == MetaProperties("abc", 3)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02", b"version=2\n", b"node.id=one\n", b"directory.id=short\n", b"log.dir.partition.base=2\n"],
)
def test_impossible_meta_properties_are_refused(disk: SimulatedDisk, content: bytes) -> None:
    put(disk, "meta.properties", content)
    with pytest.raises(CorruptFileError, match=r"meta.properties cannot be read"):
        read_meta_properties(disk, "/a")


def test_a_copied_directory_is_refused() -> None:
    twins = {path: MetaProperties("abc", 1, UUID) for path in ("/a", "/b")}
    with pytest.raises(LogDirectoryError, match=r"same directory.id"):
        check_meta_properties(twins, 1, 0)


# ---- partition.metadata


def test_a_topic_id_is_written_and_read(disk: SimulatedDisk) -> None:
    assert read_topic_id(disk, "/a") is None
    write_topic_id(disk, "/a", UUID)
    assert read_topic_id(disk, "/a") == UUID


@pytest.mark.parametrize("ending", ["", "=", "==", "\n", "==\n\n"])
def test_padding_and_newlines_are_accepted(disk: SimulatedDisk, ending: str) -> None:
    put(disk, "partition.metadata", f"version: 0\ntopic_id: Xb7dRVqPTU2pnOJ-dAzhKg{ending}".encode())
    assert read_topic_id(disk, "/a") == UUID


def test_a_torn_topic_id_is_recognised(disk: SimulatedDisk) -> None:
    write_topic_id(disk, "/a", UUID)
    whole = bytes(disk.nodes["/a/partition.metadata"].data)
    for size in range(len(whole)):
        put(disk, "partition.metadata", whole[:size])
        with pytest.raises(CorruptFileError):
            read_topic_id(disk, "/a")


# ---- checkpoints


def test_offsets_are_written_and_read(disk: SimulatedDisk) -> None:
    offsets = {TopicPartition("a", 0): 1, TopicPartition("b.c-d_e", 12): 2**62}
    checkpoints.write_offsets(disk, "/a/x", offsets)
    assert disk.nodes["/a/x"].data == b"0\n2\na 0 1\nb.c-d_e 12 4611686018427387904\n"
    assert checkpoints.read_offsets(disk, "/a/x") == offsets
    assert checkpoints.read_offsets(disk, "/a/missing") == {}
    put(disk, "empty", b"")  # as Apache Kafka leaves them
    assert checkpoints.read_offsets(disk, "/a/empty") == {}


def test_a_checkpoint_torn_at_any_byte_is_recognised(disk: SimulatedDisk) -> None:
    checkpoints.write_offsets(disk, "/a/x", {TopicPartition("orders", n): 4711 for n in range(3)})
    whole = bytes(disk.nodes["/a/x"].data)
    for size in range(1, len(whole)):
        put(disk, "x", whole[:size])
        with pytest.raises(CorruptFileError):
            checkpoints.read_offsets(disk, "/a/x")


def test_an_interrupted_replacement_leaves_the_old_file(disk: SimulatedDisk) -> None:
    checkpoints.write_offsets(disk, "/a/x", {TopicPartition("a", 0): 1})
    disk.capacity_bytes = sum(len(node.data) for node in disk.nodes.values()) + 3
    with pytest.raises(OSError, match="No space"):
        checkpoints.write_offsets(disk, "/a/x", {TopicPartition("a", 0): 2})
    assert checkpoints.read_offsets(disk, "/a/x") == {TopicPartition("a", 0): 1}


# ---- names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("my-dashed-topic-12", TopicPartition("my-dashed-topic", 12)),
        ("__cluster_metadata-0", TopicPartition("__cluster_metadata", 0)),
        ("orders", None),
        ("orders-", None),
        ("orders-01", None),
        ("-1", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("orders-0.0123456789abcdef0123456789abcdef-stray", None),
        ("bad name-0", None),
    ],
)
def test_directory_names(name: str, expected: TopicPartition | None) -> None:
    assert parse_directory_name(name) == expected
    if expected is not None:
        assert directory_name(expected) == name


def test_names_may_count_from_1() -> None:
    assert directory_name(TopicPartition("t", 0), 1) == "t-1"
    assert parse_directory_name("t-1", 1) == TopicPartition("t", 0)
    assert parse_directory_name("t-0", 1) is None
    assert directory_name(TopicPartition("__cluster_metadata", 0), 1) == "__cluster_metadata-0"


def test_long_names_still_fit_when_set_aside() -> None:
    name = set_aside_name("x" * 249 + "-0", "f" * 32, "-delete")
    assert len(name) == 255
    assert is_deleted(name)
    assert not is_deleted("topic-delete")


# ---- clean shutdown


def test_the_clean_mark_is_taken_once(disk: SimulatedDisk) -> None:
    assert remove_clean_shutdown_file(disk, "/a") is None
    write_clean_shutdown_file(disk, "/a", 5)
    assert disk.nodes["/a/.kafka_cleanshutdown"].data == b'{"version":0,"brokerEpoch":5}'
    assert remove_clean_shutdown_file(disk, "/a") == 5
    assert remove_clean_shutdown_file(disk, "/a") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":0}'])
def test_an_older_clean_mark_without_an_epoch_counts(disk: SimulatedDisk, content: bytes) -> None:
    put(disk, ".kafka_cleanshutdown", content)
    assert remove_clean_shutdown_file(disk, "/a") == -1
