"""A full disk: producing fails with a clear error, nothing acknowledged is lost, and it resumes when there is room."""

import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker
from wire_connection import Connection, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

DISK_BYTES = 6 << 20
FILLER_BYTES = 2 << 20
VALUE_BYTES = 50_000
PRODUCES_MAX = 2 * DISK_BYTES // VALUE_BYTES

# A file system of the broker's own, in a namespace that goes away with its process; $0 is where, $@ the broker.
_ON_SMALL_DISK = f"""
mount -t tmpfs -o size={DISK_BYTES} tmpfs "$0" && head -c {FILLER_BYTES} /dev/zero > "$0/filler" && exec "$@"
"""
_NAMESPACES = (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount"))


def namespace_command(directory: Path) -> Sequence[str] | None:
    """The command that may mount a file system for one process, if this machine allows any."""
    if shutil.which("unshare") is None:
        return None
    for command in _NAMESPACES:
        trial = [*command, "mount", "-t", "tmpfs", "tmpfs", str(directory)]
        if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
            return command
    return None


def fill(connection: Connection, topic: str) -> tuple[list[bytes], int]:
    """Produces until it is refused: what was acknowledged, and the error."""
    acknowledged: list[bytes] = []
    for n in range(PRODUCES_MAX):
        value = b"%06d" % n + bytes(VALUE_BYTES)
        answer = connection.produce(topic, values_batch(value))
        if answer.error_code != 0:
            return acknowledged, answer.error_code
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


def test_full_disk(start_broker: StartBroker, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    namespace = namespace_command(disk)
    if namespace is None:
        pytest.skip("no file system can be mounted here")
    wrapper = (*namespace, "sh", "-c", _ON_SMALL_DISK, str(disk))
    broker = start_broker({"log.dirs": disk / "data"}, wrapper=wrapper)
    inside = Path(f"/proc/{broker.pid}/root{disk}")
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("filling")
        acknowledged, error_code = fill(connection, "filling")
        assert error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(acknowledged) > 10
        assert connection.produce("filling", values_batch(bytes(VALUE_BYTES))).error_code == error_code
        assert read_all(connection, "filling", len(acknowledged)) == acknowledged
        assert_topics_are_refused_not_lost(connection)
        assert "no room" in broker.log.lower() or "no space" in broker.log.lower()

        (inside / "filler").unlink()
        assert connection.produce("filling", values_batch(b"room again")).base_offset == len(acknowledged)
        connection.create_topic("afterwards")
        assert read_all(connection, "filling", len(acknowledged) + 1) == [*acknowledged, b"room again"]
        shutil.copytree(inside / "data", tmp_path / "saved")
    assert broker.stop() == 0
    assert "Traceback" not in broker.log
    assert_served_from(start_broker, tmp_path, [*acknowledged, b"room again"])


def assert_topics_are_refused_not_lost(connection: Connection) -> None:
    """The metadata log is on the same disk; whether it still has room or not, the answer is true."""
    names = [f"while-full-{n}" for n in range(3)]
    for name in names:
        wanted = CreatableTopic(name, num_partitions=1, replication_factor=1)
        (result,) = connection.call(CreateTopicsRequest(topics=[wanted]), version=7).topics
        exists = connection.topic_metadata(name).error_code == 0
        assert exists == (result.error_code == 0), result


def assert_served_from(start_broker: StartBroker, tmp_path: Path, values: list[bytes]) -> None:
    """What was on the disk, as a kill -9 would have left it, is served by another process."""
    (tmp_path / "saved" / ".lock").unlink(missing_ok=True)
    broker = start_broker({"log.dirs": tmp_path / "saved"}, directory=tmp_path / "second")
    with Connection(broker.bootstrap) as connection:
        assert read_all(connection, "filling", len(values)) == values


def test_file_size_limit(start_broker: StartBroker) -> None:
    """The same by a limit on the size of files, which needs no privileges."""
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("limited")
        before = limit_file_size(broker, DISK_BYTES // 2)
        acknowledged, error_code = fill(connection, "limited")
        assert error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert read_all(connection, "limited", len(acknowledged)) == acknowledged
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, before)
        assert connection.produce("limited", values_batch(b"room again")).base_offset == len(acknowledged)
    broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        assert read_all(connection, "limited", len(acknowledged) + 1) == [*acknowledged, b"room again"]


def limit_file_size(broker: BrokerProcess, size_bytes: int) -> tuple[int, int]:
    """Sets the soft limit and returns the limits before."""
    before = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    return before
