"""What strangers, clients and damaged files can do to real brokers; the harness is that of the integration tests.

`start_scene` starts a broker with a polite client beside it (scene.py). Tests with the marker `long_attack` take
minutes; `make chaos` runs them.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration"), str(TESTS / "support")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401  first imported here: it loads its message schemas in a deprecated way

from broker_process import BrokerProcess  # noqa: E402
from cluster_fixtures import start_broker, start_cluster  # noqa: E402
from scene import Scene  # noqa: E402

__all__ = ["start_broker", "start_cluster"]

LONG_ATTACK_SECONDS_MAX = 1800


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    long = [item for item in items if item.get_closest_marker("long_attack") is not None]
    for item in long:
        item.add_marker(pytest.mark.timeout(LONG_ATTACK_SECONDS_MAX))
    if not os.environ.get("LONG_ATTACKS"):
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture
def start_scene(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Starts a broker with settings of its own and measures a polite client beside it; ends both with the test."""
    with ExitStack() as cleanup:

        def start(settings: Mapping[str, object] | None = None) -> Scene:
            broker = BrokerProcess(tmp_path / "broker", settings)
            cleanup.callback(lambda: sys.stderr.write(broker.log))  # pytest shows it when the test has failed
            cleanup.callback(broker.close)
            scene = Scene(broker.start())
            cleanup.callback(scene.close)
            return scene.begin()

        yield start
