"""Config resources on the wire: unknown names, loggers, client metrics, requests sent straight to a controller."""

from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess, StartBroker
from free_ports import free_ports
from waiting import wait_until
from wire_connection import Connection

from sskafka.wire.messages import incremental_alter_configs as incremental
from sskafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from sskafka.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE = 0, 1
INVALID_REQUEST, INVALID_CONFIG, UNSUPPORTED_VERSION = 42, 40, 35


@pytest.fixture
def broker(start_broker: StartBroker) -> BrokerProcess:
    kafka_port, controller_port = free_ports(2)
    return start_broker(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{kafka_port},CONTROLLER://127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "node.id": 1,
            "my.plugin.key": "hunter2",
        }
    )


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.bootstrap) as connection:
        yield connection


def describe(
    connection: Connection, kind: int, name: str, *names: str
) -> tuple[int, str | None, dict[str, DescribeConfigsResourceResult]]:
    resource = DescribeConfigsResource(kind, name, list(names) or None)
    request = DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)
    (result,) = connection.call(request, version=4).results
    return result.error_code, result.error_message, {entry.name: entry for entry in result.configs}


def alter(
    connection: Connection, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str | None]:
    resource = incremental.AlterConfigsResource(kind, name, [incremental.AlterableConfig(*item) for item in changes])
    request = incremental.IncrementalAlterConfigsRequest([resource], validate_only)
    (outcome,) = connection.call(request, version=1).responses
    return outcome.error_code, outcome.error_message


def listed(connection: Connection, *kinds: int, version: int = 1) -> tuple[int, set[tuple[int, str]]]:
    response = connection.call(ListConfigResourcesRequest(list(kinds)), version)
    return response.error_code, {(item.resource_type, item.resource_name) for item in response.config_resources}


def test_client_metrics_are_stored_described_and_listed(client: Connection, broker: BrokerProcess) -> None:
    assert listed(client, version=0) == (0, set())
    changes = ("interval.ms", SET, "1000"), ("match", SET, "client_id=a.*")
    assert alter(client, CLIENT_METRICS, "cm", *changes, validate_only=True) == (0, None)
    assert listed(client, version=0) == (0, set())
    assert alter(client, CLIENT_METRICS, "cm", *changes) == (0, None)
    assert listed(client, version=0) == (0, {(CLIENT_METRICS, "cm")})
    _, _, entries = describe(client, CLIENT_METRICS, "cm")
    assert {name: (entry.value, entry.config_source) for name, entry in entries.items()} == {
        "interval.ms": ("1000", 7),
        "match": ("client_id=a.*", 7),
        "metrics": ("", 5),
    }
    broker.restart()
    with Connection(broker.bootstrap) as later:
        assert listed(later, CLIENT_METRICS) == (0, {(CLIENT_METRICS, "cm")})


def test_resources_are_listed_by_type(client: Connection) -> None:
    client.create_topic("t")
    alter(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    everything = {(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g")}
    assert listed(client) == (0, everything)
    assert listed(client, TOPIC, GROUP) == (0, {(TOPIC, "t"), (GROUP, "g")})
    assert listed(client, TOPIC, 3) == (UNSUPPORTED_VERSION, set())


def test_log_levels_change_while_the_broker_runs(client: Connection, broker: BrokerProcess) -> None:
    name = "sskafka.servers.kafka.connection"
    code, _, entries = describe(client, LOGGER, "1")
    assert (code, entries["root"].value, entries[name].config_source) == (0, "INFO", 6)
    assert alter(client, LOGGER, "1", ("sskafka", SET, "DEBUG")) == (0, None)
    assert describe(client, LOGGER, "1", name)[2][name].value == "DEBUG"
    assert alter(client, LOGGER, "1", ("sskafka", DELETE, None)) == (0, None)
    assert describe(client, LOGGER, "1", name)[2][name].value == "INFO"
    assert alter(client, LOGGER, "2", (name, SET, "DEBUG")) == (
        INVALID_REQUEST,
        "Unexpected node id. Expected 1, but received 2",
    )
    assert describe(client, LOGGER, "")[:2] == (INVALID_REQUEST, "Broker id must not be empty")


def test_names_that_nobody_knows_are_kept_and_hidden(client: Connection) -> None:
    assert alter(client, BROKER, "1", ("from.the.future", SET, "hunter3")) == (0, None)
    _, _, entries = describe(client, BROKER, "1", "from.the.future", "my.plugin.key")
    assert {name: (e.value, e.is_sensitive, e.config_source) for name, e in entries.items()} == {
        "from.the.future": (None, True, 2),
        "my.plugin.key": (None, True, 4),
    }


def test_the_controller_answers_for_its_own_node_and_changes_any(client: Connection, broker: BrokerProcess) -> None:
    address = str(broker.settings["controller.quorum.voters"]).partition("@")[2]
    with Connection(address) as controller:
        assert describe(controller, BROKER, "1", "process.roles")[2]["process.roles"].value == "broker,controller"
        assert describe(controller, BROKER, "7")[:2] == (
            INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 7",
        )
        assert alter(controller, BROKER, "7", ("log.retention.ms", SET, "5"))[1] == "No node with id 7 found."
        assert alter(controller, BROKER, "1", ("log.retention.ms", SET, "5")) == (0, None)
        assert alter(controller, LOGGER, "1", ("root", SET, "INFO")) == (0, None)
    assert alter(client, BROKER, "7", ("log.retention.ms", SET, "5")) == (
        INVALID_REQUEST,
        "Unexpected broker id, expected 1, but received 7",
    )
    wait_until(
        lambda: describe(client, BROKER, "1", "log.retention.ms")[2]["log.retention.ms"].value == "5",
        "the broker has the value that the controller was given",
    )


def test_internal_segment_bytes_make_small_segments(client: Connection) -> None:
    client.create_topic("small", internal_segment_bytes=20)
    _, _, entries = describe(client, TOPIC, "small", "internal.segment.bytes", "segment.bytes")
    assert {name: entry.value for name, entry in entries.items()} == {
        "internal.segment.bytes": "20",
        "segment.bytes": "1073741824",
    }


def test_one_bad_resource_does_not_keep_the_others_from_changing(client: Connection) -> None:
    client.create_topic("t")
    resources = [
        incremental.AlterConfigsResource(BROKER, "1", [incremental.AlterableConfig("node.id", SET, "5")]),
        incremental.AlterConfigsResource(TOPIC, "t", [incremental.AlterableConfig("retention.ms", SET, "5")]),
        incremental.AlterConfigsResource(LOGGER, "1", [incremental.AlterableConfig("root", SET, "INFO")]),
        incremental.AlterConfigsResource(TOPIC, "none", [incremental.AlterableConfig("retention.ms", SET, "5")]),
    ]
    outcomes = client.call(incremental.IncrementalAlterConfigsRequest(resources), version=1).responses
    assert [(item.resource_type, item.error_code) for item in outcomes] == [
        (BROKER, INVALID_REQUEST),
        (TOPIC, 0),
        (LOGGER, 0),
        (TOPIC, 3),
    ]
    assert outcomes[0].error_message == "Cannot update these configs dynamically: [node.id]"


def test_one_resource_of_an_unknown_type_refuses_the_whole_description(client: Connection) -> None:
    resources = [DescribeConfigsResource(BROKER, "1", None), DescribeConfigsResource(3, "x", None)]
    results = client.call(DescribeConfigsRequest(resources), version=4).results
    assert [(result.error_code, result.resource_type, result.resource_name, result.configs) for result in results] == [
        (INVALID_REQUEST, BROKER, "1", []),
        (INVALID_REQUEST, 3, "x", []),
    ]
