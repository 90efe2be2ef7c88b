"""Responses of group APIs that depend on more than the answer of the coordinator."""

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.handlers import groups
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse


def test_heartbeats_are_good_while_the_group_is_loaded() -> None:
    """Nobody can say yet that the member is not in the group, so it need not join again."""
    beat = HeartbeatRequest("g", 1, "m")
    assert groups._heartbeat_refused(beat, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS).error_code == ErrorCode.NONE
    assert groups._heartbeat_refused(beat, ErrorCode.NOT_COORDINATOR).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(("error", "member_id"), [(ErrorCode.INVALID_GROUP_ID, "m"), (ErrorCode.NOT_COORDINATOR, "")])
def test_errors_of_the_coordinator_repeat_no_member_id(error: ErrorCode, member_id: str) -> None:
    assert groups._join_refused(JoinGroupRequest("g", member_id="m"), error).member_id == member_id


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_a_refused_join_names_no_protocol(version: int, name: str | None) -> None:
    refused = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    groups._adapt_join(refused, version)
    assert refused.protocol_name == name
    joined = JoinGroupResponse(protocol_name="range")
    groups._adapt_join(joined, version)
    assert joined.protocol_name == "range"
