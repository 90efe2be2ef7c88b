"""Reading ranges from a broker, whatever some of its answers say."""

from collections.abc import Iterator
from typing import Any

import pytest

import sskafka
from sskafka.client.fetcher import FetchAnswer, fetch
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector import fetching
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.pipelines.connector.options import source_options

PARTITIONS, RECORDS = 3, 5
VALUES = sorted(b"%d-%d" % (partition, number) for partition in range(PARTITIONS) for number in range(RECORDS))


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with sskafka.Broker({"num.partitions": PARTITIONS}) as broker:
        with sskafka.Producer(broker.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                values = [b"%d-%d" % (partition, number) for number in range(RECORDS)]
                producer.send_batch("numbers", None, values, partition=partition)
        yield broker.bootstrap_servers


def values_read(bootstrap: str) -> list[bytes]:
    options = source_options({"kafka.bootstrap.servers": bootstrap, "subscribe": "numbers"}, streaming=False)
    ranges = [OffsetRange(TopicPartition("numbers", number), 0, RECORDS) for number in range(PARTITIONS)]
    return sorted(
        value for batch in fetching.read_ranges(options, ranges) for value in batch.column("value").to_pylist()
    )


@pytest.mark.parametrize("place", range(PARTITIONS))
def test_an_error_of_one_partition_costs_nothing_of_the_others(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    refused: list[TopicPartition] = []

    async def refusing_once(*asked: Any) -> list[FetchAnswer]:
        answers = await fetch(*asked)
        if len(answers) == PARTITIONS and not refused:
            answers[place].data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            refused.append(answers[place].partition)
        return answers

    monkeypatch.setattr(fetching, "fetch", refusing_once)
    assert values_read(bootstrap) == VALUES
    assert refused
