"""Every message of the quorum survives the wire, in every version that can carry it."""

import pytest

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ZERO_UUID
from sskafka.quorum.raft_messages import batches_in, request_from_wire, response_from_wire, response_to_wire, to_wire
from sskafka.raft import messages as raft
from sskafka.raft.log_view import OffsetAndEpoch
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.vote import VoteRequest, VoteResponse

CLUSTER_ID = "cluster"
TO = 2
BATCH = bytes(build_batch([NewRecord(value=b"x", timestamp=0)] * 3, base_offset=10, leader_epoch=4))

REQUESTS: list[raft.PeerRequest] = [
    raft.VoteRequest(1, 5, OffsetAndEpoch(12, 4), pre_vote=True),
    raft.VoteRequest(1, 5, OffsetAndEpoch(0, 0), pre_vote=False),
    raft.BeginQuorumEpochRequest(1, 5),
    raft.EndQuorumEpochRequest(1, 5, (3, 2)),
    raft.FetchRequest(1, 5, 12, 4, 10, 500, 1024),
    raft.FetchSnapshotRequest(1, 5, OffsetAndEpoch(100, 3), 64, 2048),
]
RESPONSES: list[raft.PeerResponse] = [
    raft.VoteResponse(ErrorCode.NONE, -1, 5, vote_granted=True),
    raft.VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, 3, 7),
    raft.BeginQuorumEpochResponse(ErrorCode.NONE, 1, 5),
    raft.EndQuorumEpochResponse(ErrorCode.INCONSISTENT_VOTER_SET, 3, 6),
    raft.FetchResponse(ErrorCode.NONE, 1, 5, 12, batches=batches_in(BATCH)),
    raft.FetchResponse(ErrorCode.NONE, 1, 5, 12, diverging=OffsetAndEpoch(7, 3)),
    raft.FetchResponse(ErrorCode.NONE, 1, 5, 12, snapshot_id=OffsetAndEpoch(100, 3)),
    raft.FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 6),
    raft.FetchSnapshotResponse(ErrorCode.NONE, 1, 5, OffsetAndEpoch(100, 3), 640, 64, b"part"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda item: type(item).__name__)
def test_requests(request_: raft.PeerRequest) -> None:
    sent = to_wire(request_, CLUSTER_ID, TO)
    version = sent.SCHEMA.versions.last
    received = decode(type(sent), version, encode(sent, version))
    assert request_from_wire(received, CLUSTER_ID, TO) == request_


@pytest.mark.parametrize("response", RESPONSES, ids=lambda item: type(item).__name__)
def test_responses(response: raft.PeerResponse) -> None:
    sent = response_to_wire(response)
    version = sent.SCHEMA.versions.last
    assert response_from_wire(decode(type(sent), version, encode(sent, version))) == response


def test_a_request_from_another_cluster_or_to_another_node_is_refused() -> None:
    request = to_wire(REQUESTS[0], "other", TO)
    with pytest.raises(KafkaError) as error:
        request_from_wire(request, CLUSTER_ID, TO)
    assert error.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    with pytest.raises(KafkaError) as error:
        request_from_wire(to_wire(REQUESTS[0], CLUSTER_ID, TO), CLUSTER_ID, 3)
    assert error.value.code is ErrorCode.INVALID_VOTER_KEY


def test_messages_about_no_partition_are_refused() -> None:
    with pytest.raises(KafkaError):
        request_from_wire(VoteRequest(CLUSTER_ID, TO), CLUSTER_ID, TO)
    with pytest.raises(KafkaError):
        response_from_wire(VoteResponse())
    with pytest.raises(KafkaError) as error:
        response_from_wire(VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert error.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("length", [0, 1, 60, 61, len(BATCH) - 1, len(BATCH), len(BATCH) + 30, 2 * len(BATCH)])
def test_a_batch_that_was_cut_to_fit_is_left_out(length: int) -> None:
    found = batches_in((BATCH * 2)[:length])
    assert len(found) == length // len(BATCH)
    assert all((batch.base_offset, batch.end_offset, batch.epoch) == (10, 13, 4) for batch in found)


def test_a_voter_whose_directory_the_log_names_is_known_by_it() -> None:
    own, theirs, other = bytes([1] * 16), bytes([2] * 16), bytes([3] * 16)
    directories = {TO: own, 3: theirs}
    for request in (raft.VoteRequest(3, 5, OffsetAndEpoch(0, 0), False), raft.FetchRequest(3, 5, 0, 0, 0, 0, 100)):
        honest = to_wire(request, CLUSTER_ID, TO, theirs)
        assert request_from_wire(honest, CLUSTER_ID, TO, directories) == request
        for directory_id in (other, ZERO_UUID):
            with pytest.raises(KafkaError, match="metadata directory"):
                request_from_wire(to_wire(request, CLUSTER_ID, TO, directory_id), CLUSTER_ID, TO, directories)
        assert request_from_wire(to_wire(request, CLUSTER_ID, TO), CLUSTER_ID, TO, {}) == request, "a static quorum"
