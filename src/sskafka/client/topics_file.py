"""Topics that a cluster is to have from its start, named in a file:

    [{"name": "orders", "partitions": 3, "replication_factor": 2}, ...]

They are created once enough brokers are there to hold them; a topic that exists is left alone, whatever it looks like.
Every broker that is given the file may try: whoever comes second finds the topics there.
"""

import json
import logging
from collections.abc import Sequence
from itertools import count
from typing import Any

from sskafka.client.admin import USE_BROKER_DEFAULT, Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.errors import is_retriable
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import topic_name_problem
from sskafka.model.setting import SettingError

log = logging.getLogger(__name__)

SETTING = "topics.file"
_KEYS = {"name", "partitions", "replication_factor"}


def parse_topics(text: str, path: str) -> list[NewTopic]:
    """Raises SettingError for anything but a list as above; either number may be left out."""
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise SettingError(SETTING, path, f"not JSON: {error}") from None
    if not isinstance(entries, list):
        raise SettingError(SETTING, path, "not a list of topics")
    return [_topic(entry, path) for entry in entries]


def _topic(entry: Any, path: str) -> NewTopic:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise SettingError(SETTING, path, f"{json.dumps(entry)} is not a topic with a name")
    if unknown := entry.keys() - _KEYS:
        raise SettingError(SETTING, path, f"topic {entry['name']!r}: unknown key {min(unknown)!r}")
    if problem := topic_name_problem(entry["name"]):
        raise SettingError(SETTING, path, problem)
    return NewTopic(entry["name"], _number(entry, "partitions", path), _number(entry, "replication_factor", path))


def _number(entry: dict[str, Any], key: str, path: str) -> int:
    value = entry.get(key, USE_BROKER_DEFAULT)
    if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != USE_BROKER_DEFAULT):
        raise SettingError(SETTING, path, f"topic {entry['name']!r}: {key} is not a number above 0")
    return value


async def create_missing_topics(cluster: Cluster, topics: Sequence[NewTopic], brokers_wanted: int) -> None:
    """Waits for the brokers, however long that takes, and creates what is not there."""
    for attempt in count():
        if await _try_to_create(cluster, topics, brokers_wanted):
            return
        await cluster.pause(attempt, cluster.deadline_ms())


async def _try_to_create(cluster: Cluster, topics: Sequence[NewTopic], brokers_wanted: int) -> bool:
    try:
        if len(await cluster.brokers()) < brokers_wanted:
            return False
        present = {topic.name for topic in await Admin(cluster).list_topics(internal=True)}
        missing = [topic for topic in topics if topic.name not in present]
        outcomes = await Admin(cluster).create_topics(missing) if missing else {}
    except Exception as error:
        if not is_retriable(error):
            raise
        return False
    settled = [_is_settled(name, outcome) for name, outcome in outcomes.items()]
    return all(settled)


def _is_settled(name: str, outcome: object) -> bool:
    """Whether trying again would change nothing."""
    if not isinstance(outcome, KafkaError):
        log.info("created topic %s, as %s asks for", name, SETTING)
        return True
    if outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS and not is_retriable(outcome):
        log.error("topic %s of %s cannot be created: %s", name, SETTING, outcome)
    return outcome.code == ErrorCode.TOPIC_ALREADY_EXISTS or not is_retriable(outcome)
