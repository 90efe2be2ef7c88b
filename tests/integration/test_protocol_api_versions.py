"""What a broker and a controller of Apache Kafka 4.3.1 list in ApiVersions, and what else that API answers.

Clients such as franz-go guess the broker's release from the list: one that lacks an API counts as an older release.
"""

import pytest
from broker_process import StartBroker
from free_ports import free_ports
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.api_versions import ApiVersionsRequest

# fmt: off
KAFKA_4_3_1_BROKER = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4),
    13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2),
    22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 29: (1, 3), 30: (1, 3),
    31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2),
    40: (1, 2), 41: (1, 3), 42: (0, 2), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1),
    49: (0, 1), 50: (0, 0), 51: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0),
    66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2),
    80: (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1), 88: (0, 0), 89: (0, 0),
    90: (0, 1), 91: (0, 0), 92: (0, 0),
}
KAFKA_4_3_1_CONTROLLER = {
    1: (4, 18), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4),
    33: (0, 2), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 43: (0, 2), 44: (0, 1),
    45: (0, 1), 46: (0, 0), 49: (0, 1), 50: (0, 0), 51: (0, 0), 52: (0, 2), 53: (0, 1), 54: (0, 1), 55: (0, 2),
    56: (2, 3), 57: (0, 2), 58: (0, 0), 59: (0, 1), 60: (0, 2), 62: (0, 4), 63: (0, 2), 64: (0, 0), 67: (0, 0),
    70: (0, 0), 73: (0, 0), 80: (0, 1), 81: (0, 0), 82: (0, 0),
}
# fmt: on


def listed(connection: Connection, software: str = "test") -> dict[int, tuple[int, int]]:
    response = connection.call(ApiVersionsRequest(software, "1"), version=4)
    assert response.error_code == ErrorCode.NONE
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def test_a_broker_lists_what_kafka_lists(connection: Connection) -> None:
    assert listed(connection) == KAFKA_4_3_1_BROKER


def test_a_controller_lists_what_kafka_lists(start_broker: StartBroker) -> None:
    (port,) = free_ports(1)
    start_broker(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
        }
    )
    with Connection(f"127.0.0.1:{port}") as connection:
        assert listed(connection) == KAFKA_4_3_1_CONTROLLER


@pytest.mark.usefixtures("_ours")
def test_our_own_client_is_told_of_our_own_apis(connection: Connection) -> None:
    """Nodes ask each other on the broker's listener where no listener is for controllers alone."""
    more = listed(connection, "sskafka").keys() - KAFKA_4_3_1_BROKER.keys()
    assert {52, 53, 54, 56, 58, 59, 62, 63, 67, 73, 20001, 20002, 20003, 20004, 20005, 20006, 20007} <= more


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", ""), ("a", ""), ("", "1"), ("a b", "1"), ("a", "1 0"), ("a-", "1"), ("-a", "1"), ("ä", "1"), ("a_b", "1")],
)
def test_software_without_a_proper_name_is_refused(
    connection: Connection, version: int, name: str, software_version: str
) -> None:
    response = connection.call(ApiVersionsRequest(name, software_version), version)
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert listed(connection), "the connection goes on"


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "a.b-c", "9"])
def test_software_with_a_proper_name_is_served(connection: Connection, name: str) -> None:
    assert connection.call(ApiVersionsRequest(name, "1.0-x"), 3).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_versions_name_no_software(connection: Connection, version: int) -> None:
    response = connection.call(ApiVersionsRequest(), version)
    assert (response.error_code, len(response.api_keys)) == (ErrorCode.NONE, len(KAFKA_4_3_1_BROKER))
