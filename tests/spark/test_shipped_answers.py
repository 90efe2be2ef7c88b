"""Every shipped pipeline on records whose answer is known, by real brokers and real Spark."""

from typing import TYPE_CHECKING

import pytest

from sskafka.pipelines.runner.run import RunSettings
from sskafka.pipelines.shipped import shipped_names
from sskafka.pipelines.shipped.selfcheck import CheckSettings, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("name", shipped_names())
def test_the_answer_is_the_known_one(spark: "SparkSession", bootstrap: str, name: str) -> None:
    assert check(name, CheckSettings(RunSettings(bootstrap, "local[2]"), records=300)) == []
