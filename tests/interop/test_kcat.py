"""kcat (librdkafka, no group): metadata, produce with every codec, consume by assignment, seek by time."""

import time

import pytest
from programs import Kcat, now_ms, wait_for_next_millisecond

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_lists_broker_and_topics(kcat: Kcat, topic: str) -> None:
    kcat.produce(topic, ["first"])
    listing = kcat.metadata()
    assert [broker["name"] for broker in listing["brokers"]] == [kcat.bootstrap]
    assert listing["controllerid"] == listing["brokers"][0]["id"]
    described = {entry["topic"]: entry["partitions"] for entry in listing["topics"]}
    assert [(one["partition"], one["leader"]) for one in described[topic]] == [(0, listing["brokers"][0]["id"])]


@pytest.mark.parametrize("codec", CODECS)
def test_reads_back_what_it_wrote_with(codec: str, kcat: Kcat, topic: str) -> None:
    began_ms = now_ms()
    values = [f"{codec} value {number} " + "x" * 200 for number in range(500)]
    kcat.produce(topic, [f"key-{value[-5:]}:{value}" for value in values], "-z", codec, "-K", ":")
    messages = kcat.consume(topic)
    assert [message.value for message in messages] == values
    assert [message.offset for message in messages] == list(range(500))
    assert {message.key for message in messages} == {"key-xxxxx"}
    assert all(began_ms <= message.timestamp <= now_ms() for message in messages)
    assert {message.timestamp_type for message in messages} == {"create"}


def test_headers_null_values_and_empty_keys(kcat: Kcat, topic: str) -> None:
    kcat.produce(topic, ["k1:v1", "k2:", ":v3"], "-K", ":", "-Z", "-H", "first=1", "-H", "second=zwei", "-H", "first=3")
    headers = (("first", "1"), ("second", "zwei"), ("first", "3"))
    messages = kcat.consume(topic)
    assert [(one.key, one.value) for one in messages] == [("k1", "v1"), ("k2", None), (None, "v3")]
    assert {one.headers for one in messages} == {headers}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(acks: str, kcat: Kcat, topic: str) -> None:
    kcat.produce(topic, ["created"])
    kcat.produce(topic, [str(number) for number in range(100)], "-X", f"acks={acks}")
    deadline = time.monotonic() + 10
    while len(messages := kcat.consume(topic, offset="1")) < 100 and time.monotonic() < deadline:
        assert acks == "0", "an acknowledged record is missing"
    assert [message.value for message in messages] == [str(number) for number in range(100)]


def test_idempotent_producer(kcat: Kcat, topic: str) -> None:
    values = [str(number) for number in range(5000)]
    kcat.produce(topic, values, "-X", "enable.idempotence=true", "-X", "batch.num.messages=100")
    assert [message.value for message in kcat.consume(topic)] == values


def test_offsets_from_the_start_the_end_and_the_middle(kcat: Kcat, topic: str) -> None:
    kcat.produce(topic, [str(number) for number in range(50)])
    assert [one.offset for one in kcat.consume(topic, offset="30")] == list(range(30, 50))
    assert [one.offset for one in kcat.consume(topic, offset="-5")] == list(range(45, 50))
    assert kcat.consume(topic, offset="end") == []


def test_seek_and_query_by_timestamp(kcat: Kcat, topic: str) -> None:
    for number in range(3):
        kcat.produce(topic, [f"batch {number}", "second of it"])
        wait_for_next_millisecond()
    messages = kcat.consume(topic)
    first_of_second = messages[2].timestamp
    assert kcat.consume(topic, offset=f"s@{first_of_second}") == messages[2:]
    assert kcat.consume(topic, offset=f"s@{messages[-1].timestamp + 60_000}") == []
    answer = kcat.run("-Q", "-t", f"{topic}:0:{first_of_second}")
    assert answer.split() == [topic, "[0]", "offset", "2"]


def test_large_messages_and_small_fetches(kcat: Kcat, topic: str) -> None:
    values = [str(number) * 300_000 for number in range(5)]
    kcat.produce(topic, values)
    small = ("-X", "fetch.message.max.bytes=1000", "-X", "fetch.max.bytes=1000000")
    assert [message.value for message in kcat.consume(topic, *small)] == values


@pytest.mark.parametrize("name", ["/", "with space", "a" * 250, ".."])
def test_bad_topic_names_are_refused(name: str, kcat: Kcat) -> None:
    with pytest.raises(AssertionError, match="Invalid topic"):
        kcat.produce(name, ["never stored"])
