"""Create internal topics when they are first needed.

A topic that `find_or_create` returns is in the image, and this broker has applied that image.
"""

import asyncio
from collections.abc import Callable

from sskafka.coordination.internal_topics import internal_topic, partition_of
from sskafka.metadata.image import TopicImage
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import ANSWER_TIMEOUT_MS, Controller
from sskafka.servers.kafka.creation_warnings import CreationWarnings
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.wire.messages.create_topics import CreateTopicsRequest


class InternalTopics:
    """`when_applied` calls back when this broker has applied the metadata that it has received."""

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
