import pytest
from metadata_clusters import SETTINGS, decided, with_topic
from partition_changes import altered, fence, isr_request, partition, replicated, restart, set_isr, unfence

from sskafka.metadata.brokers.lifecycle import begin_controlled_shutdown
from sskafka.metadata.config_changes import incremental_alter_configs
from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

OTHER_DISK = b"\x09" * 16


def set_topic_config(image: ClusterImage, name: str, value: str) -> None:
    resource = AlterConfigsResource(2, "t", [AlterableConfig(name, 0, value)])
    request = IncrementalAlterConfigsRequest([resource])
    assert decided(image, incremental_alter_configs(image, request, SETTINGS)).responses[0].error_code == 0


def test_leadership_moves_through_the_replicas_and_waits_for_the_last() -> None:
    image = replicated()
    fence(image, 1)
    assert (partition(image).leader, partition(image).isr) == (2, (2, 3))
    fence(image, 3)
    assert (partition(image).leader, partition(image).isr, partition(image).leader_epoch) == (2, (2,), 1)
    fence(image, 2)
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas, state.leader_epoch) == (-1, (), (2,), 2)
    unfence(image, 1)
    assert partition(image).leader == -1
    unfence(image, 2)
    assert (partition(image).leader, partition(image).isr) == (2, (2,))


def test_brokers_fenced_together_do_not_become_leaders() -> None:
    image = replicated(min_insync_replicas="2")
    fence(image, 1, 2)
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (3, (3,), (1, 2))
    assert state.leader_epoch == 1


def test_an_eligible_replica_leads_when_the_isr_is_gone() -> None:
    image = replicated(min_insync_replicas="2")
    fence(image, 2)
    fence(image, 3)
    fence(image, 1)
    assert partition(image).eligible_leader_replicas == (3, 1)
    unfence(image, 2)
    assert partition(image).leader == -1
    unfence(image, 3)
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (3, (3,), (1,))
    assert (state.leader_recovery_state, state.last_known_eligible_leader_replicas) == (0, ())


def test_with_min_insync_1_an_elected_leader_commits_alone() -> None:
    image = replicated()
    fence(image, 1, 2, 3)
    assert partition(image).eligible_leader_replicas == (1, 2, 3)
    unfence(image, 2)
    assert (partition(image).isr, partition(image).eligible_leader_replicas) == ((2,), ())


def test_a_broker_stays_eligible_only_after_a_clean_stop() -> None:
    for cleanly in (True, False):
        image = replicated(2, min_insync_replicas="2")
        fence(image, 2)
        fence(image, 1)
        assert partition(image).eligible_leader_replicas == (2, 1)
        restart(image, 2, cleanly=cleanly)
        assert partition(image).eligible_leader_replicas == ((2, 1) if cleanly else (1,))
        unfence(image, 2)
        assert partition(image).leader == (2 if cleanly else -1)


def test_a_leader_that_restarts_before_its_session_expires_loses_leadership() -> None:
    image = replicated()
    restart(image, 1, cleanly=False)
    state = partition(image)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
    unfence(image, 1)
    assert partition(image).leader == 2


def test_without_reliable_replicas_the_last_leader_recovers() -> None:
    image = replicated(min_insync_replicas="2")
    fence(image, 2)
    fence(image, 3)
    fence(image, 1)
    for broker_id in (1, 2, 3):
        restart(image, broker_id, cleanly=False)
    state = partition(image)
    assert (state.isr, state.eligible_leader_replicas) == ((), ())
    assert state.last_known_eligible_leader_replicas == (1,)
    unfence(image, 3)
    unfence(image, 2)
    assert partition(image).leader == -1
    unfence(image, 1)
    state = partition(image)
    assert (state.leader, state.isr, state.leader_recovery_state) == (1, (1,), 1)


def test_all_brokers_killed_at_once_recover_with_the_last_leader() -> None:
    image = replicated()
    for broker_id in (1, 2, 3):
        restart(image, broker_id, cleanly=False)
    assert partition(image).last_known_eligible_leader_replicas == (3,)
    for broker_id in (1, 2, 3):
        unfence(image, broker_id)
    assert (partition(image).leader, partition(image).isr) == (3, (3,))


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_broker_with_another_disk_is_never_elected(cleanly: bool) -> None:
    image = replicated(2)
    set_isr(image, 1)
    fence(image, 1)
    restart(image, 1, cleanly=cleanly, directory=OTHER_DISK)
    unfence(image, 1)
    unfence(image, 2)
    state = partition(image)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (-1, (), ())
    assert state.last_known_eligible_leader_replicas == ()
    assert state.directory_of(1) == OTHER_DISK


def test_a_follower_with_another_disk_catches_up_and_may_lead_again() -> None:
    image = replicated(2)
    restart(image, 2, directory=OTHER_DISK)
    unfence(image, 2)
    set_isr(image, 1, 2)
    fence(image, 1)
    assert partition(image).leader == 2


def test_without_eligible_leaders_an_empty_disk_stays_in_the_isr_and_does_not_lead() -> None:
    image = replicated(2, elr=False)
    set_isr(image, 1)
    restart(image, 1, directory=OTHER_DISK)
    unfence(image, 1)
    assert (partition(image).leader, partition(image).isr) == (-1, (1,))
    fence(image, 2)
    set_topic_config(image, "unclean.leader.election.enable", "true")
    assert (partition(image).leader, partition(image).directory_of(1)) == (1, OTHER_DISK)


def test_without_eligible_leaders_the_last_member_of_the_isr_is_waited_for() -> None:
    image = replicated(2, elr=False)
    fence(image, 2)
    restart(image, 1, cleanly=False)
    assert (partition(image).leader, partition(image).isr) == (-1, (1,))
    unfence(image, 2)
    assert partition(image).leader == -1
    unfence(image, 1)
    assert (partition(image).leader, partition(image).isr) == (1, (1,))


def test_unclean_elections_where_allowed() -> None:
    image = replicated(unclean_leader_election_enable="true")
    set_isr(image, 1)
    fence(image, 1)
    state = partition(image)
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    assert state.eligible_leader_replicas == ()


def test_unclean_elections_follow_when_they_become_allowed() -> None:
    image = replicated()
    set_isr(image, 1)
    fence(image, 1)
    assert partition(image).leader == -1
    set_topic_config(image, "unclean.leader.election.enable", "true")
    assert (partition(image).leader, partition(image).leader_recovery_state) == (2, 1)


def test_elr_is_cleared_when_the_isr_may_commit_without_it() -> None:
    image = replicated(min_insync_replicas="2")
    set_isr(image, 1)
    assert partition(image).eligible_leader_replicas == (2, 3)
    set_topic_config(image, "min.insync.replicas", "1")
    assert partition(image).eligible_leader_replicas == ()


def test_awaited_replicas_stay_eligible() -> None:
    image = replicated(min_insync_replicas="2")
    fence(image, 1, 2, 3)
    set_topic_config(image, "min.insync.replicas", "1")
    assert partition(image).eligible_leader_replicas == (1, 2, 3)


def test_a_stopping_broker_leads_nothing_and_is_in_no_isr() -> None:
    image = with_topic(replicated(), "other", 6, 2)
    decided(image, begin_controlled_shutdown(image, 1, SETTINGS))
    for _, _, state in image.partitions():
        assert state.leader not in {1, -1}
        assert 1 not in state.isr
    assert list(begin_controlled_shutdown(image, 1, SETTINGS).records) == []


def test_a_request_of_a_former_leader_is_rejected() -> None:
    image = replicated()
    late = isr_request(image, [1])
    fence(image, 1)
    unfence(image, 1)
    assert altered(image, late).error_code == ErrorCode.FENCED_LEADER_EPOCH
