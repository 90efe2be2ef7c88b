"""Transactions of both versions of the protocol, and what is said of them."""

import time
from typing import Any

from differential.scripts import batches
from differential.scripts.committed_offsets import fetch_fields
from differential.scripts.common import UNKNOWN_ID, create_topic, produce_fields
from differential.scripts.fetch import fetch_fields as records_fields
from differential.session import Session
from sskafka.model.errors import ErrorCode

OLD, NEW = "first version", "second version"


def versions_of(session: Session, protocol: str) -> dict[str, int]:
    """The newest versions of the APIs that belong to a version of the protocol."""
    if protocol == NEW:
        return {
            api: session.versions(api)[-1]
            for api in ("InitProducerId", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "Produce")
        }
    return {"InitProducerId": 4, "AddOffsetsToTxn": 3, "EndTxn": 4, "TxnOffsetCommit": 4, "Produce": 11}


def batch(*values: str, **options: Any) -> bytes:
    """A batch of now: markers have the time of their writing, and logs roll where timestamps are days apart."""
    return batches.batch(*values, timestamp=time.time_ns() // 1_000_000, **options)


def describe(session: Session, name: str, topic: str, topic_id: bytes, note: str) -> None:
    settled = {"Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "Dead"}
    session.wait_for(
        lambda answer: answer.transaction_states[0].transaction_state in settled,
        "DescribeTransactions",
        transactional_ids=[name],
    )
    session.ask("DescribeTransactions", transactional_ids=[name], note=note)
    session.ask("DescribeProducers", topics=[{"name": topic, "partition_indexes": [0]}], note=note)
    for isolation in (0, 1):
        fields = records_fields(topic, topic_id, {"partition": 0}, isolation_level=isolation)
        session.ask("Fetch", **fields, note=f"{note}, isolation {isolation}")
        session.ask(
            "ListOffsets",
            replica_id=-1,
            isolation_level=isolation,
            timeout_ms=1000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
            note=note,
        )


def _life(session: Session, protocol: str) -> None:
    used = versions_of(session, protocol)
    topic, name, group = session.name("topic"), session.name("id"), session.name("group")
    topic_id = create_topic(session, topic, 2)
    producer = session.ask(
        "InitProducerId", version=used["InitProducerId"], transactional_id=name, transaction_timeout_ms=60_000
    )
    who: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    sequence = 0
    for committed in (True, False):
        if protocol == OLD:
            session.ask(
                "AddPartitionsToTxn",
                version=3,
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=who["producer_id"],
                v3_and_below_producer_epoch=who["producer_epoch"],
                v3_and_below_topics=[{"name": topic, "partitions": [0]}],
            )
            session.ask(
                "AddOffsetsToTxn", version=used["AddOffsetsToTxn"], transactional_id=name, group_id=group, **who
            )
        data = batch("a", "b", transactional=True, base_sequence=sequence, **who)
        session.ask("Produce", version=used["Produce"], **produce_fields(topic, topic_id, data, transactional_id=name))
        session.ask(
            "TxnOffsetCommit",
            version=used["TxnOffsetCommit"],
            transactional_id=name,
            group_id=group,
            **who,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 5 + sequence}]}],
        )
        describe(session, name, topic, topic_id, "open")
        session.ask("OffsetFetch", version=9, **fetch_fields(9, group, None), note="pending offsets")
        session.ask(
            "OffsetFetch",
            version=9,
            **fetch_fields(9, group, None),
            require_stable=True,
            note="pending offsets, stable",
            retry=False,
        )
        ended = session.ask("EndTxn", version=used["EndTxn"], transactional_id=name, committed=committed, **who)
        describe(session, name, topic, topic_id, f"ended, committed {committed}")
        session.ask("OffsetFetch", version=9, **fetch_fields(9, group, None), require_stable=True, note="afterwards")
        session.ask("EndTxn", version=used["EndTxn"], transactional_id=name, committed=committed, **who, note="again")
        session.ask(
            "EndTxn",
            version=used["EndTxn"],
            transactional_id=name,
            committed=not committed,
            **who,
            note="the other way",
        )
        if protocol == NEW:
            who, sequence = {"producer_id": ended.producer_id, "producer_epoch": ended.producer_epoch}, 0
        else:
            sequence += 2
    session.ask(
        "InitProducerId",
        version=used["InitProducerId"],
        transactional_id=name,
        transaction_timeout_ms=60_000,
        note="another producer",
    )
    data = batch("z", transactional=True, base_sequence=sequence, **who)
    session.ask(
        "Produce",
        version=used["Produce"],
        **produce_fields(topic, topic_id, data, transactional_id=name),
        note="fenced",
    )
    session.ask("EndTxn", version=used["EndTxn"], transactional_id=name, committed=True, **who, note="fenced")
    session.ask(
        "TxnOffsetCommit",
        version=used["TxnOffsetCommit"],
        transactional_id=name,
        group_id=group,
        **who,
        note="fenced",
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 5}]}],
    )


def first_version(session: Session) -> None:
    _life(session, OLD)


def second_version(session: Session) -> None:
    _life(session, NEW)


def initialization(session: Session) -> None:
    for timeout in (60_000, 0, -1, 900_000, 900_001):
        session.ask_versions(
            "InitProducerId",
            lambda version, t=timeout: {
                "transactional_id": session.name(f"t{version}-{t}"),
                "transaction_timeout_ms": t,
            },
            note=f"timeout {timeout}",
        )
    session.ask_each("InitProducerId", transactional_id=None, transaction_timeout_ms=0, note="idempotent")
    session.ask_each("InitProducerId", transactional_id="", transaction_timeout_ms=1000, note="an empty id")
    for producer, epoch in ((5, 0), (-1, 3), (5, -1), (-5, 0)):
        session.ask_each(
            "InitProducerId",
            transactional_id=None,
            transaction_timeout_ms=0,
            producer_id=producer,
            producer_epoch=epoch,
            note=f"idempotent, {producer} {epoch}",
        )
        session.ask_each(
            "InitProducerId",
            transactional_id=session.name(f"given{producer}"),
            transaction_timeout_ms=1000,
            producer_id=producer,
            producer_epoch=epoch,
            note=f"{producer} {epoch}",
        )
    name = session.name("repeated")
    first = session.ask("InitProducerId", transactional_id=name, transaction_timeout_ms=1000, note="first")
    session.ask("InitProducerId", transactional_id=name, transaction_timeout_ms=1000, note="second")
    for epoch in (0, 1, 2, 7):
        session.ask(
            "InitProducerId",
            transactional_id=name,
            transaction_timeout_ms=1000,
            producer_id=first.producer_id,
            producer_epoch=epoch,
            note=f"with epoch {epoch}",
        )
    session.ask(
        "InitProducerId",
        transactional_id=name,
        transaction_timeout_ms=1000,
        producer_id=first.producer_id + 1000,
        producer_epoch=0,
        note="with another id",
    )


def wrong_requests(session: Session) -> None:
    topic, name, group = session.name("topic"), session.name("id"), session.name("group")
    topic_id = create_topic(session, topic, 2)
    producer = session.look("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
    right = (name, producer.producer_id, producer.producer_epoch)
    for note, (who, producer_id, epoch) in {
        "unknown": (session.name("none"), 1, 0),
        "another producer id": (name, producer.producer_id + 1000, producer.producer_epoch),
        "an older epoch": (name, producer.producer_id, producer.producer_epoch - 1),
        "a newer epoch": (name, producer.producer_id, producer.producer_epoch + 1),
        "no id": ("", producer.producer_id, producer.producer_epoch),
        "nothing open": right,
    }.items():
        fields = {"transactional_id": who, "producer_id": producer_id, "producer_epoch": epoch}
        session.ask_each("EndTxn", **fields, committed=True, note=note)
        session.ask_each("EndTxn", **fields, committed=False, note=note)
        if note == "nothing open":
            break
        session.ask_each("AddOffsetsToTxn", **fields, group_id=group, note=note)
        session.ask_each(
            "TxnOffsetCommit",
            **fields,
            group_id=group,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
            note=note,
        )
        partitions = [{"name": topic, "partitions": [0]}]
        session.ask_versions(
            "AddPartitionsToTxn",
            lambda version, w=who, i=producer_id, e=epoch, p=partitions: _add(version, w, i, e, p),
            note=note,
        )
        data = batch("a", transactional=True, base_sequence=0, producer_id=producer_id, producer_epoch=epoch)
        session.ask_each("Produce", **produce_fields(topic, topic_id, data, transactional_id=who), note=note)
    fields = {"transactional_id": name, "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    for version in session.versions("AddPartitionsToTxn"):
        for note, partitions in {
            "unknown partition": [{"name": topic, "partitions": [0, 9]}],
            "unknown topic": [{"name": session.name("none"), "partitions": [0]}],
            "nothing": [],
        }.items():
            session.ask("AddPartitionsToTxn", version=version, note=note, **_add(version, *right, partitions))
            if version >= 4:
                verified = _add(version, *right, partitions)
                verified["transactions"][0]["verify_only"] = True
                session.ask("AddPartitionsToTxn", version=version, note=f"{note}, verified", **verified)
    for version in session.versions("TxnOffsetCommit"):
        for note, more in {
            "a member": {"member_id": "m", "generation_id": 1},
            "a generation": {"generation_id": 1},
            "an instance": {"group_instance_id": "i", "member_id": "m"},
            "no group": {"group_id": ""},
        }.items():
            if version < 3 and note != "no group":
                continue
            session.ask(
                "TxnOffsetCommit",
                version=version,
                note=note,
                **{
                    "group_id": group,
                    **fields,
                    "topics": [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
                    **more,
                },
            )
    session.ask_each("AddOffsetsToTxn", **fields, group_id="", note="no group")
    session.ask("EndTxn", version=4, **fields, committed=False)
    session.ask_each("DescribeTransactions", transactional_ids=[session.name("none"), ""], note="unknown")
    session.ask_each("DescribeTransactions", transactional_ids=[], note="nothing")
    session.ask_each("WriteTxnMarkers", markers=[], note="nothing")
    session.ask_each(
        "WriteTxnMarkers",
        note="unknown",
        markers=[
            {
                "producer_id": 99,
                "producer_epoch": 0,
                "transaction_result": False,
                "coordinator_epoch": 0,
                "topics": [
                    {"name": session.name("none"), "partition_indexes": [0]},
                    {"name": topic, "partition_indexes": [9]},
                ],
            }
        ],
    )
    session.ask(
        "Produce",
        **produce_fields(
            session.name("none"),
            UNKNOWN_ID,
            batch("a", transactional=True, base_sequence=0, producer_id=1, producer_epoch=0),
            transactional_id="x",
        ),
        note="an unknown topic",
    )


def _add(version: int, name: str, producer_id: int, epoch: int, topics: list[dict[str, Any]]) -> dict[str, Any]:
    if version < 4:
        return {
            "v3_and_below_transactional_id": name,
            "v3_and_below_producer_id": producer_id,
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": topics,
        }
    return {
        "transactions": [
            {"transactional_id": name, "producer_id": producer_id, "producer_epoch": epoch, "topics": topics}
        ]
    }


def markers(session: Session) -> None:
    """WriteTxnMarkers from an administrator ends a transaction that hangs."""
    topic, name = session.name("topic"), session.name("id")
    topic_id = create_topic(session, topic)
    producer = session.look("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
    who = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    session.look(
        "Produce",
        **produce_fields(
            topic, topic_id, batch("a", transactional=True, base_sequence=0, **who), transactional_id=name
        ),
    )
    for note, fields in {
        "an old epoch": {"producer_epoch": -1},
        "an older coordinator": {"coordinator_epoch": -5},
        "abort": {},
        "abort again": {},
        "commit": {"transaction_result": True},
    }.items():
        marker = {
            **who,
            "coordinator_epoch": 5,
            "transaction_result": False,
            "topics": [{"name": topic, "partition_indexes": [0]}],
            **fields,
        }
        session.ask_each("WriteTxnMarkers", markers=[marker], note=note)
        session.ask("DescribeProducers", topics=[{"name": topic, "partition_indexes": [0]}], note=note)
        session.ask("Fetch", **records_fields(topic, topic_id, {"partition": 0}, isolation_level=1), note=note)


def forgotten_producers(session: Session) -> None:
    """A producer of the first version goes on after a partition has forgotten it, at once or after a mere marker."""
    for word, has_marker in (("plain", False), ("marked", True)):
        topic = session.name(word)
        _go_on_when_forgotten(session, topic, create_topic(session, topic), has_marker)


def _go_on_when_forgotten(session: Session, topic: str, topic_id: bytes, has_marker: bool) -> None:
    used, name = versions_of(session, OLD), f"{topic}-id"
    started = session.ask("InitProducerId", version=4, transactional_id=name, transaction_timeout_ms=60_000)
    who: dict[str, Any] = {"producer_id": started.producer_id, "producer_epoch": started.producer_epoch}

    def begin() -> None:
        wanted = _add(3, name, *who.values(), [{"name": topic, "partitions": [0]}])
        session.ask("AddPartitionsToTxn", version=3, **wanted)

    def produce(note: str, sequence: int, *values: str) -> Any:
        data = batch(*values, transactional=True, base_sequence=sequence, **who)
        fields = produce_fields(topic, topic_id, data, transactional_id=name)
        return session.ask("Produce", version=used["Produce"], **fields, note=note)

    def end() -> None:
        session.ask("EndTxn", version=used["EndTxn"], transactional_id=name, committed=True, **who)
        describe(session, name, topic, topic_id, "ended")

    begin()
    produce("known", 0, "a", "b")
    end()
    _forget_producers(session, topic)
    if has_marker:
        begin()
        end()
    begin()
    answer = produce("forgotten, after a marker" if has_marker else "forgotten", 2, "c")
    expected = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if has_marker else ErrorCode.NONE
    assert answer.responses[0].partition_responses[0].error_code == expected
    end()


def _forget_producers(session: Session, topic: str) -> None:
    _set_expiration(session, "1")
    try:
        asked = {"topics": [{"name": topic, "partition_indexes": [0]}]}
        described = session.wait_for(lambda answer: not _producers(answer), "DescribeProducers", **asked)
        assert not _producers(described), "the producer is not forgotten"
    finally:
        _set_expiration(session, None)


def _producers(described: Any) -> list[Any]:
    producers: list[Any] = described.topics[0].partitions[0].active_producers
    return producers


def _set_expiration(session: Session, value: str | None) -> None:
    config = {"name": "producer.id.expiration.ms", "config_operation": 1 if value is None else 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    session.ask("IncrementalAlterConfigs", resources=[resource])


def listing(session: Session) -> None:
    name = session.name("listed")
    producer = session.look("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
    for note, fields in {
        "all": {},
        "empty": {"state_filters": ["Empty"]},
        "ongoing": {"state_filters": ["Ongoing"]},
        "nonsense": {"state_filters": ["Nonsense", "empty"]},
        "by producer": {"producer_id_filters": [producer.producer_id]},
        "by another producer": {"producer_id_filters": [987654321]},
        "by duration": {"duration_filter": 1_000_000},
        "by no duration": {"duration_filter": 0},
        "by pattern": {"transactional_id_pattern": f"{session.prefix}.*"},
        "by another pattern": {"transactional_id_pattern": "nothing"},
        "by a bad pattern": {"transactional_id_pattern": "("},
        "by an empty pattern": {"transactional_id_pattern": ""},
    }.items():
        for version in session.versions("ListTransactions"):
            if ("duration_filter" in fields and version < 1) or ("transactional_id_pattern" in fields and version < 2):
                continue
            listed = session.look("ListTransactions", version=version, **fields)
            listed.transaction_states = [one for one in listed.transaction_states if one.transactional_id == name]
            session.record("ListTransactions", version, note, None, listed)
