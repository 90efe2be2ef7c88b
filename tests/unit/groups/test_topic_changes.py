"""A change of topics costs little for groups that it does not concern, and is never missed by those that it does."""

from random import Random

import pytest
from consumer_lab import ConsumerLab, LabConsumer, topic_id

from sskafka.groups import topic_changes
from sskafka.groups.consumer_group import Topic
from sskafka.groups.topic_changes import TopicChanges, matching, topics_hash
from sskafka.model import pattern_matching
from sskafka.model.computation import Computation, finished
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.pattern import SlowPatternError
from sskafka.model.pattern_matching import CpuClock


def topics_of(**counts: int) -> dict[str, Topic]:
    return {name: Topic(topic_id(name), count) for name, count in counts.items()}


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every name that a pattern is compared with."""
    names: list[str] = []

    def noting(pattern: str, of: list[str], cpu_ns: CpuClock) -> Computation[frozenset[str]]:
        of = list(of)
        names.extend(of)
        return (yield from matching(pattern, of))

    monkeypatch.setattr(topic_changes, "matching", noting)
    return names


def test_patterns_are_compared_with_new_names_alone(matched: list[str]) -> None:
    lab = ConsumerLab()
    lab.set_topics({f"orders-{n}": 1 for n in range(50)})
    consumers = [LabConsumer(lab, f"m{n}") for n in range(10)]
    for n, consumer in enumerate(consumers):
        consumer.group_id, consumer.topics, consumer.regex = f"g{n}", None, f"orders-{n}.*"
        consumer.join()
    matched.clear()
    written = len(lab.log)
    lab.set_topics({f"orders-{n}": 1 for n in range(50)} | {"payments": 1})
    for consumer in consumers:
        consumer.beat()
    assert matched == ["payments"] * 10, "once a pattern"
    lab.set_topics({f"orders-{n}": 1 for n in range(50)} | {"payments": 3})
    for consumer in consumers:
        consumer.beat()
    assert len(matched) == 10, "no name is new"
    assert len(lab.log) == written


def test_a_group_hears_of_what_it_reads(matched: list[str]) -> None:
    lab = ConsumerLab()
    lab.set_topics({"orders-1": 1, "other": 1})
    consumer = LabConsumer(lab, "m")
    consumer.topics, consumer.regex = None, "orders-.*"
    consumer.join()
    news = [{"orders-1": 2, "other": 1}, {"orders-1": 2, "orders-2": 1}, {"orders-2": 1}, {"orders-2": 1, "other": 9}]
    for expected_epoch, topics in zip((3, 4, 5, 5), news, strict=True):
        lab.set_topics(topics)
        consumer.beat()
        group = lab.consumers
        assert group.regex_topics["orders-.*"] == {name for name in topics if name.startswith("orders-")}
        assert group.epoch == expected_epoch


def test_what_is_remembered_is_what_would_be_found_anew() -> None:
    random = Random(7)
    patterns = ["a.*", ".*b", "[ab]+", "c|a", ".*"]
    news = TopicChanges()
    for _ in range(300):
        names = ["".join(random.choices("abc", k=random.randint(1, 3))) for _ in range(random.randint(0, 8))]
        topics = topics_of(**dict.fromkeys(names, random.randint(1, 2)))
        news.update(topics)
        for pattern in random.sample(patterns, 3):
            assert news.resolved(pattern) == finished(matching(pattern, topics))


def test_forgotten_patterns_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_changes, "PATTERNS_MAX", 2)
    news = TopicChanges()
    news.update(topics_of(a=1, b=1))
    assert [news.resolved(pattern) for pattern in ("a", "b", ".", "a")] == [{"a"}, {"b"}, {"a", "b"}, {"a"}]


class Ticking:
    """A CPU clock in which every look at it takes some time."""

    def __init__(self, step_ns: int) -> None:
        self.now_ns, self.step_ns = 0, step_ns

    def __call__(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns


def test_a_pattern_that_takes_much_time_is_refused_and_not_tried_again() -> None:
    clock = Ticking(pattern_matching.MATCHING_NS_MAX)
    with pytest.raises(SlowPatternError):
        finished(matching("a.*", [f"a{i}" for i in range(100)], clock))
    news = TopicChanges(clock)
    news.update(topics_of(**{f"a{i}": 1 for i in range(100)}))
    assert news.resolved("a.*") is None, "it takes longer than a turn"
    assert finished(news.resolve("a.*")) is None
    for _ in range(2):
        with pytest.raises(KafkaError, match="takes too much time") as refusal:
            news.resolved("a.*")
        assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        before_ns = clock.now_ns
    assert clock.now_ns == before_ns, "the second time nothing was matched"
    clock.step_ns = 1
    news.update(topics_of(a=1))
    assert news.resolved("a.*") == {"a"}, "other topics, another attempt"


def test_patterns_that_add_up_to_much_time_are_forgotten_and_matched_again_one_by_one() -> None:
    clock = Ticking(1)
    news = TopicChanges(clock)
    news.update(topics_of(a=1, b=1))
    patterns = [f"{letter}.*" for letter in "abcdefgh"]
    for pattern in patterns:
        news.resolved(pattern)
    clock.step_ns = topic_changes.AGAIN_NS // 8
    news.update(topics_of(a=1, b=1, c=1))
    clock.step_ns = 1
    assert [news.resolved(pattern) for pattern in patterns[:3]] == [{"a"}, {"b"}, {"c"}]


def test_a_pattern_that_takes_longer_than_a_turn_is_resolved_in_steps() -> None:
    clock = Ticking(pattern_matching.STEP_NS // 4)
    news = TopicChanges(clock)
    news.update(topics_of(**{f"a{i}": 1 for i in range(100)}))
    assert news.resolved("a.*") is None
    before_ns = clock.now_ns
    assert news.resolved("a.*") is None
    assert clock.now_ns == before_ns, "it is not tried at once again"
    steps = news.resolve("a.*")
    next(steps)
    next(steps)
    news.update(topics_of(**{f"a{i}": 1 for i in range(1, 101)}, b=1))
    assert finished(steps) == {f"a{i}" for i in range(1, 101)}, "topics have changed meanwhile"
    assert news.resolved("a.*") == {f"a{i}" for i in range(1, 101)}


def test_names_of_patterns_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_changes, "NAMES_MAX", 5)
    news = TopicChanges()
    news.update(topics_of(a=1, b=1, c=1))
    for pattern in (".*", "[abc]", "a|b", "."):
        assert news.resolved(pattern) == {"a", "b", "c"} - ({"c"} if pattern == "a|b" else set())
        assert sum(map(len, news._found.values())) <= 5


def test_the_hash_tells_topics_apart() -> None:
    topics = topics_of(a=1, b=2)
    assert topics_hash(topics, []) == topics_hash(topics, ["unknown"]) == 0
    assert topics_hash(topics, ["b", "a"]) == topics_hash(topics, {"a", "b", "unknown"})
    others = [topics_of(a=1, b=3), topics_of(a=1), {**topics, "b": Topic(b"2" * 16, 2)}]
    hashes = {topics_hash(found, ["a", "b"]) for found in (topics, *others)}
    assert len(hashes) == 4
    assert all(-(1 << 63) <= value < 1 << 63 for value in hashes)
