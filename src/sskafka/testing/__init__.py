"""A pytest plugin with brokers for tests, which needs no setup; docs/testing.md describes it.

sskafka_broker           a new broker for each test
sskafka_session_broker   one broker for all tests
sskafka_cluster          starts a cluster: sskafka_cluster(3), sskafka_cluster(3, secure=True); see `process_cluster`
sskafka_settings         settings of the brokers; override this fixture to change them
sskafka_security         tls, sasl and acls of a single broker; override this fixture to change them
sskafka_spark            a Spark session for test cases of pipelines (requires the extra "spark")

def test_orders(sskafka_broker):
    sskafka_broker.produce("orders", "3 apples")
    assert [record.value for record in sskafka_broker.consume("orders")] == [b"3 apples"]

@pytest.mark.parametrize("case", load_cases("clicks.test.yaml"), ids=str)
def test_clicks(case, sskafka_spark):
    assert differences(sskafka_spark, case) == []
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

import sskafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sskafka import Broker
    from sskafka.testing.process_cluster import ProcessCluster


class StartCluster(Protocol):
    """The fixture `sskafka_cluster`."""

    def __call__(
        self, brokers: int = 3, settings: Mapping[str, object] | None = None, *, secure: bool = False
    ) -> "ProcessCluster": ...


@pytest.fixture
def sskafka_settings() -> dict[str, object]:
    """Broker settings with Kafka's names; override it in a module or conftest."""
    return {}


@pytest.fixture
def sskafka_security() -> dict[str, Any]:
    """`tls`, `sasl` and `acls` of `sskafka.Broker`; override it in a module or conftest."""
    return {}


@pytest.fixture
def sskafka_broker(sskafka_settings: dict[str, object], sskafka_security: dict[str, Any]) -> "Iterator[Broker]":
    with sskafka.Broker(sskafka_settings, **sskafka_security) as broker:
        yield broker


@pytest.fixture(scope="session")
def sskafka_session_broker() -> "Iterator[Broker]":
    with sskafka.Broker() as broker:
        yield broker


@pytest.fixture
def sskafka_cluster(sskafka_settings: dict[str, object]) -> "Iterator[StartCluster]":
    """Start clusters, whose processes end with the test."""
    from sskafka.testing.process_cluster import ProcessCluster  # noqa: PLC0415  only tests of clusters need it

    with ExitStack() as clusters:

        def start(
            brokers: int = 3, settings: Mapping[str, object] | None = None, *, secure: bool = False
        ) -> "ProcessCluster":
            cluster = ProcessCluster(brokers, {**sskafka_settings, **(settings or {})}, secure=secure)
            clusters.callback(cluster.close)
            return cluster.start()

        yield start


@pytest.fixture(scope="session")
def sskafka_spark() -> "Iterator[SparkSession]":
    """A Spark session on one core, for test cases of pipelines; it takes some seconds to start."""
    from sskafka.pipelines.session import CASE_CONF, SessionSettings, start_session, stop_session  # noqa: PLC0415  an extra

    yield start_session(SessionSettings("sskafka tests", "local[1]", CASE_CONF))
    stop_session()
