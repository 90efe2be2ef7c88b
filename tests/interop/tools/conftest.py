"""One pair of brokers for all commands."""

from collections.abc import Iterator

import pytest
from benchmarks.apache_kafka import KafkaLibs
from differential.systems import Pair, running_pair

# The metadata shell reads snapshots; both systems write one soon after their start.
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "500"}


@pytest.fixture(scope="session")
def pair(kafka_libs: KafkaLibs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(kafka_libs, tmp_path_factory.mktemp("pair"), more_settings=SNAPSHOTS) as running:
        yield running
