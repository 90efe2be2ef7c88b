"""A broker that was killed recovers its logs in several threads before it serves them."""

import re
from pathlib import Path

import pytest
from broker_process import StartBroker
from wire_connection import Connection, values_batch, values_in

from sskafka.model.errors import ErrorCode

PARTITIONS = 24


@pytest.mark.parametrize("threads", [1, 4])
def test_killed_brokers_recover_in_threads(start_broker: StartBroker, tmp_path: Path, threads: int) -> None:
    directories = [tmp_path / "first", tmp_path / "second"]
    broker = start_broker({"log.dirs": ",".join(map(str, directories)), "num.recovery.threads.per.data.dir": threads})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders", PARTITIONS)
        connection.create_topic("gone")
        for partition in range(PARTITIONS):
            connection.produce("orders", values_batch(b"%d" % partition), partition)
            connection.produce("orders", values_batch(b"later"), partition)
    broker.kill()
    torn = next(path / "orders-5" for path in directories if (path / "orders-5").exists()) / f"{0:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-3])
    broker.start()
    with Connection(broker.bootstrap) as connection:
        for partition in range(PARTITIONS):
            expected = [b"%d" % partition, b"later"]
            assert values_in(connection.fetch("orders", partition=partition)) == expected[: 1 if partition == 5 else 2]
            assert connection.produce("orders", values_batch(b"after"), partition).error_code == ErrorCode.NONE
    told = {path for _, path in re.findall(r"recovered (\d+) of \1 logs in (\S+)", broker.log)}
    assert told == set(map(str, directories))
    assert f"{PARTITIONS + 1} logs opened" in broker.log
    assert broker.stop() == 0
