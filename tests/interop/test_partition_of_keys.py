"""A key lands where Kafka's Java producer puts it."""

import random
import subprocess
from pathlib import Path

from benchmarks.apache_kafka import KafkaLibs

from sskafka.records.partitioner import murmur2, partition_for_key

PROGRAM = Path(__file__).parent / "java" / "PartitionOfKeys.java"
PARTITIONS = 7
SEED = 11


def test_1000_keys(kafka_libs: KafkaLibs) -> None:
    drawn = random.Random(SEED)
    keys = [f"customer-{number}".encode() for number in range(200)]
    keys += [drawn.randbytes(drawn.randrange(1, 60)) for _ in range(800)]
    done = subprocess.run(
        kafka_libs.java(str(PROGRAM), str(PARTITIONS)),
        input="".join(f"{key.hex()}\n" for key in keys),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [signed % 2**32 for signed, _ in told] == [murmur2(key) for key in keys]
    assert [partition for _, partition in told] == [partition_for_key(key, PARTITIONS) for key in keys]
