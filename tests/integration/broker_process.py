"""A broker as users run it: `sskafka start` in a process of its own, on a free port, in a directory of its own.

The process is stopped by its pid alone. What it writes to stderr is kept in a file, so that a failed test shows it.
"""

import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

COMMAND = (str(Path(sys.executable).with_name("sskafka")), "start")
START_TIMEOUT_S = 60  # machines that test are busy
STOP_TIMEOUT_S = 20


class StartFailedError(AssertionError):
    """The process ended, or said nothing, instead of printing its READY line."""


class BrokerProcess:
    """One data directory and, between start and stop, the process that serves it.

    `wrapper` is a command that runs the broker's command behind it, such as `unshare`; `options` stand behind it.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        wrapper: Sequence[str] = (),
        *,
        file: bool = True,
        options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.data_directory = directory / "data"
        self.settings = dict(settings or {})
        self.bootstrap = ""
        self.http = ""
        self.start_seconds = 0.0
        self.options = options
        self._wrapper = wrapper
        self._has_file = file
        self._log_path = directory / "stderr.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.rsplit(":", 1)
        return host, int(port)

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> "BrokerProcess":
        """Returns when the broker says that it is ready."""
        began = time.monotonic()
        self.launch()
        self.wait_ready()
        self.start_seconds = time.monotonic() - began
        return self

    def wait_ready(self) -> None:
        """Returns when the launched broker says that it is ready."""
        line = self._first_line()
        words = dict(word.split("=", 1) for word in line.split()[1:])
        if not line.startswith("READY ") or "bootstrap" not in words:
            raise StartFailedError(f"expected a READY line, got {line!r}; stderr:\n{self.log}")
        self.bootstrap = words["bootstrap"]
        self.http = words.get("http", "")

    def format(self, *options: str) -> None:
        """Format the data directory, as `sskafka storage format` does."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [COMMAND[0], "storage", "format", "--config", *self._file_argument(), *options]
        done = subprocess.run(
            command, capture_output=True, cwd=self.directory, timeout=START_TIMEOUT_S, check=False, text=True
        )
        assert done.returncode == 0, done.stderr

    def launch(self) -> None:
        """Starts the process and waits for nothing."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [*self._wrapper, *COMMAND, *self._file_argument(), *self.options]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=self.directory)

    def wait(self) -> int:
        """The exit code of a process that ends by itself."""
        return self._reap(STOP_TIMEOUT_S)

    def send_signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def stop(self) -> int:
        """Ask it to stop and wait for it: the exit code."""
        self.send_signal(signal.SIGTERM)
        return self._reap(STOP_TIMEOUT_S)

    def stop_and_read(self) -> str:
        """Stop it and return what stood on stdout after the READY line."""
        self.send_signal(signal.SIGTERM)
        output, _ = self._running().communicate(timeout=STOP_TIMEOUT_S)
        self._reap(STOP_TIMEOUT_S)
        return output.decode()

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._running().kill()
        self._reap(STOP_TIMEOUT_S)

    def restart(self, *, unclean: bool = False) -> "BrokerProcess":
        """Stop (or kill) and start again; the port is another one."""
        if unclean:
            self.kill()
        else:
            assert self.stop() == 0, self.log
        return self.start()

    def close(self) -> None:
        """Whatever state it is in, leave no process behind."""
        if self._process is not None:
            self._process.kill()
            self._reap(STOP_TIMEOUT_S)

    def _file_argument(self) -> list[str]:
        if not self._has_file:
            return []
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        return [str(properties)]

    def _properties(self) -> dict[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": self.data_directory,
            "log.retention.ms": -1,  # many tests write records with timestamps of long ago
            **self.settings,
        }

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "the broker was not started"
        return self._process

    def _first_line(self) -> str:
        stdout = self._running().stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(START_TIMEOUT_S):
                raise StartFailedError(f"no READY line within {START_TIMEOUT_S} s; stderr:\n{self.log}")
        return stdout.readline().decode()

    def _reap(self, timeout_s: float) -> int:
        process = self._running()
        try:
            exit_code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the broker did not end within {timeout_s} s; stderr:\n{self.log}") from None
        finally:
            if process.stdout is not None:
                process.stdout.close()
        self._process = None
        return exit_code


StartBroker = Callable[..., BrokerProcess]
"""What the fixture `start_broker` is: settings in, a running broker out."""
