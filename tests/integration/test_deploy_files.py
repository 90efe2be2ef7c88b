"""What brokers make of the settings in deploy/: the addresses that clients are told can be reached from outside."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_file import read_image

from sskafka.model.properties import parse_properties
from sskafka.model.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
LOOPBACK = ("127.0.0.1", "localhost")


def resolve(file: str, environment: dict[str, str], overrides: dict[str, str] | None = None) -> Settings:
    settings = Settings.resolve(parse_properties(file), environment, overrides or {}, host_name="inside")
    assert settings.warnings == []
    return settings


def container(environment: dict[str, str]) -> Settings:
    """What the image's command reads, in its environment and that of a container."""
    return resolve((DEPLOY / "container.properties").read_text(), read_image().environment | environment)


def test_a_single_container_is_reachable_through_its_published_port() -> None:
    settings = container({})
    (listener,) = settings.listeners
    assert (listener.host not in LOOPBACK, listener.port) == (True, 9092)
    assert [(item.host, item.port) for item in settings.advertised_listeners] == [("localhost", 9092)]
    (elsewhere,) = container({"SSKAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://my-host:9092"}).advertised_listeners
    assert elsewhere.host == "my-host"
    assert [*settings.data_directories, settings.metadata_directory] == ["/data", "/metadata"]


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "docker-compose.yaml").read_text())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_of_three_containers_is_reachable_from_both_sides(number: int) -> None:
    service = compose()["services"][f"broker-{number}"]
    settings = container(service["environment"])
    published = dict(reversed(ports.removeprefix("127.0.0.1:").split(":")) for ports in service["ports"])
    at = {item.name: (item.host, item.port) for item in settings.advertised_listeners}
    inside = {item.name: item.port for item in settings.listeners}
    assert at["EXTERNAL"] == ("localhost", int(published[str(inside["EXTERNAL"])]))
    assert at["INTERNAL"] == (service["hostname"], inside["INTERNAL"])
    assert settings.inter_broker_listener == "INTERNAL"
    assert [(voter.id, voter.host) for voter in settings.voters] == [(1, "broker-1"), (2, "broker-2"), (3, "broker-3")]
    assert settings["node.id"] == number
    http = settings.http_endpoint
    assert http is not None
    assert str(http.port) in published


def test_containers_share_no_volume_and_no_port() -> None:
    services = compose()["services"].values()
    volumes = [volume.split(":")[0] for service in services for volume in service["volumes"]]
    assert sorted(volumes) == sorted(compose()["volumes"])
    ports = [port.rpartition(":")[0] for service in services for port in service["ports"]]
    assert len(set(ports)) == len(ports)


def kubernetes(kind: str) -> Any:
    (found,) = (item for item in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()) if item["kind"] == kind)
    return found


@pytest.mark.parametrize("number", [0, 1, 2])
def test_pods_know_themselves_and_each_other(number: int) -> None:
    stateful, service = kubernetes("StatefulSet"), kubernetes("Service")["metadata"]["name"]
    assert stateful["spec"]["serviceName"] == service
    (broker,) = stateful["spec"]["template"]["spec"]["containers"]
    pod = f"{stateful['metadata']['name']}-{number}"
    line = broker["args"][0].replace("${HOSTNAME##*-}", str(number)).replace("$HOSTNAME", pod)
    overrides = dict(pair.split("=", 1) for pair in re.findall(r"--set (\S+)", line))
    environment = {item["name"]: item["value"] for item in broker["env"]}
    settings = resolve(kubernetes("ConfigMap")["data"]["server.properties"], environment, overrides)
    assert settings["node.id"] == number
    assert [(item.host, item.port) for item in settings.advertised_listeners] == [(f"{pod}.{service}", 9092)]
    voters = {voter.id: voter.host for voter in settings.voters}
    assert voters[number] == f"{pod}.{service}"
    assert len(voters) == stateful["spec"]["replicas"]
    mounted = [mount["mountPath"] for mount in broker["volumeMounts"]]
    assert all(path.startswith(tuple(mounted)) for path in (*settings.data_directories, settings.metadata_directory))
    ports = {port["name"]: port["containerPort"] for port in broker["ports"]}
    http = settings.http_endpoint
    assert http is not None
    assert ports == {"kafka": 9092, "controller": settings.controller_listeners[0].port, "http": http.port}


def test_the_unit_starts_a_broker_that_logs_json() -> None:
    unit = (DEPLOY / "sskafka.service").read_text()
    assert "ExecStart=/opt/sskafka/bin/sskafka start /etc/sskafka/server.properties --log-format json\n" in unit
