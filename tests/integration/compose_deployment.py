"""The services of docker-compose.yaml without containers: their commands, in their environments, as processes.

/data and /metadata are directories of the test; what else differs from containers, subclasses say.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
from compose_file import Service, read_image, services
from lab_cluster import partition_list, run, script_command
from waiting import wait_until

START_TIMEOUT_S = 60


class Deployment:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.services = services()
        self.image = read_image()
        self._stack = ExitStack()

    def start(self) -> None:
        for service in self.services:
            self.start_service(service)

    def start_service(self, service: Service) -> None:
        home = self.home(service)
        home.mkdir()
        self._stack.callback(_end, self._start(service, home))

    def close(self) -> None:
        self._stack.close()

    def home(self, service: Service) -> Path:
        return self.directory / service.name

    def logs(self) -> str:
        return "\n".join(log.read_text() for log in sorted(self.directory.glob("*/log")))

    # -- what differs from place to place

    def environment(self, service: Service) -> dict[str, str]:
        return service.environment

    def wrapper(self, service: Service) -> list[str]:
        """A command that runs the service's command behind it."""
        return []

    def http_address(self, service: Service) -> str:
        raise NotImplementedError

    def health_command(self, service: Service) -> list[str]:
        return [*self.wrapper(service), *self.image.healthcheck]

    # -- the lab's first check

    def verify(self) -> None:
        """Broker 1 leads five brokers, which take a topic and a record and have them in their files."""
        wanted = [{"status": "up", "broker_id": number, "leader_broker_id": 1} for number in range(1, 6)]
        wait_until(lambda: self._health() == wanted, "broker 1 leads five brokers", START_TIMEOUT_S)
        for service in self.services:
            self.wait_until_healthy(service)
        brokers = ",".join(f"{number}@{self.http_address(item)}" for number, item in enumerate(self.services, 1))
        created = run(script_command("create_topic", "testtopic", "-b", brokers))
        assert json.loads(created.stdout) == {"topic_name": "testtopic", "partitions": partition_list("testtopic", 3)}
        produced = run(script_command("produce", "testtopic", "-b", brokers), "key\npayload\n\n")
        assert produced.returncode == 0, produced.stderr
        for service in self.services:
            assert_stored(self.home(service))

    def wait_until_healthy(self, service: Service) -> None:
        wait_until(lambda: self._is_healthy(service), f"{service.name} is healthy", START_TIMEOUT_S)

    def _health(self) -> list[object]:
        addresses = [self.http_address(service) for service in self.services]
        try:
            return [httpx.get(f"http://{address}/healthcheck", trust_env=False).json() for address in addresses]
        except httpx.TransportError:
            return []

    def _is_healthy(self, service: Service) -> bool:
        return run(self.health_command(service), env=self._process_environment(service)).returncode == 0

    def _start(self, service: Service, home: Path) -> "subprocess.Popen[bytes]":
        with (home / "log").open("wb") as log:
            return subprocess.Popen(
                [*self.wrapper(service), *service.command],
                cwd=home,
                env=self._process_environment(service),
                stdout=log,
                stderr=log,
            )

    def _process_environment(self, service: Service) -> dict[str, str]:
        """Nothing of ours reaches the service but where programs are."""
        home = self.home(service)
        volumes = {name: f"{home}{text}" for name, text in service.environment.items() if text in self.image.volumes}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return self.environment(service) | volumes | {"PATH": path}


def assert_stored(home: Path) -> None:
    logs = [home / "data" / f"testtopic-{number}" / f"{0:020}.log" for number in (1, 2, 3)]
    assert sum(b"payload" in log.read_bytes() for log in logs) == 1
    assert "create-topic" in (home / "metadata" / "__cluster_metadata.log").read_text()
    assert (home / "metadata" / "quorum-state").exists()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
