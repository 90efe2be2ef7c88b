"""`sskafka log verify` beside a real broker: refused while it runs, useful after it was killed."""

import json
import subprocess
from pathlib import Path
from typing import Any

from broker_process import COMMAND, StartBroker
from wire_connection import Connection, values_batch, values_in


def verify(directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [COMMAND[0], "log", "verify", str(directory), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def verify_json(directory: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(verify(directory, "--format", "json", *options).stdout)
    return found


def test_a_killed_broker_leaves_nothing_that_cannot_be_repaired(start_broker: StartBroker) -> None:
    broker = start_broker({"log.segment.bytes": 20_000, "log.index.interval.bytes": 500, "log.retention.ms": -1})
    values = [b"value %d " % number * 20 for number in range(300)]
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        for value in values:
            assert connection.produce("orders", values_batch(value)).error_code == 0
    for options in ((), ("--repair",)):
        refused = verify(broker.data_directory, *options)
        assert refused.returncode == 1
        assert "in use by another broker" in refused.stderr
    broker.kill()
    first, *_, last = sorted((broker.data_directory / "orders-0").glob("*.log"))
    metadata = max((broker.data_directory / "__cluster_metadata-0").glob("*.log"))
    for torn in (last, metadata):
        with torn.open("ab") as file:
            file.write(first.read_bytes()[:100])  # what a power cut leaves of an append
    found = verify_json(broker.data_directory)
    assert [finding["remedy"] for finding in found["findings"]].count("truncate") == 2
    assert {finding["remedy"] for finding in found["findings"]} <= {"note", "rebuild", "truncate"}
    assert verify_json(broker.data_directory, "--repair")["left"] == 0
    assert verify(broker.data_directory).returncode == 0
    broker.start()
    with Connection(broker.bootstrap) as connection:
        fetched = connection.fetch("orders", partition_max_bytes=1 << 24)
        assert values_in(fetched) == values[: len(values_in(fetched))]
        assert fetched.high_watermark == len(values)
