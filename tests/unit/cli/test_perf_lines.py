import re

import pytest

from sskafka.cli.perf.grid import _numbers
from sskafka.cli.perf.load import CONSUME_HEADER, _divided, consume_summary, produce_summary, window_line
from sskafka.evaluation.latencies import Latencies
from sskafka.evaluation.load import Window
from sskafka.evaluation.workers import Sum, Totals


def totals() -> Totals:
    latencies = Latencies()
    latencies.add(2.0, 1000)
    return Totals(1000, 10 * 2**20, 4.0, latencies)


def test_the_lines_of_kafka_producer_perf_test() -> None:
    assert produce_summary(totals()) == (
        "1000 records sent, 250.000000 records/sec (2.50 MB/sec), 2.00 ms avg latency, 2.00 ms max latency, "
        "2 ms 50th, 2 ms 95th, 2 ms 99th, 2 ms 99.9th."
    )
    done = Sum()
    done.add(Window(1000, 10 * 2**20, 4.0, totals().latencies))
    assert window_line(done, 4.0) == (
        "1000 records sent, 250.0 records/sec (2.50 MB/sec), 2.0 ms avg latency, 2.0 ms max latency."
    )


def test_the_line_of_kafka_consumer_perf_test_has_its_columns() -> None:
    line = consume_summary(totals(), began=0.0)
    assert len(line.split(", ")) == len(CONSUME_HEADER.split(", "))
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:000, ", line)
    assert line.endswith("10.0000, 2.5000, 1000, 250.0000, 0, 4000, 2.5000, 250.0000")


def test_work_is_divided_and_nobody_gets_none() -> None:
    assert _divided(10, 3) == [4, 3, 3]
    assert _divided(2, 5) == [1, 1]


def test_lists_of_numbers() -> None:
    assert _numbers("8, 1,2", "--partitions") == [1, 2, 8]
    for text in ("", "1,,2", "0", "-1", "two"):
        with pytest.raises(Exception, match="not a comma-separated list"):
            _numbers(text, "--partitions")
