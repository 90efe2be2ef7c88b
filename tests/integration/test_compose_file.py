"""Exercise 4.1.1: the compose file is one, and what its services run is the lab's cluster.

Here the services share the address of this machine, so that no rights are needed; tests/chaos runs them under their own
host names, in networks of their own.
"""

import sys
from pathlib import Path

import jsonschema_rs
import pytest
from compose_deployment import Deployment
from compose_file import DOCKERFILE, SCHEMA, Service, read_compose, read_image, services
from free_ports import free_ports


def test_the_file_follows_the_schema() -> None:
    jsonschema_rs.Draft202012Validator(SCHEMA).validate(read_compose())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("services", "broker-1", "port"), ["127.0.0.1:1:1"]),
        (("services", "broker-1", "ports"), [8001]),
        (("services", "broker-1", "ports"), ["8001:8080"]),  # would publish the vote API to the network
        (("service",), {}),
    ],
)
def test_the_schema_finds_mistakes(place: tuple[str, ...], value: object) -> None:
    compose = read_compose()
    *path, last = place
    inner = compose
    for key in path:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.Draft202012Validator(SCHEMA).validate(compose)


def test_five_brokers_have_the_ports_of_the_lab() -> None:
    found = services()
    assert [(service.host, service.host_port) for service in found] == [
        (f"broker-{number}", 8000 + number) for number in range(1, 6)
    ]
    assert [service.environment["BROKER_ID"] for service in found] == ["1", "2", "3", "4", "5"]
    assert len({service.environment["BROKERS"] for service in found}) == 1
    listed = found[0].environment["BROKERS"].split(",")
    assert listed == [f"{s.environment['BROKER_ID']}@{s.host}:{s.container_port}" for s in found]


def test_every_volume_is_declared_and_no_two_brokers_share_one() -> None:
    used = [volume for service in services() for volume in service.volumes]
    assert sorted(used) == sorted(read_compose()["volumes"])
    assert len(used) == len(set(used))
    for service in services():
        assert set(service.volumes.values()) == set(read_image().volumes) == {"/data", "/metadata"}
        assert service.environment["SSKAFKA_LOG_DIRS"] == "/data"
        assert service.environment["SSKAFKA_METADATA_LOG_DIR"] == "/metadata"


def test_the_image_runs_as_nobody_special_and_looks_after_itself() -> None:
    image = read_image()
    assert image.user not in {"root", "0"}
    assert image.command == ["sskafka", "start", "/var/lib/sskafka/server.properties"]
    assert all(service.command == ["sskafka", "start"] for service in services())
    assert f"chown {image.user}:{image.user} /data /metadata" in DOCKERFILE.read_text()
    assert all(f":{service.container_port}/readyz" in image.healthcheck[-1] for service in services())


class PortDeployment(Deployment):
    """All on one address, so that BROKERS names a port of its own for each server."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        ports = iter(free_ports(2 * len(self.services)))
        self._ports = {service.name: (next(ports), next(ports)) for service in self.services}

    def environment(self, service: Service) -> dict[str, str]:
        entries = [
            f"{item.environment['BROKER_ID']}@localhost:{http}:{kafka}"
            for item, (http, kafka) in zip(self.services, self._ports.values(), strict=True)
        ]
        return service.environment | {"BROKERS": ",".join(entries)}

    def http_address(self, service: Service) -> str:
        return f"localhost:{self._ports[service.name][0]}"

    def health_command(self, service: Service) -> list[str]:
        inside = f"localhost:{service.container_port}"
        return [word.replace(inside, self.http_address(service)) for word in super().health_command(service)]


@pytest.mark.long
@pytest.mark.usefixtures("_ours")
def test_what_the_services_run_is_the_labs_cluster(tmp_path: Path) -> None:
    deployment = PortDeployment(tmp_path)
    try:
        deployment.start()
        deployment.verify()
    finally:
        deployment.close()
        sys.stderr.write(deployment.logs())
