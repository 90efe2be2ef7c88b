"""kill -9 of a broker while it compacts, at moments that nobody chose: every key keeps its last value."""

import os
import random
import signal
import time
from pathlib import Path

from broker_process import BrokerProcess
from waiting import wait_until
from whole_partitions import read_from, state_of
from wire_connection import Connection

from sskafka.records.builder import NewRecord, build_batch

SEED = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
KILLS = int(os.environ.get("KILLS", "12"))
KEYS = 200
SETTINGS = {
    "log.cleaner.backoff.ms": 1,
    "log.segment.bytes": 50_000,
    "log.segment.delete.delay.ms": 0,
    "log.cleaner.io.max.bytes.per.second": 1_500_000,
}


def write(connection: Connection, rng: random.Random, model: dict[bytes, bytes | None]) -> None:
    """Batches of puts and tombstones over random keys; what was acknowledged is in the model."""
    for _ in range(60):
        pairs = [(b"%d" % rng.randrange(KEYS), _value(rng)) for _ in range(30)]
        now_ms = int(time.time() * 1000)
        batch = build_batch([NewRecord(key, value, (), now_ms) for key, value in pairs])
        assert connection.produce("table", batch).error_code == 0
        model |= dict(pairs)


def _value(rng: random.Random) -> bytes | None:
    return None if rng.random() < 0.1 else rng.randbytes(rng.randrange(20, 80))


def test_kill_amid_compaction(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print(f"SEED={SEED}")  # noqa: T201
    broker = BrokerProcess(tmp_path / "broker", SETTINGS).start()
    model: dict[bytes, bytes | None] = {}
    try:
        with Connection(broker.bootstrap) as connection:
            connection.create_topic("table", cleanup_policy="compact", min_cleanable_dirty_ratio=0.01)
        directory = broker.data_directory / "table-0"
        amid = 0
        for _ in range(KILLS):
            with Connection(broker.bootstrap) as connection:
                write(connection, rng, model)
            wait_until(lambda: list(directory.glob("*.cleaned")), "the cleaner is at work")
            time.sleep(rng.random() * 0.2)
            broker.send_signal(signal.SIGKILL)
            broker.wait()
            amid += bool(list(directory.glob("*.cleaned")) or list(directory.glob("*.swap")))
            broker.start()
            with Connection(broker.bootstrap) as connection:
                found = state_of(read_from(connection, "table", 0))
                assert found == {key: value for key, value in model.items() if value is not None}
        assert amid > 0, "no kill hit a compaction"
        assert broker.stop() == 0
    finally:
        broker.close()
