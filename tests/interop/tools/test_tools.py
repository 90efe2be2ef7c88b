"""Kafka's command-line tools do and print the same with SSKafka as with Apache Kafka."""

import os
from pathlib import Path

import pytest
from benchmarks.apache_kafka import KafkaLibs
from differential.systems import Pair

from tools.comparison import PAGE, Outcome, page, run_all


@pytest.fixture(scope="module")
def outcomes(pair: Pair, kafka_libs: KafkaLibs, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return run_all(pair, kafka_libs, tmp_path_factory.mktemp("tools"))


def test_output_is_the_same(outcomes: list[Outcome]) -> None:
    different = [one for one in outcomes if not one.is_same and one.reason is None]
    assert not different, "\n\n".join(map(str, different))


def test_known_differences_are_differences(outcomes: list[Outcome]) -> None:
    same = [one.call for one in outcomes if one.is_same and one.reason is not None]
    assert not same, f"no longer different: {same}"


def test_page_is_up_to_date(outcomes: list[Outcome]) -> None:
    if os.environ.get("COMPATIBILITY") == "write":
        PAGE.write_text(page(outcomes), encoding="utf-8")
    assert Path(PAGE).read_text(encoding="utf-8") == page(outcomes), "run `make compatibility`"
