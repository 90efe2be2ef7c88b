import pytest

from sskafka.broker.configured_topics import parse_topics
from sskafka.client.admin import NewTopic
from sskafka.model.setting import SettingError


def test_partitions_and_replication_factor_are_optional() -> None:
    text = '[{"name": "orders", "partitions": 3, "replication_factor": 2}, {"name": "logs"}]'
    assert parse_topics(text, "topics.json") == [NewTopic("orders", 3, 2), NewTopic("logs", -1, -1)]
    assert parse_topics("[]", "topics.json") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ("{}", "not a list"),
        ('["orders"]', "not an object"),
        ('[{"partitions": 3}]', "not an object with a topic name"),
        ('[{"name": "a b"}]', "a b"),
        ('[{"name": "t", "partitions": 0}]', "partitions"),
        ('[{"name": "t", "partitions": true}]', "partitions"),
        ('[{"name": "t", "replication_factor": "2"}]', "replication_factor"),
        ('[{"name": "t", "replicas": 2}]', "unknown key 'replicas'"),
    ],
)
def test_errors_name_the_cause(text: str, problem: str) -> None:
    with pytest.raises(SettingError, match=problem) as raised:
        parse_topics(text, "topics.json")
    assert "topics.json" in str(raised.value)
