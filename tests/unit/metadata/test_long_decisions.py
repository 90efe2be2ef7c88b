"""Decisions about requests with thousands of elements take time in proportion to their number, not to its square."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from metadata_clusters import cluster, replayed, seeded, with_topic

from sskafka.metadata.client_quotas import alter_client_quotas
from sskafka.metadata.config_changes import AlterConfigOp, alter_configs, incremental_alter_configs
from sskafka.metadata.records import RESOURCE_TOPIC, ConfigRecord
from sskafka.metadata.scram_credentials import alter_user_scram_credentials, describe_user_scram_credentials
from sskafka.metadata.topics import create_topics, delete_topics
from sskafka.model.settings import Settings
from sskafka.wire.messages import alter_client_quotas as quotas
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import alter_user_scram_credentials as altering
from sskafka.wire.messages import describe_user_scram_credentials as describing
from sskafka.wire.messages import incremental_alter_configs as incremental
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

FEW, MANY = 400, 6400
FACTOR_MAX = 5 * MANY / FEW  # in proportion it would be 16, quadratic 256
SETTINGS = Settings.resolve({})
THROTTLED = "follower.replication.throttled.replicas"


def create(count: int) -> Any:
    topics = [CreatableTopic(f"topic.{i}", num_partitions=0, replication_factor=1) for i in range(count)]
    return create_topics(cluster(), CreateTopicsRequest(topics=topics), SETTINGS, seeded())


def delete(count: int) -> Any:
    states = [DeleteTopicState(name=f"topic{i}") for i in range(count)]
    return delete_topics(cluster(), DeleteTopicsRequest(topics=states), SETTINGS)


def alter_all(count: int) -> Any:
    resources = [full.AlterConfigsResource(RESOURCE_TOPIC, f"t{i}") for i in range(count)]
    return alter_configs(cluster(), full.AlterConfigsRequest(resources), SETTINGS)


def alter_some(count: int) -> Any:
    resources = [incremental.AlterConfigsResource(RESOURCE_TOPIC, f"t{i}") for i in range(count)]
    return incremental_alter_configs(cluster(), incremental.IncrementalAlterConfigsRequest(resources), SETTINGS)


def append_to_list(count: int) -> Any:
    return change_list(AlterConfigOp.APPEND, count)


def subtract_from_list(count: int) -> Any:
    return change_list(AlterConfigOp.SUBTRACT, count)


def change_list(operation: AlterConfigOp, count: int) -> Any:
    stored, named = (",".join(f"{i}:{broker}" for i in range(count)) for broker in (1, 2))
    image = with_topic(cluster(), "t")
    replayed(image, [ConfigRecord(RESOURCE_TOPIC, "t", THROTTLED, stored)])
    change = incremental.AlterableConfig(THROTTLED, operation, named)
    resource = incremental.AlterConfigsResource(RESOURCE_TOPIC, "t", [change])
    return incremental_alter_configs(image, incremental.IncrementalAlterConfigsRequest([resource]), SETTINGS)


def alter_quotas(count: int) -> Any:
    entries = [quotas.RequestEntryData([quotas.EntityData("user", f"u{i}")]) for i in range(count)]
    return alter_client_quotas(cluster(), quotas.AlterClientQuotasRequest(entries=entries))


def alter_users(count: int) -> Any:
    deletions = [altering.ScramCredentialDeletion(f"u{i}", 1) for i in range(count)]
    return alter_user_scram_credentials(cluster(), altering.AlterUserScramCredentialsRequest(deletions=deletions))


def describe_users(count: int) -> Any:
    users = [describing.UserName(f"u{i}") for i in range(count)]
    return describe_user_scram_credentials(cluster(), describing.DescribeUserScramCredentialsRequest(users=users))


@pytest.mark.parametrize(
    "decide",
    [
        create,
        delete,
        alter_all,
        alter_some,
        append_to_list,
        subtract_from_list,
        alter_quotas,
        alter_users,
        describe_users,
    ],
)
def test_time_is_in_proportion(decide: Callable[[int], Any]) -> None:
    assert cpu_ns(decide, MANY) <= FACTOR_MAX * cpu_ns(decide, FEW)


def cpu_ns(decide: Callable[[int], Any], count: int) -> int:
    """The CPU time of the fastest of several calls."""
    times = []
    for _ in range(3):
        began_ns = time.thread_time_ns()
        decide(count)
        times.append(time.thread_time_ns() - began_ns)
    return min(times)
