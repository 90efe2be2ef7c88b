"""`docker run` and deploy/docker-compose.yaml without an engine: the image's command and environment as processes.

What a container adds is left out: its file system, its network and its user. Ports that the files name are free ports
here, one for each listener of each broker, because the brokers share one machine.
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from compose_file import ROOT, read_image
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from free_ports import free_ports
from waiting import wait_until

SETTINGS = ROOT / "deploy" / "container.properties"
COMPOSE = ROOT / "deploy" / "docker-compose.yaml"
CLIENT_SECONDS = 30
STOP_SECONDS = 40


@contextmanager
def container(home: Path, environment: Mapping[str, str], file: str) -> Iterator[None]:
    """Run the image's command with `file` as its settings, and volumes in `home`."""
    home.mkdir()
    (home / "server.properties").write_text(file)
    image = read_image()
    command = [word.replace("/var/lib/sskafka", str(home)) for word in image.command]
    command[0] = str(Path(sys.executable).with_name(command[0]))
    volumes = {"SSKAFKA_LOG_DIRS": str(home / "data"), "SSKAFKA_METADATA_LOG_DIR": str(home / "metadata")}
    assert set(volumes) <= set(image.environment)
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=home, env={**os.environ, **environment, **volumes}, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def with_ports(text: str, ports: Mapping[int, int]) -> str:
    """Replace the ports of a setting."""
    return re.sub(r":(\d+)(?=\D|$)", lambda found: f":{ports.get(int(found[1]), int(found[1]))}", text)


def addresses(bootstrap: str) -> list[str]:
    """Return the addresses that a client at `bootstrap` is told, by broker id."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    brokers = client.list_topics(timeout=5).brokers
    return [f"{brokers[number].host}:{brokers[number].port}" for number in sorted(brokers)]


def is_told(bootstrap: str, expected: list[str]) -> bool:
    try:
        return addresses(bootstrap) == expected
    except Exception:  # the broker has not started yet
        return False


def write_and_read(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("orders", b"3 apples")
    assert producer.flush(CLIENT_SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    record = consumer.poll(CLIENT_SECONDS)
    assert record is not None
    assert record.value() == b"3 apples"
    consumer.close()


def outside_address() -> str:
    """Return an address of this machine that is not loopback, as that of a container; else loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "localhost"),
        ({"SSKAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost.localdomain:9092"}, "localhost.localdomain"),
    ],
)
def test_a_single_container_serves_clients_at_its_published_port(
    tmp_path: Path, environment: dict[str, str], told: str
) -> None:
    kafka, http = free_ports(2)
    ports = {9092: kafka, 8080: http}
    settings = {name: with_ports(value, ports) for name, value in environment.items()}
    with container(tmp_path / "broker", settings, with_ports(SETTINGS.read_text(), ports)):
        through_the_network = f"{outside_address()}:{kafka}"  # as the engine forwards a published port
        wait_until(lambda: is_told(through_the_network, [f"{told}:{kafka}"]), "the broker tells its address", 60)
        if told == "localhost":
            write_and_read(through_the_network)


def test_the_health_check_of_the_image_succeeds(tmp_path: Path) -> None:
    kafka, http = free_ports(2)
    ports = {9092: kafka, 8080: http}
    check = [with_ports(word, ports) for word in read_image().healthcheck]
    assert check[0] == "python"
    with container(tmp_path / "broker", {}, with_ports(SETTINGS.read_text(), ports)):
        wait_until(
            lambda: subprocess.run([sys.executable, *check[1:]], capture_output=True, check=False).returncode == 0,
            "the container is healthy",
            60,
        )


@pytest.mark.long
def test_three_containers_serve_clients_outside_and_inside(tmp_path: Path) -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    published, internal, controllers = free_ports(3), free_ports(3), free_ports(3)
    with ExitStack() as running:
        for index, (name, service) in enumerate(services.items()):
            environment = service["environment"]
            (port,) = (int(port.split(":")[1]) for port in service["ports"] if port.endswith(":9092"))
            mine = {9092: published[index], port: published[index], 19092: internal[index], 9093: controllers[index]}
            settings = {key: with_ports(value, mine) for key, value in environment.items() if "QUORUM" not in key}
            settings["SSKAFKA_CONTROLLER_QUORUM_VOTERS"] = ",".join(
                f"{number + 1}@localhost:{at}" for number, at in enumerate(controllers)
            )
            listeners = (
                f"EXTERNAL://:{published[index]},INTERNAL://:{internal[index]},CONTROLLER://:{controllers[index]}"
            )
            assert settings["SSKAFKA_LISTENERS"] == listeners
            advertised = f"EXTERNAL://localhost:{published[index]},INTERNAL://{name}:{internal[index]}"
            settings["SSKAFKA_ADVERTISED_LISTENERS"] = advertised.replace(name, "localhost")
            running.enter_context(container(tmp_path / name, settings, with_ports(SETTINGS.read_text(), {8080: 0})))
        outside, inside = ([f"localhost:{port}" for port in ports] for ports in (published, internal))
        for address in outside:
            wait_until(lambda at=address: is_told(at, outside), f"{address} tells the published ports", 90)
        assert addresses(inside[0]) == inside
        write_and_read(outside[0])


def test_the_versions_of_the_files_are_those_of_this_project() -> None:
    """The base image has a Python that the package supports."""
    (version,) = set(re.findall(r"^FROM python:(\d+\.\d+)-slim", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert f"Programming Language :: Python :: {version}" in (ROOT / "pyproject.toml").read_text()


def is_in_the_build_context(source: str, rules: list[str]) -> bool:
    """Apply the lines of .dockerignore: the last one that matches the path or a directory above it decides."""
    above = source.split("/")
    names = ["/".join(above[:count]) for count in range(1, len(above) + 1)]
    matching = [rule for rule in rules if any(fnmatch(name, rule.removeprefix("!")) for name in names)]
    return not matching or matching[-1].startswith("!")


def test_the_dockerfile_copies_only_files_of_the_build_context() -> None:
    rules = (ROOT / ".dockerignore").read_text().split()
    copies = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    sources = [source for line in copies for source in line.split()]
    assert "deploy/container.properties" in sources
    assert [source for source in sources if not is_in_the_build_context(source, rules)] == []
    assert not is_in_the_build_context("deploy/check.py", rules)
