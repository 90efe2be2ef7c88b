"""`sskafka cert` as users run it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from sskafka.cli.commands import app


def cert(*arguments: str, exit_code: int = 0) -> str:
    ended = CliRunner().invoke(app, ["cert", *arguments])
    assert ended.exit_code == exit_code, ended.output
    return ended.output


def test_an_authority_and_its_certificates(tmp_path: Path) -> None:
    at = ("--dir", str(tmp_path / "certs"))
    assert "sskafka cert ca" in cert("node", "broker-1", *at, exit_code=1)
    assert "would be written" in cert("ca", *at, "--dry-run")
    assert not (tmp_path / "certs").exists()
    cert("ca", *at)
    assert "--force replaces it" in cert("ca", *at, exit_code=1)
    cert("node", "broker-1", "--host", "kafka.example", "--days", "30", *at)
    cert("user", "alice", *at)
    files = [str(tmp_path / "certs" / name) for name in ("broker-1.pem", "alice.pem")]
    node, root, user, _ = json.loads(cert("show", *files, "--json"))
    assert (node["subject"], node["names"], node["days_left"], node["key"]) == (
        "CN=broker-1",
        ["kafka.example"],
        29,
        "yes",
    )
    assert (root["subject"], root["is_ca"], user["subject"]) == ("CN=SSKafka CA", True, "CN=alice")
    assert "DAYS-LEFT" in cert("show", files[0])


def test_names_of_certificates_stay_in_the_directory(tmp_path: Path) -> None:
    at = ("--dir", str(tmp_path))
    cert("ca", *at)
    for name in ("../other", "ca", "ca-key", ""):
        cert("user", name, *at, exit_code=2)
