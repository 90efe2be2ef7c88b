"""The image, built from the Dockerfile and run by podman: clients outside reach it at its published ports."""

import logging
import subprocess

import pytest
import yaml
from engine import BASE, ROOT, Engine
from outside import SECONDS_MAX, addresses, read, write
from tests.integration.free_ports import free_ports
from tests.integration.waiting import wait_until

IMAGE_BYTES_MAX = 200_000_000
ADDED_BYTES_MAX = 65_000_000

log = logging.getLogger(__name__)


def is_healthy(engine: Engine, container: str) -> bool:
    check = ["podman", "healthcheck", "run", container]
    return subprocess.run(check, env=engine.environment, capture_output=True, check=False).returncode == 0


def test_the_image_is_small(engine: Engine, has_real_base: bool) -> None:
    size, base = engine.size_bytes("sskafka"), engine.size_bytes(BASE)
    log.info("the image has %d bytes, %d of them from its base", size, base)
    assert size - base < ADDED_BYTES_MAX
    assert size < IMAGE_BYTES_MAX or not has_real_base


@pytest.mark.usefixtures("has_real_base")
def test_clients_outside_use_a_container_and_a_restart_keeps_records(engine: Engine) -> None:
    (port,) = free_ports(1)
    bootstrap = f"localhost:{port}"
    publish = ("-p", f"127.0.0.1:{port}:9092", "-e", f"SSKAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{bootstrap}")
    engine.run("podman", "run", "--detach", "--name", "one", *publish, "sskafka")
    wait_until(lambda: addresses(bootstrap) == [bootstrap], "the container serves clients", SECONDS_MAX)
    write(bootstrap, b"before")
    wait_until(lambda: is_healthy(engine, "one"), "the container is healthy", SECONDS_MAX)
    assert "compiled" in engine.run("podman", "exec", "one", "sskafka", "--version")
    assert engine.run("podman", "exec", "one", "id", "-u") == "10001"
    engine.run("podman", "stop", "--time", "60", "one")
    assert engine.run("podman", "inspect", "--format", "{{.State.ExitCode}}", "one") == "0"
    engine.run("podman", "start", "one")
    wait_until(lambda: addresses(bootstrap) == [bootstrap], "the container serves clients again", SECONDS_MAX)
    write(bootstrap, b"after")
    assert read(bootstrap, 2) == [b"after", b"before"]
    engine.run("podman", "rm", "--force", "--volumes", "one")


def with_free_ports(compose: dict[str, dict[str, dict[str, object]]], ports: list[int]) -> str:
    """Return the compose file with other published ports, and without the build, which is done."""
    for service, port in zip(compose["services"].values(), ports, strict=True):
        environment = service["environment"]
        assert isinstance(environment, dict)
        advertised = environment["SSKAFKA_ADVERTISED_LISTENERS"].split(",")
        environment["SSKAFKA_ADVERTISED_LISTENERS"] = ",".join([f"EXTERNAL://localhost:{port}", *advertised[1:]])
        service["ports"] = [f"127.0.0.1:{port}:9092"]
        del service["build"]
    return yaml.safe_dump({key: value for key, value in compose.items() if not key.startswith("x-")})


@pytest.mark.usefixtures("has_real_base")
def test_clients_outside_reach_the_three_brokers_of_the_compose_file(engine: Engine) -> None:
    ports = free_ports(3)
    outside = [f"localhost:{port}" for port in ports]
    file = engine.home / "three" / "docker-compose.yaml"
    file.parent.mkdir()
    file.write_text(with_free_ports(yaml.safe_load((ROOT / "deploy/docker-compose.yaml").read_text()), ports))
    compose = ["podman-compose", "-p", "sskafka-three", "-f", str(file)]
    subprocess.run([*compose, "up", "--detach"], env=engine.environment, check=True, capture_output=True)
    try:
        for address in outside:
            wait_until(lambda at=address: addresses(at) == outside, f"{address} tells all addresses", SECONDS_MAX)
        write(outside[0], b"3 apples")
        engine.run("podman", "stop", "--time", "60", "sskafka-three_broker-1_1")
        write(outside[1], b"2 pears")
        assert read(outside[2], 2) == [b"2 pears", b"3 apples"]
    finally:
        subprocess.run([*compose, "down", "--volumes"], env=engine.environment, check=True, capture_output=True)
