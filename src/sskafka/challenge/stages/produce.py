"""Stages of Produce: unknown topics and partitions are rejected; acknowledged batches are in the log file."""

from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import TypeVar

from sskafka.challenge.comparison import bytes_difference
from sskafka.challenge.grammar import Answer
from sskafka.challenge.log_directory import produced_batch, segment_of
from sskafka.challenge.requests import produce
from sskafka.challenge.stage import Expected, Stage, StageContext, StageFailedError, hex_rows
from sskafka.challenge.stages.base import list_produce
from sskafka.model.errors import ErrorCode

Batches = Mapping[str, Mapping[int, bytes]]
T = TypeVar("T", str, int)

_NO_PARTITION = 100
_BASE_OFFSET, _LEADER_EPOCH = Struct(">q"), Struct(">i")
_LEADER_EPOCH_AT = 12


def produce_to_unknown_partitions(context: StageContext) -> None:
    """Produce to an unknown topic, and to an unknown partition of a known topic."""
    for topic, partition in ((context.topics.unknown_name, 0), (context.topics.answered.name, _NO_PARTITION)):
        batches = {topic: {partition: produced_batch(context.topics.sentences(1))}}
        context.ask(produce(batches), _expected(batches, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def produce_and_check_response(context: StageContext) -> None:
    batches = {context.topics.answered.name: {0: produced_batch(context.topics.sentences(1))}}
    context.ask(produce(batches), _expected(batches))


def produce_one_record(context: StageContext) -> None:
    _produce(context, {context.topics.written.name: {0: produced_batch(context.topics.sentences(1))}})


def produce_several_records(context: StageContext) -> None:
    _produce(context, {context.topics.written_many.name: {0: produced_batch(context.topics.sentences(3))}})


def produce_to_several_partitions(context: StageContext) -> None:
    topic = context.topics.written_split
    _produce(context, {topic.name: {p: produced_batch(context.topics.sentences(2)) for p in topic.partitions}})


def produce_to_several_topics(context: StageContext) -> None:
    topics = (context.topics.written_first, context.topics.written_second)
    batches = {
        topic.name: {p: produced_batch(context.topics.sentences(2)) for p in topic.partitions} for topic in topics
    }
    _produce(context, batches)


def _produce(context: StageContext, batches: Batches) -> None:
    context.ask(produce(batches), _expected(batches))
    for topic, partitions in batches.items():
        for partition, batch in partitions.items():
            _check_file(context, topic, partition, batch)


def _expected(batches: Batches, error: ErrorCode = ErrorCode.NONE) -> Expected:
    """Return the expected response; its topics and partitions may be in any order."""
    offset = -1 if error else 0

    def fields(answer: Answer) -> dict[str, object]:
        expected: dict[str, object] = {"responses.length": len(batches), "throttle_time_ms": 0}
        for at, topic in _elements(answer, "responses", "name", batches):
            partitions = f"{at}.partition_responses"
            expected |= {f"{at}.name": topic, f"{partitions}.length": len(batches[topic])}
            for here, partition in _elements(answer, partitions, "index", batches[topic]):
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


def _elements(answer: Answer, array: str, name: str, wanted: Iterable[T]) -> Iterator[tuple[str, T]]:
    """Yield the path of each element with a wanted name; a missing element is expected at its index in `wanted`."""
    length = answer.find(f"{array}.length")
    count = length.value if length is not None and isinstance(length.value, int) else 0
    found = {answer[f"{array}[{number}].{name}"]: number for number in range(count)}
    for number, one in enumerate(wanted):
        yield f"{array}[{found.get(one, number)}]", one


def _check_file(context: StageContext, topic: str, partition: int, batch: bytes) -> None:
    """Check that the file contains the batch as sent, except for the two fields that the leader sets."""
    path = segment_of(context.directory, topic, partition)
    if not path.is_file():
        raise StageFailedError(f"{path} does not exist, though the batch was acknowledged")
    found = path.read_bytes()
    if _unassigned(found) != _unassigned(batch):
        raise StageFailedError(
            f"{path} contains {len(found)} bytes, which are not the {len(batch)} that were produced: "
            + bytes_difference(_unassigned(found), _unassigned(batch)),
            *hex_rows(found),
        )
    if len(found) >= _BASE_OFFSET.size and _BASE_OFFSET.unpack_from(found)[0] != 0:
        raise StageFailedError(f"{path} starts at offset {_BASE_OFFSET.unpack_from(found)[0]} instead of 0")
    context.say(f"   {path} is correct")


def _unassigned(batch: bytes) -> bytes:
    """Return the batch without its base offset and leader epoch."""
    behind_epoch = _LEADER_EPOCH_AT + _LEADER_EPOCH.size
    return batch[_BASE_OFFSET.size : _LEADER_EPOCH_AT] + batch[behind_epoch:]


STAGES = (
    Stage("um3", "List Produce in ApiVersions", list_produce),
    Stage("ck2", "Produce to an unknown topic or partition", produce_to_unknown_partitions),
    Stage("dp1", "Produce and check the response", produce_and_check_response),
    Stage("ps7", "Produce one record", produce_one_record),
    Stage("sb8", "Produce several records", produce_several_records),
    Stage("mf2", "Produce to several partitions", produce_to_several_partitions),
    Stage("ar4", "Produce to several topics", produce_to_several_topics),
)
