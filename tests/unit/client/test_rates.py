"""Rates from two samples: growth counts, what shrinks or is new does not."""

from collections.abc import Mapping

import pytest

from sskafka.client.rates import RateSample, ReaderRate, TopicRate, rates_between
from sskafka.model.ids import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def sample(
    at_ms: float,
    ends: Mapping[TopicPartition, int],
    sizes: Mapping[TopicPartition, int] | None = None,
    committed: Mapping[str, Mapping[TopicPartition, int]] | None = None,
    fetched: Mapping[str, Mapping[TopicPartition, int]] | None = None,
) -> RateSample:
    return RateSample(at_ms, ends, sizes or {}, committed or {}, fetched or {})


def test_topics_groups_and_clients() -> None:
    before = sample(1000, {A0: 10, A1: 0, B0: 5}, {A0: 100, B0: 900}, {"g": {A0: 4}}, {"c": {B0: 5}})
    after = sample(3000, {A0: 30, A1: 6, B0: 5}, {A0: 500, B0: 300}, {"g": {A0: 14, A1: 1}}, {"c": {B0: 5}})
    rates = rates_between(before, after)
    assert rates.topics == [TopicRate("a", 13.0, 200.0), TopicRate("b", 0.0, 0.0)]
    assert rates.groups == [ReaderRate("g", 5.0, 16 + 5)]
    assert rates.clients == [ReaderRate("c", 0.0, 0)]


def test_a_new_partition_and_a_reset_group_have_no_rate() -> None:
    before = sample(0, {A0: 10}, committed={"g": {A0: 10}})
    after = sample(1000, {A0: 10, A1: 1000}, committed={"g": {A0: 0}, "new": {A1: 900}})
    rates = rates_between(before, after)
    assert [rate.records_per_s for rate in rates.topics] == [0.0]
    assert rates.groups == [ReaderRate("new", 0.0, 100), ReaderRate("g", 0.0, 10)]


def test_the_busiest_come_first() -> None:
    before = sample(0, {A0: 0, B0: 0})
    after = sample(500, {A0: 1, B0: 2})
    assert [rate.topic for rate in rates_between(before, after).topics] == ["b", "a"]
    assert rates_between(before, after).topics[0].records_per_s == pytest.approx(4)
