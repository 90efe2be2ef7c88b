"""/admin/v1/topics: create, list and delete topics as the lab defines it. Every broker has every replica."""

import random
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.errors import raise_for
from sskafka.client.metadata import TopicView
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.http.context import NOT_THE_LEADER, HttpContext, leader_only
from sskafka.servers.http.lab_names import check_new_topic_name, is_hidden, partition_id
from sskafka.servers.http.problems import CONFLICT, NOT_FOUND, Problem, documented
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

PARTITIONS_MAX = 10_000


class TopicRequest(BaseModel):
    topic_name: Annotated[str, Field(examples=["testtopic"], description="Letters, digits, '.' and '_'.")]
    partition_count: Annotated[int, Field(ge=1, le=PARTITIONS_MAX, examples=[3])]


class Partition(BaseModel):
    id: Annotated[str, Field(examples=["testtopic-1"])]
    replica_brokers: Annotated[list[str], Field(examples=[["1", "2", "3"]])]


class Topic(BaseModel):
    topic_name: str
    partitions: list[Partition]


class TopicList(BaseModel):
    topics: list[Topic]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(
        prefix="/admin/v1/topics", tags=["lab"], responses=NOT_THE_LEADER, dependencies=[leader_only(context)]
    )

    @router.post(
        "",
        status_code=201,
        summary="Create a topic",
        responses=documented({CONFLICT: "The topic exists."}),
    )
    async def create_topic(body: TopicRequest, request: Request) -> Topic:
        name = body.topic_name
        check_new_topic_name(name)
        async with context.clients(request) as clients:
            assignments = _assignments(await _every_broker(clients.cluster), body.partition_count)
            admin = Admin(clients.administration)
            outcome = (await admin.create_topics([NewTopic(name, assignments=assignments)]))[name]
        if isinstance(outcome, KafkaError):
            if outcome.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                raise Problem(CONFLICT, f"topic {name} already exists")
            raise outcome
        return _topic(name, assignments)

    @router.get("", summary="List the topics")
    async def list_topics(request: Request) -> TopicList:
        async with context.clients(request) as clients:
            view = await clients.cluster.retrying(lambda: clients.cluster.refresh(None))
        topics = [topic for topic in view.topics.values() if _is_shown(topic)]
        if clients.cluster is context.cluster:  # other clients may not see every topic
            context.reports.keep_only({topic.topic_id for topic in topics})
        return TopicList(topics=[_listed(topic) for topic in topics])

    @router.delete(
        "/{topic_name}",
        status_code=204,
        summary="Delete a topic",
        response_class=Response,
        responses=documented({NOT_FOUND: "There is no such topic."}),
    )
    async def delete_topic(topic_name: str, request: Request) -> Response:
        if is_hidden(topic_name):
            raise Problem(NOT_FOUND, f"topic {topic_name} does not exist")
        async with context.clients(request) as clients:
            outcome = (await Admin(clients.administration).delete_topics([topic_name]))[topic_name]
            clients.cluster.forget(topic_name)
        if outcome is not None:
            if outcome.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise Problem(NOT_FOUND, f"topic {topic_name} does not exist")
            raise outcome
        return Response(status_code=204)

    return router


async def _every_broker(cluster: Cluster) -> list[int]:
    """Return all brokers, also those that are down: they get their replicas when they come back."""

    async def attempt() -> DescribeClusterResponse:
        connection = await cluster.any_connection()
        response = await connection.request(
            DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse
        )
        raise_for(response.error_code, response.error_message)
        return response

    return sorted(broker.broker_id for broker in (await cluster.retrying(attempt)).brokers)


def _assignments(brokers: list[int], partitions: int) -> dict[int, list[int]]:
    """Assign all brokers to each partition, with another preferred leader for each."""
    start = random.randrange(len(brokers))
    turns = [(start + partition) % len(brokers) for partition in range(partitions)]
    return {partition: [*brokers[turn:], *brokers[:turn]] for partition, turn in enumerate(turns)}


def _topic(name: str, assignments: dict[int, list[int]]) -> Topic:
    return Topic(
        topic_name=name,
        partitions=[
            Partition(id=partition_id(name, partition), replica_brokers=[str(broker) for broker in sorted(brokers)])
            for partition, brokers in sorted(assignments.items())
        ],
    )


def _is_shown(topic: TopicView) -> bool:
    return not (topic.is_internal or is_hidden(topic.name)) and topic.error_code == ErrorCode.NONE


def _listed(topic: TopicView) -> Topic:
    return _topic(topic.name, {number: list(view.replicas) for number, view in topic.partitions.items()})
