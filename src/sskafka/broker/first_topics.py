"""Topics that a new cluster is to have: those of `topics.file`, made once its brokers are there."""

from pathlib import Path

from sskafka.client import topics_file
from sskafka.client.admin import NewTopic
from sskafka.client.cluster import Cluster
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings


class FirstTopics:
    def __init__(self, topics: list[NewTopic], brokers_wanted: int) -> None:
        self._topics = topics
        self._brokers_wanted = brokers_wanted

    @classmethod
    def read(cls, settings: Settings) -> "FirstTopics":
        """Raise SettingError for a file that cannot be used. The setting topics.file must have a value."""
        path = settings[topics_file.SETTING]
        assert path is not None
        try:
            topics = topics_file.parse_topics(Path(path).read_text(), path)
        except OSError as error:
            raise SettingError(topics_file.SETTING, path, f"cannot be read: {error.strerror}") from error
        return cls(topics, max(1, len(settings.voters)))

    async def create(self, bootstrap_servers: str) -> None:
        async with Cluster(bootstrap_servers) as cluster:
            await topics_file.create_missing_topics(cluster, self._topics, self._brokers_wanted)
