"""Clusters for tests: what `conftest` files of several folders share."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
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
