"""What keeps a broker from starting is said in a sentence on stderr, with exit code 1, and harms nobody else."""

import signal
import socket
import subprocess
from pathlib import Path

import pytest
from broker_process import COMMAND, BrokerProcess, StartBroker
from wire_connection import Connection, fetch_request, values_batch, values_in

pytestmark = pytest.mark.usefixtures("_ours")

TIMEOUT_S = 30
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
OTHER_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def refusal(directory: Path, settings: dict[str, object], *options: str) -> str:
    """What a broker says on stderr that ends with exit code 1 before it is ready."""
    directory.mkdir(parents=True, exist_ok=True)
    stated = {"node.id": 1, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory / "data", **settings}
    properties = directory / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in stated.items()))
    return failure(str(properties), *options)


def failure(*arguments: str, exit_code: int = 1) -> str:
    ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == exit_code, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert "error" in ended.stderr.lower()
    return ended.stderr


# ------------------------------------------------------------------------------------------ ports and directories


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = refusal(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    assert f"127.0.0.1:{port}" in message
    assert "listeners" in message


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    assert "192.0.2.1" in refusal(tmp_path, {"listeners": "PLAINTEXT://192.0.2.1:0"})


def test_a_directory_in_use(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker()
    message = refusal(tmp_path / "second", {"log.dirs": broker.data_directory})
    assert str(broker.data_directory) in message
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("unharmed")
        assert connection.produce("unharmed", values_batch(b"value")).error_code == 0
        assert values_in(connection.fetch("unharmed")) == [b"value"]


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    assert str(tmp_path / "file") in refusal(tmp_path, {"log.dirs": tmp_path / "file" / "data"})


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    assert str(tmp_path / "data") in refusal(tmp_path, {})


def test_no_good_directory_is_left(tmp_path: Path) -> None:
    """One of several may be missing, see test_log_directories.py."""
    bad = [tmp_path / "file-1", tmp_path / "file-2"]
    for path in bad:
        path.write_text("not a directory")
    message = refusal(tmp_path, {"log.dirs": f"{bad[0]},{bad[1]}", "metadata.log.dir": tmp_path / "metadata"})
    assert "no log directory is usable" in message
    assert all(str(path) in message for path in bad)


# ------------------------------------------------------------------------------------------------------- identity


def test_a_directory_of_another_node(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.stop()
    message = refusal(broker.directory, {"node.id": 7})
    assert f"{broker.data_directory} belongs to node 1" in message
    assert "node 7" in message


def test_a_directory_of_another_cluster(start_broker: StartBroker) -> None:
    broker = start_broker({"cluster.id": CLUSTER_ID})
    broker.stop()
    message = refusal(broker.directory, {"cluster.id": OTHER_CLUSTER_ID})
    assert CLUSTER_ID in message
    assert OTHER_CLUSTER_ID in message


@pytest.mark.parametrize("content", ["version=1\nnode.id=one\n", "version=9\ncluster.id=x\nnode.id=1\n"])
def test_unreadable_meta_properties(tmp_path: Path, content: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text(content)
    assert "meta.properties" in refusal(tmp_path, {})


# ------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "many"),
        ("num.partitions", "0"),
        ("log.segment.bytes", "-1"),
        ("auto.create.topics.enable", "perhaps"),
        ("log.cleanup.policy", "shred"),
        ("listeners", "127.0.0.1:9092"),
        ("listeners", "PLAINTEXT://127.0.0.1:99999"),
        ("node.id", "-3"),
    ],
)
def test_bad_values(tmp_path: Path, name: str, value: str) -> None:
    message = refusal(tmp_path, {name: value})
    assert name in message
    assert not (tmp_path / "data").exists()


def test_bad_values_on_the_command_line(tmp_path: Path) -> None:
    assert "num.partitions" in refusal(tmp_path, {}, "--set", "num.partitions=few")


def test_unknown_settings_are_named_with_the_nearest_known_one(start_broker: StartBroker) -> None:
    broker = start_broker({"log.retention.hourz": 5, "no.such.thing.anywhere": 1})
    lines = [line for line in broker.log.splitlines() if "log.retention.hourz" in line]
    assert any("log.retention.hours" in line.replace("log.retention.hourz", "") for line in lines), broker.log
    assert "no.such.thing.anywhere" in broker.log


def test_a_missing_file(tmp_path: Path) -> None:
    assert str(tmp_path / "none.properties") in failure(str(tmp_path / "none.properties"))


@pytest.mark.parametrize("arguments", [("--no-such-option",), ("a.properties", "b.properties"), ("--log-level", "x")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    failure(*arguments, exit_code=2)


# ---------------------------------------------------------------------------------------------- the process itself


def test_pid_file_and_exit_codes(start_broker: StartBroker) -> None:
    broker = start_broker()
    pid_file = broker.directory / "broker.pid"
    assert int(pid_file.read_text()) == broker.pid
    assert broker.stop() == 0
    assert not pid_file.exists()
    broker.start()
    broker.send_signal(signal.SIGINT)
    assert broker.wait() == 130
    assert "Traceback" not in broker.log


def test_a_stop_with_clients_connected(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as idle, Connection(broker.bootstrap) as waiting:
        waiting.create_topic("waited-for")
        waiting.send(fetch_request("waited-for", max_wait_ms=60_000), version=12)
        assert idle.topic_metadata("waited-for").error_code == 0
        assert broker.stop() == 0
        assert idle.is_closed_by_broker()
    assert "Traceback" not in broker.log


def test_ready_line_is_all_there_is_on_stdout(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "broker")
    try:
        broker.start()
        output = broker.stop_and_read()
    finally:
        broker.close()
    assert output == ""
