"""The pairs of systems, started once for all tests."""

from collections.abc import Iterator

import pytest
from benchmarks.apache_kafka import KafkaLibs

from differential.systems import CLUSTER_SIZE, Pair, running_pair


@pytest.fixture(scope="session")
def pair(kafka_libs: KafkaLibs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(kafka_libs, tmp_path_factory.mktemp("pair")) as running:
        yield running


@pytest.fixture(scope="session")
def cluster_pair(kafka_libs: KafkaLibs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(kafka_libs, tmp_path_factory.mktemp("clusters"), CLUSTER_SIZE) as running:
        yield running
