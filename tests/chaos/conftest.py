"""Longer failures than `make test` has time for; the harness is that of the integration tests."""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401  first imported here: it loads its message schemas in a deprecated way

from cluster_fixtures import start_cluster
from cluster_network import Network, NetworkedCluster

__all__ = ["start_cluster"]

TEST_SECONDS_MAX = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


@pytest.fixture
def start_networked(tmp_path: Path) -> Iterator[Callable[..., NetworkedCluster]]:
    """Starts brokers in network namespaces of their own, and removes both with the test."""
    with ExitStack() as cleanup:

        def start(count: int = 3, settings: Mapping[str, object] | None = None) -> NetworkedCluster:
            network = Network(count)
            cleanup.callback(network.close)
            cluster = NetworkedCluster(tmp_path / "cluster", network, count, settings or {})
            cleanup.callback(lambda: sys.stderr.write(cluster.logs()))
            cleanup.callback(cluster.close)
            return cluster.start()

        yield start
