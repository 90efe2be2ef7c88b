"""Create, change and delete topics. The brokers decide by the ACLs of the caller."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from sskafka.client.admin import USE_BROKER_DEFAULT, Admin, NewTopic
from sskafka.client.configs import Resource, alter_configs
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import uuid_text
from sskafka.servers.http.caller_clients import CallerClients
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import CONFLICT, NOT_FOUND, Problem, documented
from sskafka.servers.http.routes.paging import NAME_MAX, Name
from sskafka.servers.http.texts import Text

PARTITIONS_MAX = 10_000
CONFIGS_MAX = 100
NO_TOPIC = documented({NOT_FOUND: "There is no such topic."})

PartitionCount = Annotated[int, Field(ge=1, le=PARTITIONS_MAX, examples=[3])]
ConfigValues = Annotated[dict[Text, Text], Field(max_length=CONFIGS_MAX, examples=[{"retention.ms": "86400000"}])]


class TopicCreation(BaseModel):
    name: Annotated[Text, Field(min_length=1, max_length=NAME_MAX, examples=["orders"])]
    partitions: Annotated[PartitionCount | None, Field(description="null: num.partitions of the brokers.")] = None
    replication_factor: Annotated[
        int | None, Field(ge=1, le=2**15 - 1, description="null: default.replication.factor of the brokers.")
    ] = None
    configs: ConfigValues = {}
    validate_only: Annotated[bool, Field(description="Check the request and create nothing.")] = False


class CreatedTopic(BaseModel):
    name: str
    topic_id: Annotated[str | None, Field(description="null if nothing was created.")]
    partitions: int
    replication_factor: int


class PartitionsChange(BaseModel):
    count: Annotated[PartitionCount, Field(description="Partitions that the topic has afterwards.")]


class ConfigsChange(BaseModel):
    configs: Annotated[
        dict[Text, Text | None],
        Field(
            min_length=1,
            max_length=CONFIGS_MAX,
            description="Settings and their values; null removes the topic's own value.",
            examples=[{"retention.ms": "86400000", "cleanup.policy": None}],
        ),
    ]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/topics", tags=["changes"])
    change: dict[str, Any] = {"status_code": 204, "response_class": Response, "responses": NO_TOPIC}

    @router.post(
        "",
        status_code=201,
        summary="Create a topic",
        responses=documented({CONFLICT: "There is such a topic already."}),
    )
    async def create_topic(body: TopicCreation, request: Request) -> CreatedTopic:
        async with context.clients(request) as clients:
            return await _create(clients, body)

    @router.delete("/{topic_name}", summary="Delete a topic", **change)
    async def delete_topic(topic_name: Name, request: Request) -> Response:
        async with context.clients(request) as clients:
            outcomes = await Admin(clients.administration).delete_topics([topic_name])
            return _changed(clients, topic_name, outcomes[topic_name])

    @router.post("/{topic_name}/partitions", summary="Add partitions to a topic", **change)
    async def add_partitions(topic_name: Name, body: PartitionsChange, request: Request) -> Response:
        async with context.clients(request) as clients:
            outcomes = await Admin(clients.administration).create_partitions({topic_name: body.count})
            return _changed(clients, topic_name, outcomes[topic_name])

    @router.patch("/{topic_name}/configs", summary="Change settings of a topic", **change)
    async def change_configs(topic_name: Name, body: ConfigsChange, request: Request) -> Response:
        resource = Resource.topic(topic_name)
        async with context.clients(request) as clients:
            outcomes = await alter_configs(clients.administration, {resource: body.configs})
            return _changed(clients, topic_name, outcomes[resource])

    return router


async def _create(clients: CallerClients, body: TopicCreation) -> CreatedTopic:
    replication_factor = body.replication_factor or USE_BROKER_DEFAULT
    topic = NewTopic(body.name, body.partitions or USE_BROKER_DEFAULT, replication_factor, body.configs)
    outcomes = await Admin(clients.administration).create_topics([topic], validate_only=body.validate_only)
    clients.cluster.forget(body.name)
    created = outcomes[body.name]
    if isinstance(created, KafkaError):
        raise created
    return CreatedTopic(
        name=body.name,
        topic_id=None if body.validate_only else uuid_text(created.topic_id),
        partitions=created.partitions,
        replication_factor=created.replication_factor,
    )


def _changed(clients: CallerClients, topic: str, outcome: KafkaError | None) -> Response:
    """Return the answer to a change. Raise what the brokers answered, if they refused it."""
    clients.cluster.forget(topic)
    if outcome is None:
        return Response(status_code=204)
    if outcome.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise Problem(NOT_FOUND, f"there is no topic {topic!r}")
    raise outcome
