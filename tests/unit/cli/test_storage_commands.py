import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sskafka.cli.broker_settings import home_of, load_settings
from sskafka.cli.commands import app
from sskafka.model.ids import parse_uuid


def storage(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["storage", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result.stdout


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=3\nlog.dirs={tmp_path}/a,{tmp_path}/b\nlisteners=PLAINTEXT://localhost:0\n")
    return file


def test_random_uuids_are_ids() -> None:
    first, second = storage("random-uuid").strip(), storage("random-uuid").strip()
    assert first != second
    assert len(parse_uuid(first)) == 16
    assert len(parse_uuid(json.loads(storage("random-uuid", "--output", "json"))["cluster.id"])) == 16


def test_format_and_info(properties: Path, tmp_path: Path) -> None:
    assert json.loads(storage("info", "-c", properties, "--format", "json", exit_code=1))["unformatted"] == [
        f"{tmp_path}/a",
        f"{tmp_path}/b",
    ]
    cluster_id = storage("random-uuid").strip()
    assert storage("format", "-c", properties, "-t", cluster_id).strip() == cluster_id
    info = json.loads(storage("info", "-c", properties, "--format", "json"))
    assert {meta["cluster.id"] for meta in info["directories"].values()} == {cluster_id}
    assert {meta["node.id"] for meta in info["directories"].values()} == {3}
    assert f"{tmp_path}/a: cluster.id={cluster_id} node.id=3" in storage("info", "-c", properties)


def test_formatting_twice_is_refused_unless_allowed(properties: Path) -> None:
    cluster_id = storage("format", "-c", properties)
    storage("format", "-c", properties, exit_code=1)
    assert storage("format", "-c", properties, "--ignore-formatted") == cluster_id


def test_settings_that_nobody_knows_are_named(properties: Path) -> None:
    properties.write_text(properties.read_text() + "log.dirz=/elsewhere\n")
    result = CliRunner().invoke(app, ["storage", "format", "-c", str(properties)])
    assert "log.dirz (from server.properties): unknown setting, ignored; did you mean" in result.stderr


def test_problems_are_told(properties: Path) -> None:
    storage("format", "-c", properties)
    assert "problem: " in storage("info", "-c", properties, "--set", "node.id=4", exit_code=1)
    storage("format", "-c", properties, "-r", "0.8", exit_code=2)
    storage("format", "-c", "/no/such/file", exit_code=1)


def test_settings_come_from_file_environment_and_command_line(
    properties: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSKAFKA_NUM_PARTITIONS", "7")
    settings = load_settings(properties, ["node.id=9"])
    assert (settings["node.id"], settings["num.partitions"]) == (9, 7)
    assert home_of(properties) == properties.parent


def test_without_a_file_there_is_a_single_node_for_this_machine() -> None:
    settings = load_settings(None, None)
    assert settings.data_directories == ("sskafka-data/data",)
    assert [(item.host, item.port) for item in settings.listeners] == [("localhost", 9092)]
    assert home_of(None) == Path("sskafka-data")
