"""Produce: good batches, and every way in which a batch or its request can be wrong."""

from lying_batches import all_lies, expected_code

from differential.exchange import error_codes
from differential.scripts.batches import TIMESTAMP_MS, batch, records
from differential.scripts.common import UNKNOWN_ID, create_topic, produce_fields
from differential.session import Session
from sskafka.model.errors import ErrorCode
from sskafka.records.batch import read_header
from sskafka.records.builder import build_batch, frame
from sskafka.records.compression import Compression


def good_batches(session: Session) -> None:
    topic = session.name("good")
    topic_id = create_topic(session, topic)
    for acks in (1, -1):
        session.ask_each("Produce", **produce_fields(topic, topic_id, batch("a", "b"), acks=acks), note=f"acks={acks}")
    for codec in Compression:
        session.ask(
            "Produce", **produce_fields(topic, topic_id, batch("a", "b" * 500, compression=codec)), note=codec.name
        )
    read_back(session, topic, topic_id)


def read_back(session: Session, topic: str, topic_id: bytes, note: str = "", partition: int = 0) -> None:
    session.ask(
        "Fetch",
        max_wait_ms=0,
        max_bytes=10_000_000,
        note=f"{note} read back",
        topics=[
            {
                "topic": topic,
                "topic_id": topic_id,
                "partitions": [{"partition": partition, "partition_max_bytes": 1_000_000}],
            }
        ],
    )


def bad_requests(session: Session) -> None:
    topic, twice = session.name("bad"), session.name("twice")
    topic_id = create_topic(session, topic)
    good = batch("a")
    part = {"index": 0, "records": good}
    for acks in (2, -2, 100):
        session.ask_each("Produce", **produce_fields(topic, topic_id, good, acks=acks), note=f"acks={acks}")
        for note, data in (("no batch", b""), ("two batches", good + good), ("a cut batch", good[:-2])):
            session.ask_each("Produce", **produce_fields(topic, topic_id, data, acks=acks), note=f"acks={acks}, {note}")
        session.ask_each(
            "Produce",
            **produce_fields("__consumer_offsets", UNKNOWN_ID, good, acks=acks),
            note=f"{acks=}, internal",
        )
    session.ask_each("Produce", **produce_fields(topic, topic_id, good, partition=9), note="unknown partition")
    session.ask_each("Produce", **produce_fields(topic, topic_id, good, partition=-1), note="negative partition")
    session.ask_each("Produce", **produce_fields(session.name("none"), UNKNOWN_ID, good), note="unknown topic")
    session.ask_each("Produce", **produce_fields("bad/name", UNKNOWN_ID, good), note="bad topic name")
    session.ask_each("Produce", **produce_fields("__consumer_offsets", UNKNOWN_ID, good), note="internal topic")
    session.ask_each("Produce", acks=1, timeout_ms=1000, topic_data=[], note="no topics")
    session.ask_each(
        "Produce", acks=1, timeout_ms=1000, topic_data=[{"name": topic, "topic_id": topic_id}], note="no partitions"
    )
    session.ask(
        "Produce",
        acks=1,
        timeout_ms=1000,
        note="a partition twice",
        topic_data=[{"name": twice, "topic_id": create_topic(session, twice), "partition_data": [part, part]}],
    )
    session.ask_each(
        "Produce",
        **produce_fields(topic, topic_id, good, transactional_id="no-transaction"),
        note="a transactional id, a plain batch",
    )
    session.ask_each(
        "Produce",
        **produce_fields(topic, topic_id, batch("a", transactional=True)),
        note="a transactional batch without producer",
    )
    session.ask_each("Produce", **produce_fields(topic, topic_id, batch("a", control=True)), note="a control batch")


def bad_batches(session: Session) -> None:
    """Each goes to a topic of its own. Null records are left out: Apache Kafka never answers."""
    good = batch("a", "b")
    header = read_header(good)
    flipped = bytearray(good)
    flipped[-1] ^= 1
    old_magic = bytearray(good)
    old_magic[16] = 1
    new_magic = bytearray(good)
    new_magic[16] = 3
    length_too_small = bytearray(good)
    length_too_small[8:12] = (40).to_bytes(4, "big")
    length_too_big = bytearray(good)
    length_too_big[8:12] = (4000).to_bytes(4, "big")
    payload = good[61:]
    cases = {
        "no bytes": b"",
        "a damaged record": bytes(flipped),
        "magic 1": bytes(old_magic),
        "magic 3": bytes(new_magic),
        "a length that is too small": bytes(length_too_small),
        "a length that is too big": bytes(length_too_big),
        "cut": good[:-3],
        "a header alone": good[:61],
        "half a header": good[:30],
        "trailing bytes": good + b"\0\0\0",
        "two batches": good + good,
        "an empty batch": bytes(build_batch([])),
        "a count that is too high": bytes(frame(header._replace(record_count=3), payload)),
        "a count that is too low": bytes(frame(header._replace(record_count=1), payload)),
        "a negative count": bytes(frame(header._replace(record_count=-1), payload)),
        "a last offset that is too high": bytes(frame(header._replace(last_offset_delta=5), payload)),
        "a last offset that is too low": bytes(frame(header._replace(last_offset_delta=0), payload)),
        "an unknown codec": bytes(frame(header._replace(attributes=7), payload)),
        "not what the codec says": bytes(frame(header._replace(attributes=1), payload)),
        "a base offset": bytes(build_batch(records("a"), base_offset=77)),
        "a leader epoch": bytes(build_batch(records("a"), leader_epoch=5)),
        "a timestamp of -1": batch("a", timestamp=-1),
        "a timestamp of -2": batch("a", timestamp=-2),
        "a timestamp in the far future": batch("a", timestamp=4_000_000_000_000),
        "a wrong max timestamp": bytes(frame(header._replace(max_timestamp=TIMESTAMP_MS + 5), payload)),
        "the append time flag": batch("a", append_time=True),
        "a producer id without sequence": batch("a", producer_id=5, producer_epoch=0),
        "a producer id without epoch": batch("a", producer_id=5, base_sequence=0),
        "a sequence without producer id": batch("a", base_sequence=0),
        "a record too large": batch("x" * 1_100_000),
        "a record that has no key": batch("a"),
    }
    for number, (note, data) in enumerate(cases.items()):
        topic = session.name(f"bad-{number}")
        topic_id = create_topic(session, topic)
        for version in (session.versions("Produce")[0], session.versions("Produce")[-1]):
            session.ask("Produce", version=version, **produce_fields(topic, topic_id, data), note=note)
        read_back(session, topic, topic_id, note)


def lying_batches(session: Session) -> None:
    """Each goes to a partition of its own; what is accepted is read back."""
    lies = all_lies()
    topic = session.name("lies")
    topic_id = create_topic(session, topic, partitions=len(lies))
    for partition, (name, data) in enumerate(lies.items()):
        note = f"lie: {name}"
        fields = produce_fields(topic, topic_id, data, partition=partition)
        answer = session.ask("Produce", version=9, **fields, note=note)
        if error_codes(answer) == {ErrorCode.NONE} and expected_code(name) is ErrorCode.NONE:
            read_back(session, topic, topic_id, note, partition)


def compacted_topic(session: Session) -> None:
    topic = session.name("compacted")
    topic_id = create_topic(session, topic, cleanup_policy="compact")
    session.ask_each("Produce", **produce_fields(topic, topic_id, batch("a", "b")), note="no key")
    session.ask_each("Produce", **produce_fields(topic, topic_id, batch("a", "b", key="k")), note="keys")
    mixed = [records("a", key="k")[0], records("b")[0]]
    session.ask_each("Produce", **produce_fields(topic, topic_id, bytes(build_batch(mixed))), note="one without key")


def topic_settings(session: Session) -> None:
    for number, configs in enumerate(
        (
            {"message_timestamp_type": "LogAppendTime"},
            {"max_message_bytes": "200"},
            {"compression_type": "gzip"},
            {"compression_type": "uncompressed"},
            {"message_timestamp_before_max_ms": "1000"},
            {"message_timestamp_after_max_ms": "1000"},
        )
    ):
        topic = session.name(str(number))
        topic_id = create_topic(session, topic, **configs)
        for data in (
            batch("a"),
            batch("b" * 300),
            batch("c", "d", compression=Compression.LZ4),
            batch("e", timestamp=4_000_000_000_000),
        ):
            session.ask("Produce", **produce_fields(topic, topic_id, data), note=str(configs))
        read_back(session, topic, topic_id)


def idempotent_producers(session: Session) -> None:
    topic = session.name("idempotent")
    topic_id = create_topic(session, topic)
    producer = session.ask("InitProducerId", transactional_id=None, transaction_timeout_ms=1000)

    def send(sequence: int, epoch: int, note: str, *values: str) -> None:
        data = batch(
            *(values or ("a",)), producer_id=producer.producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        session.ask("Produce", **produce_fields(topic, topic_id, data), note=note)

    send(0, 0, "first", "a", "b", "c")
    send(3, 0, "second")
    send(0, 0, "the first again", "a", "b", "c")
    send(3, 0, "the second again")
    send(1, 0, "the middle of the first")
    send(5, 0, "a gap")
    send(2, 1, "a new epoch that begins at 2")
    send(0, 1, "a new epoch")
    send(1, 0, "the old epoch")
    for sequence in range(1, 8):
        send(sequence, 1, f"number {sequence}")
    send(0, 1, "older than the last five")
    send(3, 1, "one of the last five")
    send(2147483647, 2, "a new epoch that begins at the end of sequences")
    session.ask(
        "DescribeProducers",
        topics=[{"name": topic, "partition_indexes": [0, 9]}, {"name": session.name("none"), "partition_indexes": [0]}],
    )
    unknown = batch("a", producer_id=987654321, producer_epoch=0, base_sequence=5)
    session.ask("Produce", **produce_fields(topic, topic_id, unknown), note="an unknown producer begins at 5")
    read_back(session, topic, topic_id)
