import pytest
from pydantic import TypeAdapter, ValidationError

from sskafka.model.ids import TopicPartition
from sskafka.servers.http.lab_names import BrokerId, check_new_topic_name, parse_topic_partition, partition_id
from sskafka.servers.http.problems import Problem

BROKER_ID = TypeAdapter(BrokerId)


def test_partitions_are_counted_from_one_here() -> None:
    assert parse_topic_partition("testtopic-1") == TopicPartition("testtopic", 0)
    assert partition_id("testtopic", 0) == "testtopic-1"


def test_the_last_dash_parts_topic_and_number() -> None:
    assert parse_topic_partition("made-elsewhere-12") == TopicPartition("made-elsewhere", 11)


@pytest.mark.parametrize(
    "text", ["", "t", "t-", "-1", "t-0", "t-x", "t--1x", "t-99999999999", "__consumer_offsets-1", "t-١"]
)
def test_what_can_be_no_partition_is_not_found(text: str) -> None:
    with pytest.raises(Problem) as refused:
        parse_topic_partition(text)
    assert refused.value.status_code == 404


@pytest.mark.parametrize("name", ["", ".", "..", "my-topic", "a b", "ä", "x" * 250, "__transaction_state"])
def test_names_that_no_topic_of_the_lab_can_have(name: str) -> None:
    with pytest.raises(Problem) as refused:
        check_new_topic_name(name)
    assert refused.value.status_code == 400


def test_names_that_a_topic_can_have() -> None:
    for name in ("testtopic", "a.b_c", "X9"):
        check_new_topic_name(name)


@pytest.mark.parametrize(("given", "number"), [("2", 2), (2, 2), ("broker-2", 2), ("0", 0)])
def test_brokers_are_named_by_number_or_text(given: object, number: int) -> None:
    assert BROKER_ID.validate_python(given) == number


@pytest.mark.parametrize("given", ["", "x", "-1", -1, True, 2.5, None, [], "99999999999", "broker-"])
def test_what_is_no_broker_id(given: object) -> None:
    with pytest.raises(ValidationError):
        BROKER_ID.validate_python(given)
