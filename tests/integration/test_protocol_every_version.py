"""Every API that the broker offers answers in every version that it offers: to an empty request and to a full one.

What the answer says does not matter here; a connection that is closed instead of an answer does.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from wire_connection import Connection

from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.layout import layout_of
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.describe_acls import DescribeAclsRequest
from sskafka.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from sskafka.wire.schema import Primitive

SAMPLES: dict[str, Any] = {"bool": True, "string": "text", "bytes": b"", "uuid": bytes(range(16)), "float64": 1.5}
INTEGER = 1
OWN_APIS_FROM = 10_000
ANY = 1
METADATA_LOG = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]


def filled(cls: type[Any], version: int) -> Any:
    """A request with a value in every field that this version has."""
    layout = layout_of(cls, version)
    values: dict[str, Any] = {}
    for field in (*layout.plain, *layout.tagged):
        element = field.element
        if isinstance(element, Primitive):
            value = None if element.name == "records" else SAMPLES.get(element.name, INTEGER)
        else:
            value = filled(element, version)
        values[field.name] = [value] if field.is_array else value
    return cls(**values)


def harmless(request: Any) -> Any:
    """The request, with what would end the broker, or bring no answer, taken out of it.

    Codes that ACL requests do not know end the connection, in Apache Kafka too."""
    if hasattr(request, "broker_id"):
        request.broker_id = 999
    if hasattr(request, "acks"):
        request.acks = 1
    if isinstance(request, DescribeAclsRequest):
        request.resource_type_filter = request.operation = request.permission_type = ANY
    return request


def served(connection: Connection) -> Iterator[tuple[int, int]]:
    for api in connection.call(ApiVersionsRequest("test", "1"), version=4).api_keys:
        if api.api_key < OWN_APIS_FROM:
            schema = API_BY_KEY[api.api_key]
            for version in range(max(api.min_version, schema.min_version), api.max_version + 1):
                yield api.api_key, version


@pytest.mark.parametrize("form", ["empty", "full"])
def test_every_version_is_answered(start_broker: Any, form: str) -> None:
    bootstrap = start_broker().bootstrap
    with Connection(bootstrap) as connection:
        offered = list(served(connection))
    assert len({key for key, _ in offered}) > 50
    unanswered = []
    for key, version in offered:
        cls = API_BY_KEY[key].request_class()
        request = harmless(cls() if form == "empty" else filled(cls, version))
        with Connection(bootstrap) as connection:
            try:
                connection.call(request, version)
            except AssertionError as error:
                unanswered.append((ApiKey(key).name, version, str(error)))
    assert unanswered == []


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_in_every_version(connection: Connection, version: int) -> None:
    response = connection.call(DescribeQuorumRequest(topics=METADATA_LOG), version)
    (partition,) = response.topics[0].partitions
    assert (response.error_code, partition.error_code) == (0, 0)
    assert [voter.replica_id for voter in partition.current_voters] == [partition.leader_id]
