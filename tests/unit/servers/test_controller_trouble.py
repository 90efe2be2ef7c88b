"""While the controller cannot write because its disk is full, clients get an error and keep their connections."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.handlers.configs import ConfigHandlers
from sskafka.servers.kafka.handlers.producers import ProducerHandlers, ProducerIds
from sskafka.servers.kafka.handlers.topics import TopicHandlers
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.topic_creation import CREATED_MAX, LOGGED_MAX, CreationWarnings, TopicCreation
from sskafka.storage.errors import StorageError
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental
from sskafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.schema import Message

FULL = ErrorCode.KAFKA_STORAGE_ERROR
TEXT = "no room in log directory /data"
TOPIC = 2
SETTINGS = Settings.resolve(overrides={"node.id": "1"})


class FullController:
    image = ClusterImage()

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def ask(self, request: Message, timeout_ms: int, caller: object = None) -> Any:
        self.asked.append(request)
        raise StorageError(TEXT)


class AllButSecrets(AllowAll):
    def allows(self, context: object, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return resource_type == ResourceType.TOPIC and name != "secret"

    would_allow = allows


def request() -> Request:
    connection: Any = SimpleNamespace(
        authorizer=AllButSecrets(), principal="User:me", host="127.0.0.1", is_token_authenticated=False
    )
    return Request(connection, 0, 1, None, memoryview(b""), 0, 0, 0)


def topic_handlers() -> TopicHandlers:
    return TopicHandlers(FullController())


def test_topics_are_neither_made_nor_deleted_nor_grown() -> None:
    handlers = topic_handlers()
    creation = CreateTopicsRequest(topics=[CreatableTopic("a"), CreatableTopic("secret")])
    made = asyncio.run(handlers.create_topics(creation, request())).topics
    assert [(topic.name, topic.error_code, topic.error_message) for topic in made] == [
        ("a", FULL, TEXT),
        ("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
    ]
    deletion = DeleteTopicsRequest(topic_names=["a", "secret"])
    deleted = asyncio.run(handlers.delete_topics(deletion, request())).responses
    assert [topic.error_code for topic in deleted] == [FULL, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    growth = CreatePartitionsRequest(topics=[CreatePartitionsTopic("a", 3), CreatePartitionsTopic("secret", 3)])
    grown = asyncio.run(handlers.create_partitions(growth, request())).results
    assert [topic.error_code for topic in grown] == [FULL, ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_settings_stay_as_they_are() -> None:
    handlers = ConfigHandlers(1, FullController(), SETTINGS)
    names = ("a", "secret")
    whole = full.AlterConfigsRequest(resources=[full.AlterConfigsResource(TOPIC, name) for name in names])
    answers = asyncio.run(handlers.alter_configs(whole, request())).responses
    assert [answer.error_code for answer in answers] == [FULL, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    parts = incremental.IncrementalAlterConfigsRequest(
        resources=[incremental.AlterConfigsResource(TOPIC, name) for name in names]
    )
    outcomes = asyncio.run(handlers.incremental_alter_configs(parts, request())).responses
    assert [(outcome.error_code, outcome.error_message) for outcome in outcomes] == [
        (FULL, TEXT),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
    ]


def test_topics_that_were_only_asked_about_are_left_unmade(caplog: pytest.LogCaptureFixture) -> None:
    """Clients ask again and again: the log says once why there is no such topic."""
    creation = TopicCreation(FullController(), SETTINGS, asyncio.run)
    for _ in range(100):
        creation.create_soon(["a", "b"])
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"topic {name} could not be created: {TEXT}" for name in ("a", "b")]


def test_a_client_that_asks_for_many_topics_fills_neither_the_cluster_nor_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    controller = FullController()
    creation = TopicCreation(controller, SETTINGS, asyncio.run)
    creation.create_soon([f"topic-{number}" for number in range(50_000)])
    (asked,) = controller.asked
    assert len(asked.topics) == CREATED_MAX
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == LOGGED_MAX + 1
    assert f"and {CREATED_MAX - LOGGED_MAX} others" in warnings[-1]


def test_another_reason_why_a_topic_cannot_be_created_is_told(caplog: pytest.LogCaptureFixture) -> None:
    warnings = CreationWarnings()
    for reason in ("too few brokers", "too few brokers", "no controller", "too few brokers"):
        warnings.failed("a", reason)
    warnings.created("a")
    warnings.failed("a", "too few brokers")
    told = [record.getMessage().rpartition(": ")[2] for record in caplog.records if record.levelname == "WARNING"]
    assert told == ["too few brokers", "no controller", "too few brokers", "too few brokers"]


def test_there_are_no_producer_ids() -> None:
    async def allocate() -> range:
        raise StorageError(TEXT)

    async def ask() -> int:
        handlers = ProducerHandlers(None, ProducerIds(allocate), None)  # type: ignore[arg-type]
        asked = Request(SimpleNamespace(authorizer=AllowAll(), principal="me"), 0, 1, None, memoryview(b""), 0, 0, 0)  # type: ignore[arg-type]
        return (await handlers.init_producer_id(InitProducerIdRequest(transactional_id=None), asked)).error_code

    assert asyncio.run(ask()) == FULL


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STALE_BROKER_EPOCH])
def test_producers_wait_for_a_controller(code: ErrorCode) -> None:
    """Older clients give up for good at anything else."""

    async def allocate() -> range:
        raise KafkaError(code, "no controller")

    with pytest.raises(KafkaError) as refused:
        asyncio.run(ProducerIds(allocate).next_id())
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
