import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sskafka.cli.commands import app
from sskafka.records.builder import NewRecord, build_batch
from sskafka.storage.broker_directory import lock_directory
from sskafka.storage.disk import OsDisk


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two batches without indexes, as somebody else might have written them."""
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    partition = tmp_path / "orders-0"
    partition.mkdir()
    batches = [build_batch([NewRecord(None, b"v", (), 1000)], base_offset=offset) for offset in range(2)]
    (partition / "00000000000000000000.log").write_bytes(b"".join(batches))
    return tmp_path


def verify(*arguments: object, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["log", "verify", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


def verify_json(*arguments: object, exit_code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(verify(*arguments, "--format", "json", exit_code=exit_code).stdout)
    return found


def test_findings_are_told_and_mended(data: Path) -> None:
    result = verify(data, exit_code=1)
    assert "orders-0: 2 damages, 1 segments, 2 batches, offsets 0..2" in result.stdout
    assert "damage (rebuild): " in result.stdout
    assert "00000000000000000000.index: it is missing" in result.stdout
    assert "2 problems found" in result.stderr
    assert "--repair" in result.stderr
    assert f"repaired: {data}/orders-0: indexes, epochs and snapshots rebuilt" in verify(data, "--repair").stdout
    assert "orders-0: sound" in verify(data).stdout


def test_losing_batches_needs_a_word(data: Path) -> None:
    path = data / "orders-0" / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[65] ^= 1
    path.write_bytes(content)
    refused = verify(data, "--repair", exit_code=1)
    assert "not repaired: " in refused.stdout
    assert "--allow-data-loss" in refused.stderr
    assert path.read_bytes() == content
    assert "truncated by" in verify(data, "--repair", "--allow-data-loss").stdout
    assert path.read_bytes() == b""
    verify(data, "--allow-data-loss", exit_code=2)


def test_json(data: Path) -> None:
    found = verify_json(data, exit_code=1)
    assert found["partitions"] == [
        {
            "name": "orders-0",
            "segments": 1,
            "batches": 2,
            "start_offset": 0,
            "end_offset": 2,
            "gaps": 0,
            "size_bytes": (data / "orders-0" / "00000000000000000000.log").stat().st_size,
            "damages": 2,
        }
    ]
    assert {finding["remedy"] for finding in found["findings"]} == {"note", "rebuild"}
    mended = verify_json(data, "--repair")
    assert (mended["left"], [one["is_done"] for one in mended["repairs"]]) == (0, [True])


def test_a_directory_in_use_is_refused(data: Path) -> None:
    lock = lock_directory(OsDisk(), str(data))
    for options in ([], ["--repair"]):
        assert "in use by another broker" in verify(data, *options, exit_code=1).stderr
    lock.release()
    assert "not a directory" in verify(data / "none", exit_code=1).stderr
