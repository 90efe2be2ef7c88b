"""Brokers and names for the tests in this folder.

`bootstrap` is the address of one broker that the tests of a worker share: they use topics with names of their own and
leave no settings behind. `start_broker` makes brokers for tests that stop them, configure them or look at their files.
With SSKAFKA_TEST_BOOTSTRAP=host:port the shared broker is one that runs elsewhere, of any make; tests that need a
broker of their own are skipped then.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from broker_process import BrokerProcess
from cluster_fixtures import start_broker, start_cluster
from wire_connection import Connection

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401  first imported here: it loads its message schemas in a deprecated way

__all__ = ["start_broker", "start_cluster"]

ELSEWHERE = os.environ.get("SSKAFKA_TEST_BOOTSTRAP", "")

_run = os.urandom(3).hex()
_numbers = count()


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if ELSEWHERE:
        yield ELSEWHERE
        return
    broker = BrokerProcess(tmp_path_factory.mktemp("shared-broker"))
    try:
        yield broker.start().bootstrap
    finally:
        broker.close()


@pytest.fixture
def _ours() -> None:
    """For what is ours rather than Kafka's to promise."""
    if ELSEWHERE:
        pytest.skip("another broker need not do this")


@pytest.fixture
def new_topic() -> Callable[[str], str]:
    """Names that no other test, worker or run on the same broker uses; they sort in the order of the calls."""
    return lambda label: f"{label}-{_run}-{next(_numbers):04}"


@pytest.fixture
def topic(new_topic: Callable[[str], str]) -> str:
    """The name of a topic that does not exist yet."""
    return new_topic("topic")


@pytest.fixture
def connection(bootstrap: str) -> Iterator[Connection]:
    """A raw connection to the shared broker."""
    with Connection(bootstrap) as connection:
        yield connection
