"""The settings of a topic that its partitions use, resolved once for partitions that are opened or changed in a row."""

from collections.abc import Mapping

from sskafka.model.settings import Settings
from sskafka.replication.throttle import TopicThrottle
from sskafka.storage.log_config import LogConfig


class TopicSettings:
    __slots__ = ("_of_broker", "_overrides", "log_config", "min_insync_replicas", "throttled")

    def __init__(self, of_broker: Settings, overrides: Mapping[str, str]) -> None:
        config = of_broker.topic_config(overrides)
        self._of_broker = of_broker
        self._overrides = dict(overrides)
        self.log_config = LogConfig.from_settings(config)
        self.min_insync_replicas: int = config["min.insync.replicas"]
        self.throttled = TopicThrottle(config)

    def are_of(self, of_broker: Settings, overrides: Mapping[str, str]) -> bool:
        """Return whether a topic with these overrides has the same settings."""
        return self._of_broker is of_broker and self._overrides == overrides
