"""Stages of Produce: what is not there is refused, what is there is in the log file when the answer arrives."""

from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import TypeVar

from sskafka.challenge.comparison import bytes_difference
from sskafka.challenge.grammar import Answer
from sskafka.challenge.log_directory import produced_batch, segment_of
from sskafka.challenge.requests import produce
from sskafka.challenge.stage import Bench, Expected, Stage, StageFailedError, hex_rows
from sskafka.challenge.stages_base import list_produce
from sskafka.model.errors import ErrorCode

Batches = Mapping[str, Mapping[int, bytes]]
T = TypeVar("T", str, int)

_NO_PARTITION = 100
_BASE_OFFSET, _LEADER_EPOCH = Struct(">q"), Struct(">i")
_LEADER_EPOCH_AT = 12


def produce_to_what_is_not_there(bench: Bench) -> None:
    """An unknown topic, and an unknown partition of a topic."""
    for topic, partition in ((bench.world.unknown_name, 0), (bench.world.answered.name, _NO_PARTITION)):
        batches = {topic: {partition: produced_batch(bench.world.sentences(1))}}
        bench.ask(produce(batches), _expected(batches, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def produce_and_be_answered(bench: Bench) -> None:
    batches = {bench.world.answered.name: {0: produced_batch(bench.world.sentences(1))}}
    bench.ask(produce(batches), _expected(batches))


def produce_one_record(bench: Bench) -> None:
    _produce(bench, {bench.world.written.name: {0: produced_batch(bench.world.sentences(1))}})


def produce_several_records(bench: Bench) -> None:
    _produce(bench, {bench.world.written_many.name: {0: produced_batch(bench.world.sentences(3))}})


def produce_to_several_partitions(bench: Bench) -> None:
    topic = bench.world.written_split
    _produce(bench, {topic.name: {p: produced_batch(bench.world.sentences(2)) for p in topic.partitions}})


def produce_to_several_topics(bench: Bench) -> None:
    topics = (bench.world.written_first, bench.world.written_second)
    batches = {topic.name: {p: produced_batch(bench.world.sentences(2)) for p in topic.partitions} for topic in topics}
    _produce(bench, batches)


def _produce(bench: Bench, batches: Batches) -> None:
    bench.ask(produce(batches), _expected(batches))
    for topic, partitions in batches.items():
        for partition, batch in partitions.items():
            _check_file(bench, topic, partition, batch)


def _expected(batches: Batches, error: ErrorCode = ErrorCode.NONE) -> Expected:
    """Topics and partitions may be answered in any order."""
    offset = -1 if error else 0

    def fields(answer: Answer) -> dict[str, object]:
        expected: dict[str, object] = {"responses.length": len(batches), "throttle_time_ms": 0}
        for at, topic in _places(answer, "responses", "name", batches):
            partitions = f"{at}.partition_responses"
            expected |= {f"{at}.name": topic, f"{partitions}.length": len(batches[topic])}
            for here, partition in _places(answer, partitions, "index", batches[topic]):
                expected |= {
                    f"{here}.index": partition,
                    f"{here}.error_code": int(error),
                    f"{here}.base_offset": offset,
                    f"{here}.log_append_time_ms": -1,
                    f"{here}.log_start_offset": offset,
                    f"{here}.record_errors.length": frozenset({0, -1}),
                }
        return expected

    return fields


def _places(answer: Answer, array: str, name: str, wanted: Iterable[T]) -> Iterator[tuple[str, T]]:
    """Where the elements stand that have the wanted names; one that is missing is expected in its own place."""
    length = answer.find(f"{array}.length")
    count = length.value if length is not None and isinstance(length.value, int) else 0
    found = {answer[f"{array}[{number}].{name}"]: number for number in range(count)}
    for number, one in enumerate(wanted):
        yield f"{array}[{found.get(one, number)}]", one


def _check_file(bench: Bench, topic: str, partition: int, batch: bytes) -> None:
    """The file holds the batch as it was sent, apart from the two fields that a leader fills in."""
    path = segment_of(bench.directory, topic, partition)
    if not path.is_file():
        raise StageFailedError(f"{path} is not there, though the batch was acknowledged")
    found = path.read_bytes()
    if _unassigned(found) != _unassigned(batch):
        raise StageFailedError(
            f"{path} holds {len(found)} bytes, which are not the {len(batch)} that were produced: "
            + bytes_difference(_unassigned(found), _unassigned(batch)),
            *hex_rows(found),
        )
    if len(found) >= _BASE_OFFSET.size and _BASE_OFFSET.unpack_from(found)[0] != 0:
        raise StageFailedError(f"{path} begins at offset {_BASE_OFFSET.unpack_from(found)[0]} instead of 0")
    bench.say(f"   {path} is right")


def _unassigned(batch: bytes) -> bytes:
    """Without base offset and leader epoch."""
    behind_epoch = _LEADER_EPOCH_AT + _LEADER_EPOCH.size
    return batch[_BASE_OFFSET.size : _LEADER_EPOCH_AT] + batch[behind_epoch:]


STAGES = (
    Stage("um3", "List Produce in ApiVersions", list_produce),
    Stage("ck2", "Produce to what is not there", produce_to_what_is_not_there),
    Stage("dp1", "Produce and be answered", produce_and_be_answered),
    Stage("ps7", "Produce one record", produce_one_record),
    Stage("sb8", "Produce several records", produce_several_records),
    Stage("mf2", "Produce to several partitions", produce_to_several_partitions),
    Stage("ar4", "Produce to several topics", produce_to_several_topics),
)
