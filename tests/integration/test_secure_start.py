"""`sskafka start --secure`: one command to a single node with TLS, SASL and ACLs."""

import signal
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sskafka.model.properties import parse_properties

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TIMEOUT_S = 60
CA = "certs/ca.pem"
ANY_PORTS = ("--set", "listeners=SASL_SSL://localhost:0", "--set", "http.listener=localhost:0")

pytestmark = pytest.mark.usefixtures("_ours")


@contextmanager
def started(directory: Path, *options: str) -> Iterator[dict[str, str]]:
    """Run a node in this directory; yield its addresses by server. What it says must not contain the password."""
    log = directory / "stderr"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [SSKAFKA, "start", *ANY_PORTS, *options], cwd=directory, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("READY"), log.read_text()
            yield dict(word.split("=", 1) for word in line.split()[1:])
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.communicate(timeout=TIMEOUT_S)[0]
    assert process.returncode == 0
    assert password(directory) not in log.read_text() + line + rest
    assert "client.properties" in log.read_text()


def password(directory: Path) -> str:
    return parse_properties((directory / "sskafka-data" / "librdkafka.properties").read_text())["sasl.password"]


def sskafka(*arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    ended = subprocess.run([SSKAFKA, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == exit_code, ended.stderr
    return ended


def test_a_single_node_is_secured_and_stays_so(tmp_path: Path) -> None:
    home = tmp_path / "sskafka-data"
    as_admin = ("--command-config", str(home / "client.properties"))
    with started(tmp_path, "--secure"):
        sskafka("topic", "create", "orders", *as_admin)
        before = password(tmp_path)
    for path in (home / "client.properties", home / "certs" / "ca-key.pem", home / "certs" / "node.pem"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    with started(tmp_path) as addresses:  # without the option
        assert password(tmp_path) == before
        assert "orders" in sskafka("topic", "list", *as_admin).stdout
        sskafka("topic", "list", "-b", addresses["bootstrap"], "-X", "request.timeout.ms=2000", exit_code=1)
        url, trusted = f"https://{addresses['http']}/admin/v1/topics", ssl.create_default_context(cafile=home / CA)
        assert httpx.get(url, verify=trusted).status_code == 401
        assert httpx.get(url, verify=trusted, auth=("admin", before)).status_code == 200


def test_what_cannot_be_secured_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\n")
    assert "without a file" in sskafka("start", "--secure", str(file), exit_code=2).stderr
    plain = subprocess.run(
        [SSKAFKA, "start", "--secure", "--set", "listeners=SASL_SSL://localhost:0,PLAINTEXT://localhost:0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert plain.returncode == 2
    assert "every listener must be SASL_SSL" in plain.stderr
