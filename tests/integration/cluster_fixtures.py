"""Brokers and clusters for tests: what `conftest` files of several folders share."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker
from cluster_processes import ClusterProcesses, StartCluster


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """Starts brokers as one cluster on free ports, and ends them with the test."""
    if "SSKAFKA_TEST_BOOTSTRAP" in os.environ:
        pytest.skip("needs brokers of its own")
    with ExitStack() as cleanup:

        def start(count: int = 3, settings: Mapping[str, object] | None = None, *options: str) -> ClusterProcesses:
            cluster = ClusterProcesses(tmp_path / "cluster", count, settings)
            cleanup.callback(lambda: sys.stderr.write(cluster.logs()))  # pytest shows it when the test has failed
            cleanup.callback(cluster.close)
            return cluster.start(*options)

        yield start


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts a broker with settings of its own in a directory of its own, and ends it with the test."""
    if "SSKAFKA_TEST_BOOTSTRAP" in os.environ:
        pytest.skip("needs a broker of its own")
    with ExitStack() as cleanup:

        def start(
            settings: Mapping[str, object] | None = None,
            *,
            directory: Path = tmp_path / "broker",
            wrapper: Sequence[str] = (),
        ) -> BrokerProcess:
            broker = BrokerProcess(directory, settings, wrapper)
            cleanup.callback(lambda: sys.stderr.write(broker.log))  # pytest shows it when the test has failed
            cleanup.callback(broker.close)
            return broker.start()

        yield start
