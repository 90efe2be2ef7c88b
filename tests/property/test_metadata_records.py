"""Metadata records of any content survive the log; images do not depend on how the records were replayed."""

import dataclasses
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.placement import place_replicas
from sskafka.metadata.record_codec import UnknownRecordError, decode_record, encode_record
from sskafka.metadata.records import (
    RECORD_CLASSES,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from sskafka.wire.codec import MalformedMessageError
from sskafka.wire.layout import layout_of

INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def values_of(element: Any) -> st.SearchStrategy[Any]:
    if isinstance(element, type):
        return st.builds(element, **fields_of(element))
    name = element.name
    if name in INTEGERS:
        return st.integers(-(2 ** (INTEGERS[name] - 1)), 2 ** (INTEGERS[name] - 1) - 1)
    others: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "uint16": st.integers(0, 65535),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": TEXT,
        "bytes": st.binary(max_size=20),
    }
    return others[name]


def fields_of(cls: type[Any]) -> dict[str, st.SearchStrategy[Any]]:
    newest = cls.SCHEMA.versions.last if hasattr(cls, "SCHEMA") else 0
    layout = layout_of(cls, newest)
    strategies = {}
    for field in (*layout.plain, *layout.tagged):
        values = values_of(field.element)
        values = st.lists(values, max_size=3) if field.is_array else values
        strategies[field.name] = st.none() | values if field.is_nullable(newest) else values
    return strategies


RECORDS = st.one_of([st.builds(cls, **fields_of(cls)) for cls in RECORD_CLASSES])


@given(RECORDS)
def test_any_record_is_read_back_as_it_was_written(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


@given(RECORDS, st.integers(7, 30))
def test_any_record_can_be_written_for_any_cluster(record: MetadataRecord, metadata_version: int) -> None:
    assert type(decode_record(encode_record(record, metadata_version))) is type(record)


@given(st.binary(max_size=60))
def test_foreign_bytes_are_refused_and_nothing_worse(value: bytes) -> None:
    with suppress(MalformedMessageError, UnknownRecordError):
        decode_record(value)


NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def histories(draw: st.DrawFn) -> list[MetadataRecord]:
    """Records that a controller could have written."""
    records: list[MetadataRecord] = []
    topics: dict[str, tuple[bytes, int]] = {}
    for serial in range(draw(st.integers(0, 25))):
        name = draw(NAMES)
        if name not in topics:
            topics[name] = (serial.to_bytes(16, "big"), 1)
            records += [TopicRecord(name, topics[name][0]), PartitionRecord(0, topics[name][0], [1, 2], [1, 2])]
            continue
        topic_id, partitions = topics[name]
        kind = draw(st.sampled_from(["grow", "change", "config", "remove", "feature", "broker"]))
        if kind == "grow":
            records.append(PartitionRecord(partitions, topic_id, [1, 2], [1, 2]))
            topics[name] = (topic_id, partitions + 1)
        elif kind == "change":
            changed = draw(st.integers(0, partitions - 1))
            records.append(PartitionChangeRecord(changed, topic_id, leader=draw(st.sampled_from([-2, -1, 1, 2]))))
        elif kind == "config":
            records.append(ConfigRecord(2, name, draw(NAMES), draw(st.none() | st.just("1"))))
        elif kind == "remove":
            records.append(RemoveTopicRecord(topic_id))
            del topics[name]
        elif kind == "feature":
            records.append(FeatureLevelRecord(draw(NAMES), draw(st.integers(0, 3))))
        else:
            records.append(RegisterBrokerRecord(draw(st.integers(1, 3)), broker_epoch=serial))
    return records


def content(image: ClusterImage) -> dict[str, Any]:
    topics = {name: (topic.topic_id, dict(topic.partitions)) for name, topic in image.topics_by_name.items()}
    assert {topic.topic_id: topic for topic in image.topics_by_name.values()} == image.topics_by_id
    configs = {resource: dict(image.configs(resource)) for resource in image.config_resources()}
    return {
        "topics": topics,
        "configs": configs,
        "features": dict(image.features),
        "brokers": {number: dataclasses.asdict(broker) for number, broker in image.brokers.items()},
        "next_offset": image.next_offset,
    }


@given(histories(), st.data())
def test_forks_make_no_difference_and_leave_what_was_handed_out_alone(
    records: list[MetadataRecord], data: st.DataObject
) -> None:
    straight, forked = ClusterImage(), ClusterImage()
    handed_out: list[tuple[ClusterImage, dict[str, Any]]] = []
    for record in records:
        straight.replay(record, MetadataDelta())
        if data.draw(st.booleans()):
            handed_out.append((forked, content(forked)))
            forked = forked.fork()
        forked.replay(record, MetadataDelta())
    assert content(forked) == content(straight)
    assert [content(image) for image, _ in handed_out] == [before for _, before in handed_out]


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9), st.data())
def test_placement_is_even_and_uses_as_many_racks_as_it_can(racks: list[str | None], data: st.DataObject) -> None:
    image = ClusterImage()
    for number, rack in enumerate(racks):
        image.replay(RegisterBrokerRecord(number, rack=rack, fenced=False), MetadataDelta())
    factor = data.draw(st.integers(1, len(racks)))
    start = data.draw(st.integers(0, 65535))
    placed = place_replicas(image.brokers.values(), range(2 * len(racks)), factor, start)
    rack_of = {number: rack or "" for number, rack in enumerate(racks)}
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({rack_of[replica] for replica in replicas}) == min(factor, len(set(rack_of.values())))
    leaders = [replicas[0] for replicas in placed]
    assert {leaders.count(number) for number in range(len(racks))} == {2}
