"""Subscriptions of classic consumers: read as the codec reads them, but never more than fits into a turn."""

from random import Random
from struct import pack
from time import thread_time

import pytest
from consumer_lab import ConsumerLab, LabConsumer
from test_group_migration import OldConsumer

from sskafka.groups import subscription
from sskafka.groups.consumer_group import ConsumerGroup
from sskafka.groups.subscription import SUBSCRIBED_MAX, listed_count, read_subscription, subscribed_topics
from sskafka.model.errors import ErrorCode
from sskafka.wire.codec import encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription, TopicPartition

MANY_NAMES = 400_000


def encoded(topics: list[str], version: int = 1, owned: int = 0, user_data: bytes | None = None) -> bytes:
    partitions = [TopicPartition(name, list(range(owned))) for name in topics] if owned else []
    return pack(">h", version) + encode(ConsumerProtocolSubscription(topics, user_data, partitions), version)


def many_names(seed: int) -> bytes:
    """About two megabytes, as much as a JoinGroup request may have."""
    names = b"".join(pack(">h", 3) + pack(">I", number + (seed << 20))[1:].hex().encode()[:3] for number in range(999))
    return pack(">hi", 1, MANY_NAMES) + names * (MANY_NAMES // 999 + 1)


def test_topics_are_those_that_the_codec_reads() -> None:
    random = Random(5)
    pool = ["orders", "bills", "été", "a", "clicks" * 20]
    for _ in range(300):
        members = [
            encoded(
                random.sample(pool, random.randint(0, 5)),
                random.randint(0, 3),
                random.randint(0, 2),
                random.choice([None, b"", b"orders"]),
            )
            for _ in range(random.randint(1, 12))
        ]
        read = [read_subscription(member) for member in members]
        expected = {topic for member in read if member is not None for topic in member.topics}
        assert subscribed_topics(members) == expected


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"\0",
        b"\0\1",
        b"\xff\xff" + encoded(["t"])[2:],
        pack(">hi", 1, -1),
        pack(">hih", 1, 1, 9),
        pack(">hih", 1, 1, -1),
        pack(">hihc", 1, 1, 1, b"\xff"),
    ],
)
def test_other_formats_are_unknown(other: bytes) -> None:
    assert subscribed_topics([encoded(["t"]), other]) is None


def test_topics_in_common_are_read_once() -> None:
    names = [f"topic-{number}" for number in range(SUBSCRIBED_MAX)]
    members = [encoded(names, version, owned) for version in (1, 2, 3) for owned in (0, 1, 2)]
    assert subscribed_topics(members) == set(names)
    assert subscribed_topics([*members, encoded(["another"])]) is None, "they are too many"


def test_a_generation_of_members_with_millions_of_names_takes_no_time() -> None:
    members = [many_names(seed) for seed in range(8)]
    assert listed_count(members[0]) == MANY_NAMES
    began = thread_time()
    assert subscribed_topics(members) is None
    assert thread_time() - began < 0.02, "it took 1.2 seconds"


def test_a_group_with_too_much_to_read_is_not_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = ConsumerLab()
    old = OldConsumer(lab)
    old.join()
    old.sync({old.member_id: b""})
    monkeypatch.setattr("sskafka.groups.migration.LISTED_MAX", 0)
    refused = LabConsumer(lab, "new").join()
    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "too large" in refused.message
    monkeypatch.undo()
    assert LabConsumer(lab, "new").join().code is ErrorCode.NONE


def test_a_classic_member_with_too_much_to_read_does_not_join_a_consumer_group() -> None:
    lab = ConsumerLab()
    LabConsumer(lab, "new").join()
    assert isinstance(lab.shard.groups["g"], ConsumerGroup)
    for metadata in (many_names(0), encoded(["orders"], user_data=b"x" * subscription.BYTES_MAX)):
        first = lab.join(protocols=[("range", metadata)])
        began = thread_time()
        refused = lab.join(first.response.member_id, [("range", metadata)])
        assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert thread_time() - began < 0.02
    joined = lab.join(first.response.member_id, [("range", encoded(["orders"]))])
    assert joined.code is ErrorCode.NONE
