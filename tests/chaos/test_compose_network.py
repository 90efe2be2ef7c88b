"""The lab's compose file under its own host names and ports: each service in a network namespace of its own.

A mount namespace gives each service a hosts file that names all of them, as the container engine's resolver would.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_network import Network
from compose_deployment import Deployment
from compose_file import Service

INSIDE = 'mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"'


class NetworkDeployment(Deployment):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._network = Network(len(self.services))
        self._hosts = directory / "hosts"
        self._hosts.write_text("127.0.0.1 localhost\n")

    def start_service(self, service: Service) -> None:
        """A container engine knows the names of containers that run."""
        with self._hosts.open("a") as hosts:
            hosts.write(f"{self._network.host(self._number(service))} {service.host}\n")
        super().start_service(service)

    def close(self) -> None:
        super().close()
        self._network.close()

    def wrapper(self, service: Service) -> list[str]:
        namespace = self._network.namespace(self._number(service))
        inside = ["unshare", "--mount", "--uts", "sh", "-c", INSIDE, "sh", str(self._hosts), service.host]
        return ["ip", "netns", "exec", namespace, *inside]

    def http_address(self, service: Service) -> str:
        return f"{self._network.host(self._number(service))}:{service.container_port}"

    def _number(self, service: Service) -> int:
        return int(service.environment["BROKER_ID"])


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[NetworkDeployment]:
    deployed = NetworkDeployment(tmp_path)
    try:
        yield deployed
    finally:
        deployed.close()
        sys.stderr.write(deployed.logs())


def test_the_services_find_each_other_by_name_also_when_one_comes_late(deployment: NetworkDeployment) -> None:
    *early, late = deployment.services
    for service in early:
        deployment.start_service(service)
    for service in early:
        deployment.wait_until_healthy(service)
    deployment.start_service(late)
    deployment.verify()
