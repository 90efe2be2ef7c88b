"""A full disk: producing fails with a clear error, nothing acknowledged is lost, and it resumes when there is room."""

import resource
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest
from broker_process import BrokerProcess, StartBroker
from waiting import wait_until
from wire_connection import Connection, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

DISK_BYTES = 6 << 20
FILLER_BYTES = 2 << 20
VALUE_BYTES = 50_000
PRODUCES_MAX = 2 * DISK_BYTES // VALUE_BYTES


class SmallDisk(Protocol):
    def start(self, start_broker: StartBroker, tmp_path: Path) -> BrokerProcess: ...

    def data_of(self, broker: BrokerProcess) -> Path:
        """Its data directory, as this process sees it."""
        ...

    def make_room(self, broker: BrokerProcess) -> None: ...


class SmallFileSystem:
    """A file system of the broker's own, in a namespace that goes away with its process."""

    # $0 is the directory to mount it on, $@ the broker.
    _SCRIPT = f"""
    mount -t tmpfs -o size={DISK_BYTES} tmpfs "$0" && head -c {FILLER_BYTES} /dev/zero > "$0/filler" && exec "$@"
    """

    def start(self, start_broker: StartBroker, tmp_path: Path) -> BrokerProcess:
        disk = tmp_path / "disk"
        disk.mkdir()
        namespace = namespace_command()
        assert namespace is not None
        return start_broker({"log.dirs": disk / "data"}, wrapper=(*namespace, "sh", "-c", self._SCRIPT, str(disk)))

    def data_of(self, broker: BrokerProcess) -> Path:
        return Path(f"/proc/{broker.pid}/root{broker.settings['log.dirs']}")

    def make_room(self, broker: BrokerProcess) -> None:
        (self.data_of(broker).parent / "filler").unlink()


class FileSizeLimit:
    """A limit on the size of the broker's files: needs no privileges."""

    def start(self, start_broker: StartBroker, tmp_path: Path) -> BrokerProcess:
        broker = start_broker()
        self._before = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (DISK_BYTES // 2, self._before[1]))
        return broker

    def data_of(self, broker: BrokerProcess) -> Path:
        return broker.data_directory

    def make_room(self, broker: BrokerProcess) -> None:
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, self._before)


@cache
def namespace_command() -> Sequence[str] | None:
    """The command that may mount a file system for one process, if this machine allows any."""
    for command in (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount")):
        trial = [*command, "mount", "-t", "tmpfs", "tmpfs", str(Path(__file__).parent)]
        if shutil.which("unshare") and subprocess.run(trial, capture_output=True, check=False).returncode == 0:
            return command
    return None


SMALL_DISKS: list[type[SmallDisk]] = [FileSizeLimit, SmallFileSystem] if namespace_command() else [FileSizeLimit]


def fill(connection: Connection, topic: str) -> list[bytes]:
    """Produces until it is refused: what was acknowledged."""
    acknowledged: list[bytes] = []
    for n in range(PRODUCES_MAX):
        value = b"%06d" % n + bytes(VALUE_BYTES)
        answer = connection.produce(topic, values_batch(value))
        if answer.error_code != 0:
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert "no room" in (answer.error_message or "")
            return acknowledged
        assert answer.base_offset == n
        acknowledged.append(value)
    raise AssertionError(f"{PRODUCES_MAX * VALUE_BYTES} bytes fit on a disk of {DISK_BYTES}")


def read_all(connection: Connection, topic: str, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        fetched = values_in(connection.fetch(topic, len(values)))
        assert fetched
        values += fetched
    return values


def assert_topics_are_refused_or_made(connection: Connection) -> None:
    """The metadata log is on the same disk; whether it still has room or not, the answer is true."""
    for name in ("while-full-1", "while-full-2", "while-full-3"):
        wanted = CreatableTopic(name, num_partitions=1, replication_factor=1)
        (result,) = connection.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        exists = connection.topic_metadata(name).error_code == 0
        assert exists == (result.error_code == 0), result


@pytest.mark.parametrize("disk_type", SMALL_DISKS)
def test_full_disk(start_broker: StartBroker, tmp_path: Path, disk_type: type[SmallDisk]) -> None:
    disk = disk_type()
    broker = disk.start(start_broker, tmp_path)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("filling")
        values = fill(connection, "filling")
        assert len(values) > 10
        again = connection.produce("filling", values_batch(bytes(VALUE_BYTES)))
        assert again.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert read_all(connection, "filling", len(values)) == values
        assert_topics_are_refused_or_made(connection)
        assert broker.log.count("is full: ") == 1, "it is logged once, however many writes fail"

        disk.make_room(broker)
        assert connection.produce("filling", values_batch(b"room again")).base_offset == len(values)
        values.append(b"room again")
        connection.create_topic("afterwards")
        wait_until(lambda: "is full no longer" in broker.log, "the broker reports the room")
        assert read_all(connection, "filling", len(values)) == values
        shutil.copytree(disk.data_of(broker), tmp_path / "saved")
    assert broker.stop() == 0
    assert "Traceback" not in broker.log

    # What was on the disk, as a kill -9 would have left it, is served by another process.
    successor = start_broker({"log.dirs": tmp_path / "saved"}, directory=tmp_path / "second")
    with Connection(successor.bootstrap) as connection:
        assert read_all(connection, "filling", len(values)) == values
