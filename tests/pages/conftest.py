"""Pages of the documentation that are run as they are written: all by `make spark-pages`, those that fetch no packages
by `make spark-test`, too."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from spark_fixtures import bootstrap, brokers

__all__ = ["bootstrap", "brokers"]

TEST_SECONDS_MAX = 1_200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
