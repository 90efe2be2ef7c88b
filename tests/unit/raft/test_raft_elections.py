from collections.abc import Callable

import pytest
from lone_node import LoneNode, candidate, ends, fetch, follower, leader
from memory_log import MemoryLog, batch

from sskafka.lab.votes import LabLeaderRequest, LabLeaderResponse, LabVoteRequest, LabVoteResponse
from sskafka.model.errors import ErrorCode
from sskafka.raft.election_state import ElectionState
from sskafka.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchResponse,
    VoteRequest,
    VoteResponse,
)
from sskafka.raft.node import PeerDown, ResponseReceived
from sskafka.raft.node_state import EPOCH_JUMP_MAX, EPOCH_LEAD_MAX
from sskafka.raft.roles import Follower, Prospective
from sskafka.raft.timing import Timing


def vote(candidate_id: int, epoch: int, log_end: tuple[int, int] = (0, 0), pre_vote: bool = False) -> VoteRequest:
    return VoteRequest(candidate_id, epoch, ends(*log_end), pre_vote)


def refused(epoch: int, leader_id: int = -1) -> VoteResponse:
    return VoteResponse(ErrorCode.NONE, leader_id, epoch, vote_granted=False)


def granted(epoch: int, leader_id: int = -1) -> VoteResponse:
    return VoteResponse(ErrorCode.NONE, leader_id, epoch, vote_granted=True)


def test_a_vote_is_persisted_before_the_response() -> None:
    lone = LoneNode()
    assert lone.ask(vote(2, 1)) == granted(1)
    assert lone.ready.quorum_state == ElectionState(epoch=1, voted_id=2)


def test_one_vote_per_epoch_even_after_a_restart() -> None:
    lone = LoneNode()
    lone.ask(vote(2, 1))
    assert lone.ask(vote(3, 1)) == refused(1)
    restarted = LoneNode(stored=lone.stored)
    assert restarted.ask(vote(3, 1)) == refused(1)
    assert restarted.ask(vote(2, 1)) == granted(1)
    assert restarted.ready.quorum_state is None


@pytest.mark.parametrize(
    ("log_end", "is_granted"),
    [((2, 3), True), ((3, 3), True), ((1, 4), True), ((1, 3), False), ((9, 2), False)],
)
def test_only_candidates_with_an_up_to_date_log_get_a_vote(log_end: tuple[int, int], is_granted: bool) -> None:
    lone = LoneNode(MemoryLog(batch(0, 1), batch(1, 3)))
    response = lone.ask(vote(2, 4, log_end))
    assert isinstance(response, VoteResponse)
    assert response.vote_granted is is_granted
    assert lone.node.epoch == 4, "a newer epoch is taken over even where the vote is refused"


def test_an_old_epoch_is_fenced() -> None:
    lone = follower(leader_id=3, epoch=7)
    assert lone.ask(vote(2, 6)) == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, 3, 7)


@pytest.mark.parametrize("candidate_id", [1, 9])
def test_unknown_nodes_and_the_node_itself_get_no_vote(candidate_id: int) -> None:
    lone = LoneNode()
    assert lone.ask(vote(candidate_id, 9)) == VoteResponse(ErrorCode.INCONSISTENT_VOTER_SET, -1, 0)


def test_a_node_that_knows_the_leader_of_an_epoch_does_not_vote_in_it() -> None:
    assert follower(leader_id=2, epoch=1).ask(vote(3, 1)) == refused(1, leader_id=2)


def test_pre_votes_are_rejected_while_the_leader_answers() -> None:
    lone = follower()
    assert lone.ask(vote(3, 1, pre_vote=True)) == granted(1, leader_id=2)
    lone = follower()
    lone.answer(FetchResponse(ErrorCode.NONE, 2, 1, high_watermark=0))
    assert lone.ask(vote(3, 1, pre_vote=True)) == refused(1, leader_id=2)


def test_a_pre_vote_is_not_persisted_and_not_binding() -> None:
    lone = LoneNode()
    assert lone.ask(vote(2, 0, pre_vote=True)) == granted(0)
    assert lone.ask(vote(3, 0, pre_vote=True)) == granted(0)
    assert lone.stored == ElectionState()


def test_a_candidate_stores_its_vote_with_the_first_request() -> None:
    lone = candidate()
    assert lone.ready.quorum_state == ElectionState(epoch=1, voted_id=1)
    assert lone.sent_to(2) == vote(1, 1)
    assert lone.ask(vote(3, 1)) == refused(1)


def test_a_rejected_candidate_backs_off_and_starts_over() -> None:
    lone = candidate()
    requests = lone.ready
    lone.answer(refused(1))
    lone.ready = requests
    lone.answer(refused(1), source=3)
    assert lone.node.role_name == "Candidate"
    lone.at(1001)
    assert lone.node.role_name == "Prospective"
    assert lone.node.epoch == 1


def test_a_response_of_an_older_election_is_ignored() -> None:
    lone = LoneNode()
    lone.at(1000)
    pre_vote_round = lone.ready
    lone.answer(granted(0))
    assert lone.node.role_name == "Candidate"
    lone.ready = pre_vote_round
    lone.answer(granted(0), source=3)
    assert lone.node.role_name == "Candidate"


def test_a_restarted_candidate_ignores_earlier_votes() -> None:
    lone = candidate()
    request = lone.ready
    lone.node = LoneNode(stored=lone.stored).node
    lone.now_ms, lone.ready = 0, request
    lone.answer(granted(1))
    assert lone.node.role_name == "Voted"


def test_one_node_can_have_the_shortest_delay_of_the_first_election() -> None:
    timing = Timing(first_election_delay_ms=100)
    assert LoneNode(timing=timing).node.wake_at_ms(0) == 100
    assert LoneNode(stored=ElectionState(epoch=3), timing=timing).node.wake_at_ms(0) == 1000


def test_begin_epoch_is_rejected_by_nodes_with_later_information() -> None:
    lone = follower(leader_id=2, epoch=4)
    assert lone.ask(BeginQuorumEpochRequest(2, 4)) == BeginQuorumEpochResponse(ErrorCode.NONE, 2, 4)
    fenced = BeginQuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, 2, 4)
    assert lone.ask(BeginQuorumEpochRequest(3, 3)) == fenced
    assert lone.ask(BeginQuorumEpochRequest(3, 4)) == BeginQuorumEpochResponse(ErrorCode.INVALID_REQUEST, 2, 4)
    stranger = BeginQuorumEpochResponse(ErrorCode.INCONSISTENT_VOTER_SET, 2, 4)
    assert lone.ask(BeginQuorumEpochRequest(9, 5)) == stranger
    assert lone.ask(BeginQuorumEpochRequest(3, 5)) == BeginQuorumEpochResponse(ErrorCode.NONE, 3, 5)


def test_a_candidate_follows_the_winner_of_its_epoch() -> None:
    lone = candidate()
    lone.ask(BeginQuorumEpochRequest(3, 1))
    assert lone.node.role_name == "Follower"
    assert lone.stored == ElectionState(1, 3, 1, 3, 1)


def test_preferred_successors_campaign_in_order() -> None:
    first = follower()
    first.ask(EndQuorumEpochRequest(2, 1, (1, 3)))
    assert first.node.role_name == "Prospective"
    second = follower()
    second.ask(EndQuorumEpochRequest(2, 1, (3, 1)))
    assert second.node.role_name == "Unattached"
    assert second.node.wake_at_ms(0) == 500
    other = follower()
    other.ask(EndQuorumEpochRequest(2, 1, (3,)))
    assert other.node.wake_at_ms(0) == 1000


def test_a_resigned_leader_is_not_followed_again() -> None:
    lone = follower()
    lone.ask(EndQuorumEpochRequest(2, 1, (1, 3)))
    lone.answer(refused(1, leader_id=2), source=3)
    assert lone.node.role_name == "Prospective"


def test_an_end_of_an_older_epoch_is_fenced() -> None:
    lone = follower(leader_id=3, epoch=2)
    response = lone.ask(EndQuorumEpochRequest(2, 1, (1,)))
    assert response.error is ErrorCode.FENCED_LEADER_EPOCH
    assert lone.node.role_name == "Follower"


def test_a_prospective_node_without_a_majority_tries_its_leader_again() -> None:
    lone = follower()
    lone.at(2000)
    assert lone.node.role_name == "Prospective"
    lone.at(3000)
    assert lone.node.role_name == "Follower"


def test_a_preferred_successor_that_shuts_down_does_not_campaign() -> None:
    lone = follower()
    lone.carry_out(lone.node.shutdown(0))
    lone.ask(EndQuorumEpochRequest(2, 1, (1, 3)))
    assert lone.node.is_shut_down
    assert lone.node.wake_at_ms(0) is None


def test_a_leader_steps_down_for_a_lab_vote() -> None:
    lone = leader()
    lone.ask(fetch(lone, 1, 1))
    parked = lone.ask(fetch(lone, 1, 1, high_watermark=1))
    assert parked is None
    assert lone.ask(LabVoteRequest(3, 5, log_is_up_to_date=True)) == FetchResponse(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 5
    ), "the parked fetch is answered first"
    assert lone.stored.voted_id == 3


def test_lab_requests_cannot_exhaust_the_epochs() -> None:
    lone = LoneNode()
    far = EPOCH_JUMP_MAX + 1
    assert lone.ask(LabVoteRequest(2, far, log_is_up_to_date=True)) == LabVoteResponse(granted=False)
    assert lone.ask(LabLeaderRequest(2, far)) == LabLeaderResponse(accepted=False)
    assert lone.node.epoch == 0


def test_a_rejected_lab_vote_names_the_last_accepted_leader() -> None:
    lone = follower(leader_id=2, epoch=3)
    lone.ask(vote(3, 5))
    expected = LabVoteResponse(granted=False, leader_id=2, leader_epoch=3)
    assert lone.ask(LabVoteRequest(2, 5, log_is_up_to_date=True)) == expected
    assert LoneNode(stored=lone.stored).ask(LabVoteRequest(2, 5, log_is_up_to_date=True)) == expected


def test_observers_reject_lab_requests() -> None:
    observer = LoneNode(node_id=9)
    assert not observer.ask(LabVoteRequest(2, 5, log_is_up_to_date=True)).granted
    assert not observer.ask(LabLeaderRequest(2, 5)).accepted


# --- a peer is reported down


def down(lone: LoneNode, peer_id: int) -> None:
    lone.carry_out(lone.node.receive(PeerDown(peer_id), lone.now_ms))


def fetched(lone: LoneNode) -> None:
    lone.answer(FetchResponse(ErrorCode.NONE, 2, lone.node.epoch, high_watermark=0))


def test_a_follower_whose_leader_is_down_campaigns_at_once() -> None:
    lone = follower()
    fetched(lone)
    down(lone, 2)
    assert isinstance(lone.node.role, Prospective)
    assert isinstance(lone.sent_to(3), VoteRequest)


def test_the_failover_delay_is_random_and_short() -> None:
    timing = Timing(election_timeout_ms=1000)
    assert timing.failover_delay(lambda below: 0) == 0
    assert timing.failover_delay(lambda below: below - 1) == 100


def test_a_report_about_another_follower_is_ignored() -> None:
    lone = follower()
    fetched(lone)
    down(lone, 3)
    assert isinstance(lone.node.role, Follower)
    assert lone.ask(vote(3, 1, pre_vote=True)) == refused(1, leader_id=2)


def test_a_follower_that_waits_to_campaign_grants_pre_votes_until_the_leader_answers() -> None:
    lone = follower()
    lone.node.state.random_below = lambda below: below - 1
    fetched(lone)
    assert lone.ask(vote(3, 1, pre_vote=True)) == refused(1, leader_id=2)
    lone.at(10)
    down(lone, 2)
    assert lone.ask(vote(3, 1, pre_vote=True)) == granted(1, leader_id=2)
    lone.carry_out(lone.node.tick(10))
    assert isinstance(lone.node.role, Follower)


def test_an_answer_of_the_leader_revokes_the_report() -> None:
    lone = follower()
    lone.node.state.random_below = lambda below: below - 1
    request = lone.sent_to(2)
    assert request is not None
    down(lone, 2)
    response = FetchResponse(ErrorCode.NONE, 2, lone.node.epoch, high_watermark=0)
    lone.carry_out(lone.node.receive(ResponseReceived(2, request, response), lone.now_ms))
    lone.at(1000)
    assert isinstance(lone.node.role, Follower)
    assert lone.ask(vote(3, 1, pre_vote=True)) == refused(1, leader_id=2)


def test_a_candidate_does_not_wait_for_voters_that_are_down() -> None:
    lone = candidate()
    epoch = lone.node.epoch
    request = lone.sent_to(2)
    assert request is not None
    down(lone, 3)
    lone.carry_out(lone.node.receive(ResponseReceived(2, request, refused(epoch)), lone.now_ms))
    lone.at(1001)
    assert isinstance(lone.node.role, Prospective), "it is lost: the next attempt follows after the backoff of 1 ms"


def test_a_voter_that_is_down_counts_as_rejecting() -> None:
    lone = candidate()
    down(lone, 2)
    down(lone, 3)
    assert lone.node.progress is None
    assert lone.node.epoch == 1


def test_an_observer_whose_leader_is_down_looks_for_the_next_one() -> None:
    lone = LoneNode(node_id=4)
    lone.answer(FetchResponse(ErrorCode.FENCED_LEADER_EPOCH, 2, 1), source=1)
    assert lone.sent_to(2) is not None
    down(lone, 2)
    assert lone.sent_to(1) is not None


# --- what strangers claim ---------------------------------------------------------------------------

FAR = 2**31 - 1


def heard_follower() -> LoneNode:
    lone = follower()
    lone.answer(FetchResponse(ErrorCode.NONE, 2, 1, high_watermark=0))
    return lone


@pytest.mark.parametrize("make", [heard_follower, leader], ids=["follower", "leader"])
@pytest.mark.parametrize("epoch", [2, 3, FAR])
@pytest.mark.parametrize("candidate_id", [2, 3])
@pytest.mark.parametrize("pre_vote", [True, False])
def test_requests_do_not_change_the_epoch_of_a_node_with_a_live_leader(
    make: Callable[[], LoneNode], epoch: int, candidate_id: int, pre_vote: bool
) -> None:
    lone = make()
    before, role = lone.node.election, lone.node.role
    response = lone.ask(vote(candidate_id, epoch, (99, 99), pre_vote))
    assert response == refused(1, leader_id=before.leader_id)
    for request in (BeginQuorumEpochRequest(candidate_id, epoch), EndQuorumEpochRequest(candidate_id, epoch, (1,))):
        assert lone.ask(request).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (lone.node.election, lone.node.role) == (before, role)
    assert lone.ready.quorum_state is None


def test_a_follower_leaves_its_leader_when_the_leader_itself_confirms_the_end() -> None:
    lone = heard_follower()
    lone.ask(EndQuorumEpochRequest(2, 1, (1, 3)))
    assert isinstance(lone.node.role, Follower), "anybody can claim that"
    lone.node.receive(ResponseReceived(2, lone.node.following.next_request(), resigned_answer()), lone.now_ms)
    assert isinstance(lone.node.role, Prospective), "the first successor campaigns at once"


def resigned_answer() -> FetchResponse:
    return FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 1)


def test_without_a_leader_requests_lift_the_epoch_within_reason_only() -> None:
    lone = LoneNode()
    assert lone.ask(vote(2, EPOCH_LEAD_MAX + 1, (9, 9))) == refused(0)
    assert lone.ask(BeginQuorumEpochRequest(2, FAR)).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert lone.ask(EndQuorumEpochRequest(2, FAR, (1,))).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert lone.node.epoch == 0
    assert lone.ask(vote(2, EPOCH_LEAD_MAX, (9, 9))) == granted(EPOCH_LEAD_MAX)
    assert lone.ask(vote(3, EPOCH_LEAD_MAX + 1, (9, 9))) == refused(EPOCH_LEAD_MAX), "no response has confirmed it"


def test_a_response_confirms_an_epoch_that_requests_then_build_on() -> None:
    lone = LoneNode()
    lone.at(1000)
    lone.answer(VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, -1, 5000))
    assert lone.node.epoch == 5000, "this node was away for long"
    assert lone.ask(vote(2, 5001, (9, 9))) == granted(5001)


def test_not_even_a_response_lifts_the_epoch_beyond_reason() -> None:
    lone = LoneNode()
    lone.at(1000)
    lone.answer(VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, -1, EPOCH_JUMP_MAX + 1))
    assert lone.node.epoch == 0
