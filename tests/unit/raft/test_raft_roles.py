import re
from operator import eq, ge, gt

import pytest
from lone_node import LoneNode, candidate, follower, leader

from sskafka.raft import roles
from sskafka.raft.roles import TRANSITIONS, Candidate, Follower, Leader, Prospective, Resigned, Unattached

ROLES = (Unattached, Follower, Prospective, Candidate, Leader, Resigned)
RULES = {"=": eq, ">": gt, ">=": ge, "+1": roles._next}


def test_the_documented_transitions_are_those_enforced() -> None:
    by_name = {role.__name__: role for role in ROLES}
    lines = re.findall(r"^    (\w+) +(\w+) +(>=|>|=|\+1) +\S", roles.__doc__ or "", re.MULTILINE)
    drawn = {(by_name[source], by_name[target]): RULES[rule] for source, target, rule in lines}
    assert drawn == TRANSITIONS


def test_a_transition_that_is_not_in_the_table_is_rejected() -> None:
    state = leader().node.state
    with pytest.raises(AssertionError, match="no transition from Leader in epoch 1 to Prospective"):
        state.become_prospective(0)


def test_a_transition_in_the_wrong_epoch_is_rejected() -> None:
    state = follower().node.state
    with pytest.raises(AssertionError, match="wrong epoch: Follower in epoch 1 to Follower in epoch 1"):
        state.become_follower(3, 1, 0)


def test_a_second_vote_in_an_epoch_is_rejected() -> None:
    state = candidate().node.state
    with pytest.raises(AssertionError, match="second vote"):
        state.remember(state.election.with_vote(3))


def test_an_epoch_never_decreases() -> None:
    state = follower(epoch=5).node.state
    with pytest.raises(AssertionError, match="epoch goes back"):
        state.remember(state.election.in_epoch(4))


def test_an_observer_never_campaigns() -> None:
    observer = LoneNode(node_id=9)
    with pytest.raises(AssertionError, match="observer"):
        observer.node.state.become_prospective(0)
    assert observer.node.role_name == "Unattached"
    assert not observer.at(100_000).leadership


def test_an_unattached_node_that_voted_is_called_voted() -> None:
    lone = LoneNode()
    lone.node.state.become_voted(1, 3, 0)
    assert lone.node.role_name == "Voted"
