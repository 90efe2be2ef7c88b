"""Pages of the documentation that are run as they are written. They take minutes: `make spark-pages`."""

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
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
