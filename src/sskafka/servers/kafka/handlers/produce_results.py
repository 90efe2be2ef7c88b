"""The results of the batches of a Produce request: rows of its response, and the offsets that they wait for."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from sskafka.model.errors import ErrorCode
from sskafka.replication.partition import Partition
from sskafka.wire.produce import ProducedPartition, Topic

NO_OFFSET: Final = -1

Row: TypeAlias = ProducedPartition
Results: TypeAlias = list[tuple[Topic, list[Row]]]


class Wait(NamedTuple):
    """A partition's response, which is valid once the partition has reached `end_offset`."""

    partition: Partition
    end_offset: int
    rows: list[Row]
    position: int


class Appended(NamedTuple):
    results: Results
    waits: list[Wait]
    failed: bool


def refused_rows(refusals: Mapping[tuple[Topic, int], ErrorCode]) -> Results:
    rows: dict[Topic, list[Row]] = {}
    for (topic, index), error in refusals.items():
        rows.setdefault(topic, []).append(refused_row(index, error))
    return list(rows.items())


def replace_by_error(wait: Wait, error: ErrorCode) -> None:
    wait.rows[wait.position] = refused_row(wait.rows[wait.position][0], error)


def refused_row(index: int, error: ErrorCode) -> Row:
    return (index, error, NO_OFFSET, NO_OFFSET, NO_OFFSET, None, ())
