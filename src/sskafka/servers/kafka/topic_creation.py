"""Automatic creation of topics that a client has asked for (auto.create.topics.enable).

As in Kafka, the client does not wait. It receives UNKNOWN_TOPIC_OR_PARTITION, a retriable error, while the controller
creates the topic, and finds the topic when it retries.
"""

from collections.abc import Iterable

from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, internal_topic
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS
from sskafka.model.settings import Settings
from sskafka.servers.kafka.controller import ANSWER_TIMEOUT_MS, Controller
from sskafka.servers.kafka.creation_warnings import CreationWarnings
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.registry import Spawn
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


class TopicCreation:
    def __init__(self, controller: Controller, settings: Settings, spawn: Spawn) -> None:
        self._controller = controller
        self._settings = settings
        self._spawn = spawn
        self._under_way: set[str] = set()
        self._warnings = CreationWarnings()

    @property
    def automatic(self) -> bool:
        return self._settings["auto.create.topics.enable"]

    def create_soon(self, names: Iterable[str]) -> None:
        """Ask the controller to create the topics, unless a request for them is under way."""
        wanted = [topic for name in names if name not in self._under_way and (topic := self._wanted(name)) is not None]
        if wanted:
            self._under_way |= {topic.name for topic in wanted}
            self._spawn(self._create(wanted))

    def _wanted(self, name: str) -> CreatableTopic | None:
        """Return the topic with this broker's defaults, or None for an internal topic that SSKafka does not use."""
        if name in {CONSUMER_OFFSETS, TRANSACTION_STATE}:
            return internal_topic(name, self._settings, self._controller.image)
        if name in INTERNAL_TOPICS:
            return None
        partitions, replicas = self._settings["num.partitions"], self._settings["default.replication.factor"]
        return CreatableTopic(name, num_partitions=partitions, replication_factor=replicas)

    async def _create(self, wanted: list[CreatableTopic]) -> None:
        names = [topic.name for topic in wanted]
        try:
            response = await self._controller.ask(CreateTopicsRequest(topics=wanted), ANSWER_TIMEOUT_MS)
        except Exception as error:  # the client retries
            for name in names:
                self._warnings.failed(name, error_code_of(error)[1])
        else:
            for topic in response.topics:
                if topic.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                    self._warnings.created(topic.name)
                else:
                    self._warnings.failed(topic.name, topic.error_message)
        finally:
            self._under_way -= set(names)
