"""What the leader of a classic group assigns. The expected results of range and roundrobin are Apache Kafka's."""

from collections.abc import Sequence

import pytest

from sskafka.client.group.assignors import (
    STRATEGIES,
    SubscribedMember,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
)
from sskafka.model.ids import TopicPartition


def member(name: str, *topics: str, instance_id: str | None = None) -> SubscribedMember:
    return SubscribedMember(name, instance_id, frozenset(topics))


def assigned(strategy: str, members: Sequence[SubscribedMember], **counts: int) -> dict[str, str]:
    """The partitions of each member as `t0 t1`."""
    result = STRATEGIES[strategy](members, counts)
    return {name: " ".join(f"{topic}{index}" for topic, index in sorted(parts)) for name, parts in result.items()}


def test_range_gives_each_member_a_range_of_each_topic() -> None:
    members = [member("b", "t", "u"), member("a", "t", "u")]
    assert assigned("range", members, t=3, u=3) == {"a": "t0 t1 u0 u1", "b": "t2 u2"}
    assert assigned("range", [member("a", "t"), member("b", "t", "u")], t=2, u=2) == {"a": "t0", "b": "t1 u0 u1"}


def test_roundrobin_goes_on_from_topic_to_topic() -> None:
    members = [member("b", "t", "u"), member("a", "t", "u")]
    assert assigned("roundrobin", members, t=3, u=3) == {"a": "t0 t2 u1", "b": "t1 u0 u2"}
    different = [member("a", "t"), member("b", "t", "u"), member("c", "t", "u", "v")]
    assert assigned("roundrobin", different, t=1, u=2, v=3) == {"a": "t0", "b": "u0", "c": "u1 v0 v1 v2"}


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    members = [member("a", "t"), member("z", "t", instance_id="2"), member("y", "t", instance_id="3")]
    for strategy in ("range", "roundrobin"):
        assert assigned(strategy, members, t=3) == {"z": "t0", "y": "t1", "a": "t2"}


def test_topics_that_do_not_exist_or_nobody_reads_are_left_out() -> None:
    for strategy in STRATEGIES:
        assert assigned(strategy, [member("a", "t", "missing")], t=1, other=2) == {"a": "t0"}


def test_cooperative_sticky_moves_a_partition_in_two_generations() -> None:
    old = member("a", "t")._replace(owned=frozenset(TopicPartition("t", n) for n in range(4)), generation=1)
    new = member("b", "t")
    first = STRATEGIES["cooperative-sticky"]([old, new], {"t": 4})
    assert (len(first["a"]), first["b"]) == (2, frozenset())
    kept = old._replace(owned=first["a"], generation=2)
    second = STRATEGIES["cooperative-sticky"]([kept, new], {"t": 4})
    assert second["a"] == first["a"]
    assert second["b"] == old.owned - first["a"]
    third = STRATEGIES["cooperative-sticky"]([kept, new._replace(owned=second["b"], generation=3)], {"t": 4})
    assert third == second


def test_a_member_that_missed_a_generation_no_longer_owns_what_it_claims() -> None:
    both = frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})
    zombie = member("a", "t")._replace(owned=both, generation=1)
    current = member("b", "t")._replace(owned=both, generation=2)
    result = STRATEGIES["cooperative-sticky"]([zombie, current], {"t": 2})
    assert (len(result["a"]), len(result["b"])) == (0, 1), "the other partition is revoked from b first"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_partition_has_one_owner(strategy: str) -> None:
    members = [member(f"m{number}", "t", *(["u"] if number % 2 else [])) for number in range(5)]
    result = STRATEGIES[strategy](members, {"t": 7, "u": 4})
    given = [partition for partitions in result.values() for partition in partitions]
    assert sorted(given) == [TopicPartition(topic, n) for topic, count in (("t", 7), ("u", 4)) for n in range(count)]


def test_subscriptions_and_assignments_there_and_back() -> None:
    owned = frozenset({TopicPartition("t", 1), TopicPartition("u", 0)})
    data = encode_subscription(["u", "t"], owned, 7, "rack")
    assert decode_member("m", "i", data) == SubscribedMember("m", "i", frozenset({"t", "u"}), owned, 7)
    assert decode_assignment(encode_assignment(owned)) == owned
    assert decode_assignment(b"") == frozenset()
    assert decode_member("m", None, b"\xff").topics == frozenset()
