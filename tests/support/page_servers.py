"""The servers that a page of the documentation starts: `sskafka start` and `sskafka cluster up`, on free ports."""

import re
import selectors
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 40
FREE_PORTS = {
    "sskafka start": "--set listeners=PLAINTEXT://localhost:0 --set http.listener=localhost:0"
    " --set adr.listener=localhost:0",
    "sskafka cluster up": "--kafka-port 0 --http-port 0",
}
QUICK = "--set offsets.topic.num.partitions=1 --set group.initial.rebalance.delay.ms=0"
TOKENS = "--set delegation.token.secret.key=pages"
"""What docs/security.md tells its reader to set on every node."""


class Addresses(NamedTuple):
    bootstrap: str
    http: str
    adr: str
    lab: str = ""
    """The HTTP addresses of all brokers, as the lab's scripts take them: `1@localhost:8001,...`."""


def is_server(line: str) -> bool:
    return line.startswith(tuple(FREE_PORTS))


class PageServer:
    """A command of a page that runs brokers, in the page's directory."""

    def __init__(self, line: str, directory: Path, environment: Mapping[str, str]) -> None:
        (ports,) = (options for command, options in FREE_PORTS.items() if line.startswith(command))
        if "--secure" in line and line.startswith("sskafka start"):
            ports = ports.replace("PLAINTEXT:", "SASL_SSL:")
        tokens = TOKENS if "--secure" in line else ""
        self._line = f"exec {line} {ports} {QUICK} {tokens}"
        self._directory = directory
        self._environment = environment
        self._log = directory / "server.log"
        self._process: subprocess.Popen[str] | None = None
        self._ready = ""

    @property
    def printed(self) -> str:
        return self._log.read_text(errors="replace") + self._ready

    def start(self) -> Addresses:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", self._line],
                cwd=self._directory,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        stdout = self._process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            assert selector.select(READY_SECONDS_MAX), f"{self._line}\nis not ready: {self.printed}"
        self._ready = stdout.readline()
        assert self._ready.startswith("READY "), f"{self._line}\n{self.printed}"
        words = dict(word.split("=", 1) for word in self._ready.split()[1:])
        adr = re.search(r"^ *adr +(\S+)$", self.printed, re.MULTILINE)
        http = words.get("http", "").split(",")
        lab = ",".join(f"{number}@{address}" for number, address in enumerate(http, 1))
        return Addresses(words["bootstrap"], http[0], adr[1] if adr else "", lab)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
