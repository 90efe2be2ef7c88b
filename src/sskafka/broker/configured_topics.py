"""`topics.file`: topics to create when a cluster starts, as a JSON file:

    [{"name": "orders", "partitions": 3, "replication_factor": 2}, ...]

The topics are created once enough brokers are registered to hold them. An existing topic is not changed, even if it
differs from the file. Several brokers may have the file: the slower ones find that the topics exist.
"""

import json
import logging
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from sskafka.client.admin import USE_BROKER_DEFAULT, Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.errors import is_retriable
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import topic_name_problem
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings

log = logging.getLogger(__name__)

SETTING: Final = "topics.file"
_KEYS = {"name", "partitions", "replication_factor"}


class ConfiguredTopics:
    def __init__(self, topics: list[NewTopic], brokers_wanted: int) -> None:
        self._topics = topics
        self._brokers_wanted = brokers_wanted

    @classmethod
    def read(cls, settings: Settings) -> "ConfiguredTopics":
        """Raise SettingError for a file that cannot be used. The setting topics.file must have a value."""
        path = settings[SETTING]
        assert path is not None
        try:
            topics = parse_topics(Path(path).read_text(), path)
        except OSError as error:
            raise SettingError(SETTING, path, f"cannot be read: {error.strerror}") from error
        return cls(topics, max(1, len(settings.voters)))

    async def create(self, cluster: Cluster) -> None:
        async with cluster:
            await create_missing_topics(cluster, self._topics, self._brokers_wanted)


def parse_topics(text: str, path: str) -> list[NewTopic]:
    """Parse the file's text; raise SettingError unless it is a list as above. Both numbers are optional."""
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise SettingError(SETTING, path, f"not JSON: {error}") from None
    if not isinstance(entries, list):
        raise SettingError(SETTING, path, "not a list of topics")
    return [_topic(entry, path) for entry in entries]


def _topic(entry: Any, path: str) -> NewTopic:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise SettingError(SETTING, path, f"{json.dumps(entry)} is not an object with a topic name")
    if unknown := entry.keys() - _KEYS:
        raise SettingError(SETTING, path, f"topic {entry['name']!r}: unknown key {min(unknown)!r}")
    if problem := topic_name_problem(entry["name"]):
        raise SettingError(SETTING, path, problem)
    return NewTopic(entry["name"], _number(entry, "partitions", path), _number(entry, "replication_factor", path))


def _number(entry: dict[str, Any], key: str, path: str) -> int:
    value = entry.get(key, USE_BROKER_DEFAULT)
    if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != USE_BROKER_DEFAULT):
        raise SettingError(SETTING, path, f"topic {entry['name']!r}: {key} must be a number above 0")
    return value


async def create_missing_topics(cluster: Cluster, topics: Sequence[NewTopic], brokers_wanted: int) -> None:
    """Wait, without a time limit, until enough brokers are registered; then create the missing topics."""
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
    """Return whether another attempt would change nothing."""
    if not isinstance(outcome, KafkaError):
        log.info("created topic %s of %s", name, SETTING)
        return True
    if outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS and not is_retriable(outcome):
        log.error("cannot create topic %s of %s: %s", name, SETTING, outcome)
    return outcome.code == ErrorCode.TOPIC_ALREADY_EXISTS or not is_retriable(outcome)
