"""Topics that come into being because somebody asked about them (auto.create.topics.enable)."""

from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.servers.kafka.controller import ANSWER_TIMEOUT_MS, Controller
from sskafka.servers.kafka.creation_warnings import CreationWarnings
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

USE_DEFAULT = -1


class TopicCreation:
    def __init__(self, controller: Controller, settings: Settings) -> None:
        self._controller = controller
        self._settings = settings
        self._warnings = CreationWarnings()

    @property
    def automatic(self) -> bool:
        return bool(self._settings["auto.create.topics.enable"])

    async def create_automatically(self, names: list[str]) -> None:
        """With the broker's default numbers of partitions and replicas; whoever loses a race finds the topic there."""
        wanted = [CreatableTopic(name, num_partitions=USE_DEFAULT, replication_factor=USE_DEFAULT) for name in names]
        message = CreateTopicsRequest(topics=wanted)
        try:
            response = await self._controller.ask(message, ANSWER_TIMEOUT_MS)
        except Exception as error:  # who asked is told that there is no such topic
            for name in names:
                self._warnings.failed(name, error_code_of(error)[1])
            return
        for topic in response.topics:
            if topic.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                self._warnings.created(topic.name)
            else:
                self._warnings.failed(topic.name, topic.error_message)
