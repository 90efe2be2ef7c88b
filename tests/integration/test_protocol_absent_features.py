"""APIs of features that a broker does not have: the answers of Apache Kafka 4.3.1 with these features switched off."""

from typing import Any

import pytest
from broker_process import StartBroker
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from sskafka.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, OpData, RequestEntryData
from sskafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from sskafka.wire.messages.create_acls import AclCreation, CreateAclsRequest
from sskafka.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from sskafka.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from sskafka.wire.messages.describe_acls import DescribeAclsRequest
from sskafka.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from sskafka.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from sskafka.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from sskafka.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from sskafka.wire.messages.list_config_resources import ListConfigResourcesRequest
from sskafka.wire.messages.push_telemetry import PushTelemetryRequest
from sskafka.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from sskafka.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from sskafka.wire.messages.share_group_describe import ShareGroupDescribeRequest
from sskafka.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from sskafka.wire.messages.write_share_group_state import PartitionData, WriteShareGroupStateRequest, WriteStateData

ANY = 1  # of resource types, operations and permissions


def test_acls_need_an_authorizer(connection: Connection) -> None:
    response = connection.call(DescribeAclsRequest(ANY, None, 1, None, None, ANY, ANY), version=3)
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert response.error_message == "No Authorizer is configured on the broker"
    created = connection.call(CreateAclsRequest([AclCreation(2, "t", 3, "User:a", "*", 3, 3)] * 2), version=3).results
    deleted = connection.call(DeleteAclsRequest([DeleteAclsFilter(2, "t", 3, None, None, 1, 1)]), version=3)
    refusals = [(result.error_code, result.error_message) for result in (*created, *deleted.filter_results)]
    assert refusals == [(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")] * 3


def test_sasl_is_refused_on_a_plaintext_listener(connection: Connection) -> None:
    handshake = connection.call(API_BY_KEY[ApiKey.SASL_HANDSHAKE].request_class()("PLAIN"), version=1)
    assert (handshake.error_code, handshake.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    response = connection.call(SaslAuthenticateRequest(b"\0user\0password"), version=2)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    "key", [ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN]
)
def test_delegation_tokens_need_an_authenticated_client(connection: Connection, key: ApiKey) -> None:
    api = API_BY_KEY[key]
    response = connection.call(api.request_class()(), api.max_version)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    token = connection.call(CreateDelegationTokenRequest(), version=3)
    assert token.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (token.principal_type, token.principal_name, token.issue_timestamp_ms) == ("User", "ANONYMOUS", -1)


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize(
    "key",
    [
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ],
)
def test_share_and_streams_groups_are_switched_off(connection: Connection, key: ApiKey) -> None:
    api = API_BY_KEY[key]
    response = connection.call(api.request_class()(), api.max_version)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.usefixtures("_ours")
def test_descriptions_of_share_and_streams_groups_name_each_group(connection: Connection) -> None:
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    offsets = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("a", None)])
    for request, version in (
        (ShareGroupDescribeRequest(["a"]), 1),
        (StreamsGroupDescribeRequest(["a"]), 0),
        (offsets, 1),
    ):
        groups = connection.call(request, version).groups
        assert [(group.group_id, group.error_code) for group in groups] == [("a", unsupported)]


def test_nobody_coordinates_the_state_of_share_groups(connection: Connection) -> None:
    topics = [WriteStateData(bytes(range(16)), [PartitionData(3)])]
    (result,) = connection.call(WriteShareGroupStateRequest("g", topics), version=1).results
    assert result.topic_id == bytes(range(16))
    (partition,) = result.partitions
    assert (partition.partition, partition.error_code) == (3, ErrorCode.NOT_COORDINATOR)
    assert partition.error_message == "Unable to write share group state: This is not the correct coordinator."


def test_no_telemetry_is_asked_for(connection: Connection) -> None:
    subscription = connection.call(GetTelemetrySubscriptionsRequest(), version=0)
    assert (subscription.error_code, subscription.requested_metrics) == (ErrorCode.NONE, [])
    client = subscription.client_instance_id
    assert client != bytes(16)
    again = connection.call(GetTelemetrySubscriptionsRequest(b"i" * 16), version=0)
    assert again.client_instance_id == b"i" * 16
    stale = PushTelemetryRequest(client, subscription.subscription_id + 1)
    assert connection.call(stale, version=0).error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert connection.call(PushTelemetryRequest(), version=0).error_code == ErrorCode.INVALID_REQUEST


def test_the_voters_of_a_quorum_do_not_change(connection: Connection, request: pytest.FixtureRequest) -> None:
    other = AddRaftVoterRequest("other", 1000, 5, bytes(range(16)))
    response = connection.call(other, version=1)
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert response.error_message.startswith('The given id "other" doesn\'t match the cluster id "')
    removed = connection.call(RemoveRaftVoterRequest(None, 5, bytes(range(16))), version=0)
    assert removed.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert removed.error_message == "Cluster doesn't support removing voter because the kraft.version feature is 0"


@pytest.mark.usefixtures("_ours")
def test_a_voter_that_is_to_be_added_has_an_address_for_the_controllers(connection: Connection) -> None:
    without = connection.call(AddRaftVoterRequest(None, 1000, 5, bytes(range(16))), version=1)
    assert without.error_code == ErrorCode.INVALID_REQUEST
    listeners = [Listener("PLAINTEXT", "h", 1)]  # this broker has no listener for controllers alone
    response = connection.call(AddRaftVoterRequest(None, 1000, 5, bytes(range(16)), listeners), version=1)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.error_message == "Cluster doesn't support adding voter because the kraft.version feature is 0"


def test_client_quotas_outlive_the_broker(start_broker: StartBroker) -> None:
    broker = start_broker()
    quota = RequestEntryData([EntityData("user", None)], [OpData("producer_byte_rate", 1024.0)])
    with Connection(broker.bootstrap) as connection:
        assert connection.call(DescribeClientQuotasRequest(), version=1).entries == []
        (entry,) = connection.call(AlterClientQuotasRequest([quota]), version=1).entries
        assert (entry.error_code, entry.error_message) == (ErrorCode.NONE, None)
    with Connection(broker.restart().bootstrap) as connection:
        (described,) = connection.call(DescribeClientQuotasRequest(), version=1).entries
    assert [(part.entity_type, part.entity_name) for part in described.entity] == [("user", None)]
    assert [(item.key, item.value) for item in described.values] == [("producer_byte_rate", 1024.0)]


def test_scram_credentials_outlive_the_broker(start_broker: StartBroker) -> None:
    broker = start_broker()
    credential = ScramCredentialUpsertion("alice", 1, 4096, b"salt", b"p" * 32)
    with Connection(broker.bootstrap) as connection:
        assert connection.call(DescribeUserScramCredentialsRequest(None), version=0).results == []
        (result,) = connection.call(AlterUserScramCredentialsRequest([], [credential]), version=0).results
        assert (result.user, result.error_code) == ("alice", ErrorCode.NONE)
    with Connection(broker.restart().bootstrap) as connection:
        (described,) = connection.call(DescribeUserScramCredentialsRequest(None), version=0).results
    assert described.user == "alice"
    assert [(info.mechanism, info.iterations) for info in described.credential_infos] == [(1, 4096)]


def test_config_resources_are_listed(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)

    def names(*types: int) -> Any:
        response = connection.call(ListConfigResourcesRequest(list(types)), version=1)
        assert response.error_code == ErrorCode.NONE
        return {(item.resource_type, item.resource_name) for item in response.config_resources}

    assert (2, topic) in names(2)
    assert {(4, "1"), (8, "1"), (2, topic)} <= names()
    assert names(4) == {(4, "1")}
    unknown = connection.call(ListConfigResourcesRequest([99]), version=1)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION
    oldest = connection.call(ListConfigResourcesRequest(), version=0)
    assert (oldest.error_code, oldest.config_resources) == (ErrorCode.NONE, [])


def test_acl_codes_that_nobody_defines_are_answered_without_an_authorizer(connection: Connection) -> None:
    asked = DescribeAclsRequest(resource_type_filter=-1, pattern_type_filter=1, operation=1, permission_type=-1)
    assert connection.call(asked, version=3).error_code == ErrorCode.SECURITY_DISABLED
