"""A decision about a group with 10,000 partitions takes a few milliseconds, so that others do not wait for it.

Times are CPU times, and the best of some tries: a busy machine makes single ones longer. Before partitions were kept as
bit masks, the longest decisions took 27 to 49 ms.
"""

import gc
from time import thread_time

import pytest
from consumer_lab import ConsumerLab, LabConsumer

from sskafka.groups.consumer_group import Topic

TURN_MS_MAX = 12
TRIES = 5


def longest_turn_ms(topic_count: int, member_count: int) -> float:
    """Let members join one after the other until all have their share. Return the longest decision with its replay."""
    lab = ConsumerLab()
    per_topic = 10_000 // topic_count
    lab.topics = {f"t{number}": Topic(number.to_bytes(16), per_topic) for number in range(topic_count)}
    members = [LabConsumer(lab, f"m{number}", *lab.topics) for number in range(member_count)]
    turns: list[float] = []

    def heartbeat_timed(member: LabConsumer, is_joining: bool) -> None:
        began = thread_time()
        member.join() if is_joining else member.beat()
        turns.append(1000 * (thread_time() - began))

    for member in members:
        heartbeat_timed(member, is_joining=True)
    for _ in range(4):
        for member in members:
            heartbeat_timed(member, is_joining=False)
    assert sum(len(member.owned) for member in members) == 10_000
    return max(turns)


@pytest.mark.parametrize("topic_count", [1, 100])
@pytest.mark.parametrize("member_count", [1, 2, 10])
def test_no_turn_of_a_group_with_10_000_partitions_is_long(topic_count: int, member_count: int) -> None:
    gc.collect()
    gc.disable()
    try:
        best = min(longest_turn_ms(topic_count, member_count) for _ in range(TRIES))
    finally:
        gc.enable()
    assert best < TURN_MS_MAX
