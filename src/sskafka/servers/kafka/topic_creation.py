"""Automatic creation of topics that a client has asked for (auto.create.topics.enable).

As in Kafka, the client does not wait. It receives UNKNOWN_TOPIC_OR_PARTITION, a retriable error, while the controller
creates the topic, and finds the topic when it retries.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice

from sskafka.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, internal_topic, partition_of
from sskafka.metadata.image import TopicImage
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import INTERNAL_TOPICS
from sskafka.model.settings import Settings
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import ANSWER_TIMEOUT_MS, Controller
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.registry import Spawn
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

log = logging.getLogger(__name__)

TOPICS_MAX = 1000
"""Bound on remembered names, because clients choose the names."""
LOGGED_MAX = 10
"""Topics of one request that are named in the log."""
CREATED_MAX = 1000
"""Topics that one request creates. The client asks for the others again."""


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
        """Ask the controller to create the first CREATED_MAX topics for which no request is under way."""
        new = islice((name for name in names if name not in self._under_way), CREATED_MAX)
        wanted = [topic for topic in map(self._wanted, new) if topic is not None]
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
            self._warnings.all_failed(names, error_code_of(error)[1])
        else:
            failed: dict[str | None, list[str]] = {}
            for topic in response.topics:
                if topic.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                    self._warnings.created(topic.name)
                else:
                    failed.setdefault(topic.error_message, []).append(topic.name)
            for reason, of_topics in failed.items():
                self._warnings.all_failed(of_topics, reason)
        finally:
            self._under_way -= set(names)


class CreationWarnings:
    """Logs a warning for each topic that cannot be created, and each reason, once.

    Clients request such topics again and again; repetitions are logged at DEBUG."""

    def __init__(self) -> None:
        self._reasons: dict[str, str | None] = {}

    def failed(self, topic: str, reason: str | None) -> None:
        is_known = topic in self._reasons and self._reasons[topic] == reason
        log.log(logging.DEBUG if is_known else logging.WARNING, "topic %s could not be created: %s", topic, reason)
        if len(self._reasons) >= TOPICS_MAX:
            self._reasons.clear()
        self._reasons[topic] = reason

    def all_failed(self, topics: list[str], reason: str | None) -> None:
        """Log the first few of the topics: clients decide how many there are."""
        for topic in topics[:LOGGED_MAX]:
            self.failed(topic, reason)
        if len(topics) > LOGGED_MAX:
            self.failed(f"... and {len(topics) - LOGGED_MAX} others", reason)

    def created(self, topic: str) -> None:
        self._reasons.pop(topic, None)


class InternalTopics:
    """Creates internal topics when they are first needed.

    A topic that `find_or_create` returns is in the image, and this broker has applied that image. `when_applied` calls
    back when this broker has applied the metadata that it has received."""

    def __init__(
        self,
        view: ClusterView,
        controller: Controller,
        settings: Settings,
        when_applied: Callable[[Callable[[], None]], None],
    ) -> None:
        self._view = view
        self._controller = controller
        self._settings = settings
        self._when_applied = when_applied
        self._creation = asyncio.Lock()
        self._warnings = CreationWarnings()

    async def find_or_create(self, name: str) -> TopicImage | None:
        """Return the topic, or None if it cannot be created now. Concurrent callers share one request."""
        return self._view.image.topics_by_name.get(name) or await self._create(name)

    async def partition_of(self, name: str, key: str) -> int | None:
        """Return the partition of an internal topic that keeps `key`. None when the topic cannot be created now."""
        topic = await self.find_or_create(name)
        return None if topic is None else partition_of(key, len(topic.partitions))

    async def _create(self, name: str) -> TopicImage | None:
        async with self._creation:
            topic = self._view.image.topics_by_name.get(name)
            if topic is None:
                await self._ask_for(name)
                applied = asyncio.Event()
                self._when_applied(applied.set)
                await applied.wait()
        return topic or self._view.image.topics_by_name.get(name)

    async def _ask_for(self, name: str) -> None:
        wanted = internal_topic(name, self._settings, self._view.image)
        try:
            response = await self._controller.ask(CreateTopicsRequest(topics=[wanted]), ANSWER_TIMEOUT_MS)
        except Exception as error:  # the client gets a retriable error
            self._warnings.failed(name, error_code_of(error)[1])
            return
        for topic in response.topics:
            if topic.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                self._warnings.created(name)
            else:
                self._warnings.failed(name, topic.error_message)
