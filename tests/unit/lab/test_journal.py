import pytest
from metadata_clusters import cluster, replayed, with_topic

from sskafka.lab.journal import JournalEntry, journal_entries, parse_line
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord

ID, OTHER_ID = b"\x01" * 16, b"\x02" * 16


def created(name: str, topic_id: bytes, partitions: int = 2) -> list[TopicRecord | PartitionRecord]:
    return [
        TopicRecord(name, topic_id),
        *(PartitionRecord(number, topic_id, [1, 2], [1, 2]) for number in range(partitions)),
    ]


def test_a_new_topic_is_one_line_with_partitions_from_1() -> None:
    image = cluster(2)
    (entry,) = journal_entries(replayed(image, created("t", ID)), image, epoch=3, next_offset=7)
    assert entry.line() == (
        '7 3 create-topic {"topic_name":"t","partition_count":2,"partitions":'
        '[{"id":"t-1","replica_brokers":["1","2"]},{"id":"t-2","replica_brokers":["1","2"]}]}\n'
    )
    assert parse_line(entry.line()) == entry


def test_changes_are_numbered_densely_in_the_order_of_the_log() -> None:
    image = cluster(2)
    replayed(image, created("a", ID))
    delta = replayed(image, [*created("z", OTHER_ID), *created("b", b"\x03" * 16), RemoveTopicRecord(ID)])
    entries = list(journal_entries(delta, image, epoch=1, next_offset=1))
    assert [(entry.offset, entry.type, entry.payload["topic_name"]) for entry in entries] == [
        (1, "delete-topic", "a"),
        (2, "create-topic", "z"),
        (3, "create-topic", "b"),
    ]
    assert entries[0].line() == '1 1 delete-topic {"topic_name":"a"}\n'


def test_a_topic_made_again_is_there_in_the_end() -> None:
    image = cluster(2)
    replayed(image, created("t", ID))
    delta = replayed(image, [RemoveTopicRecord(ID), *created("t", OTHER_ID)])
    assert [entry.type for entry in journal_entries(delta, image, 1, 1)] == ["delete-topic", "create-topic"]


def test_other_changes_and_topics_of_the_cluster_itself_are_not_told() -> None:
    image = with_topic(cluster(2), "t", 1, 2)
    topic_id = image.topics_by_name["t"].topic_id
    delta = replayed(image, [*created("__consumer_offsets", ID), PartitionRecord(1, topic_id, [1], [1])])
    assert list(journal_entries(delta, image, 1, 0)) == []
    delta = replayed(image, [RemoveTopicRecord(ID)])
    assert list(journal_entries(delta, image, 1, 0)) == []


def test_a_journal_can_be_made_from_an_image_alone() -> None:
    image = with_topic(with_topic(cluster(2), "b", 1, 2), "a", 1, 2)
    entries = journal_entries(MetadataDelta.from_empty(image), image, 5, 0)
    assert [(entry.offset, entry.payload["topic_name"]) for entry in entries] == [(0, "b"), (1, "a")]


@pytest.mark.parametrize(
    "line", ['0 1 create-topic {"topic_name":"t"}', "0 1 create-topic\n", "x 1 a {}\n", "0 1 a {\n", "\n"]
)
def test_torn_and_foreign_lines_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_line(line)


def test_a_line_is_read_as_it_stands() -> None:
    assert parse_line('4 2 delete-topic {"topic_name": "a b"}\n') == JournalEntry(
        4, 2, "delete-topic", {"topic_name": "a b"}
    )
