"""Replication of three brokers on virtual time, as producers, consumers and followers observe it."""

from collections.abc import Callable

import pytest
from replica_cluster import CONTROLLER, TOPIC_ID, ReplicaCluster, Weather
from replica_requests import consume, content, fetch_as, produce, result, send

from sskafka.metadata.records import ConfigRecord, PartitionChangeRecord, RemoveTopicRecord
from sskafka.model.errors import ErrorCode
from sskafka.partition.in_sync_replicas import IsrChange, Outcome
from sskafka.replication.errors import NotLeaderOrFollowerError, UnknownTopicIdError
from sskafka.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from sskafka.wire.messages.fetch import FetchRequest, FetchResponse

TOPIC_CONFIG = 2


@pytest.fixture
def cluster() -> ReplicaCluster:
    made = ReplicaCluster()
    made.controller.create_topic([[1, 2, 3]])
    made.time.run_for(300)
    return made


def assert_identical(cluster: ReplicaCluster) -> None:
    replicas = [cluster.partition(broker_id) for broker_id in cluster.brokers]
    assert len({content(replica) for replica in replicas}) == 1
    assert len({replica.high_watermark for replica in replicas}) == 1
    assert replicas[0].high_watermark == replicas[0].log.log_end_offset


# -- writing


def test_what_is_acknowledged_is_on_all_in_sync_replicas(cluster: ReplicaCluster) -> None:
    for number in range(5):
        answer = produce(cluster, b"%d" % number)
        assert (answer.error_code, answer.base_offset) == (0, number)
        assert [cluster.partition(broker).log.log_end_offset for broker in (1, 2, 3)] == [number + 1] * 3
    cluster.time.run_for(50)
    assert_identical(cluster)


def test_the_leader_answers_acks_1_by_itself(cluster: ReplicaCluster) -> None:
    cluster.network.cut |= {frozenset((1, 2)), frozenset((1, 3))}
    answers = send(cluster.brokers[1], b"a", acks=1)
    assert not answers, "the epoch is new and must be on the disk first"
    cluster.time.run_for(10)
    assert result(answers).error_code == 0
    assert result(send(cluster.brokers[1], b"b", acks=1)).error_code == 0, "at once from now on"
    assert cluster.partition(1).high_watermark == 0


def test_nothing_is_committed_at_the_append(cluster: ReplicaCluster) -> None:
    answers = send(cluster.brokers[1], b"a")
    assert not answers
    assert cluster.partition(1).log.log_end_offset == 1
    assert cluster.partition(1).high_watermark == 0


def test_sending_records_is_not_having_them(cluster: ReplicaCluster) -> None:
    """The position of a follower is what it asks for next."""
    cluster.network.cut |= {frozenset((1, 2)), frozenset((1, 3))}
    cluster.time.run_for(400)
    send(cluster.brokers[1], b"a")
    cluster.time.run_for(10)  # the new epoch is on the disk
    for replica in (2, 3):
        assert fetch_as(cluster.brokers[1], replica, 0, epoch=0).records
    assert cluster.partition(1).high_watermark == 0
    fetch_as(cluster.brokers[1], 2, 1, epoch=0, last_epoch=0)
    assert cluster.partition(1).high_watermark == 0
    fetch_as(cluster.brokers[1], 3, 1, epoch=0, last_epoch=0)
    assert cluster.partition(1).high_watermark == 1


def test_a_follower_reads_beyond_the_high_watermark_and_a_consumer_does_not(cluster: ReplicaCluster) -> None:
    cluster.network.cut |= {frozenset((1, 2)), frozenset((1, 3))}
    cluster.time.run_for(400)
    send(cluster.brokers[1], b"a", b"b")
    assert fetch_as(cluster.brokers[1], 2, 0, epoch=0).records
    assert not consume(cluster.brokers[1], 0)[1].records


def test_a_lagging_replica_does_not_take_what_it_lacks_for_truncated(cluster: ReplicaCluster) -> None:
    assert produce(cluster, b"a").error_code == 0
    cluster.network.cut |= {frozenset((1, 3)), frozenset((2, 3))}
    assert produce(cluster, b"b").error_code == 0, "after 3 has left the in-sync set"
    _, answer = consume(cluster.brokers[3], 2, last_epoch=0)
    assert (answer.error_code, answer.diverging_epoch.end_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_the_leader_knows_that_the_log_has_diverged(cluster: ReplicaCluster) -> None:
    assert produce(cluster, b"a").error_code == 0
    _, answer = consume(cluster.brokers[1], 2, last_epoch=0)
    assert (answer.error_code, answer.diverging_epoch.end_offset) == (0, 1)


# -- the in-sync set


def test_a_dead_follower_leaves_the_in_sync_set_and_writes_go_on(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    assert produce(cluster, b"a").error_code == 0
    assert cluster.controller.state().isr == (1, 2)
    assert cluster.brokers[1].replicas.counters.isr_shrinks == 1


def test_a_follower_that_comes_back_catches_up_and_joins(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    for number in range(20):
        produce(cluster, b"%d" % number)
    cluster.start(3)
    cluster.time.run_until(lambda: len(cluster.controller.state().isr) == 3)
    cluster.time.run_for(50)
    assert_identical(cluster)


def test_a_follower_that_was_fenced_holds_nobody_up_before_it_fetches_again(cluster: ReplicaCluster) -> None:
    """Its network broke; the controller hears it again before the leader does."""
    assert produce(cluster, b"before").error_code == 0
    cluster.network.cut |= {frozenset((1, 3)), frozenset((2, 3))}
    cluster.controller.fence(3)
    cluster.time.run_for(50)
    assert produce(cluster, b"without it").error_code == 0
    cluster.controller.unfence(3)
    cluster.time.run_for(50)
    began_ms = cluster.time.elapsed_ms
    assert produce(cluster, b"with it in reach of the controller alone").error_code == 0
    assert cluster.time.elapsed_ms - began_ms < 500
    cluster.network.cut.clear()
    cluster.time.run_for(3_000)
    assert cluster.controller.state().isr == (1, 2, 3)
    assert_identical(cluster)


def test_a_follower_that_had_nothing_to_fetch_for_long_is_not_put_out_by_the_first_record(
    cluster: ReplicaCluster,
) -> None:
    cluster.time.run_for(30_000)
    send(cluster.brokers[1], b"a")
    cluster.partition(1).check_lag()
    leader = cluster.partition(1).leader
    assert leader is not None
    assert leader.isr.pending is None


def test_too_few_in_sync_refuse_before_the_append(cluster: ReplicaCluster) -> None:
    cluster.stop(2)
    cluster.stop(3)
    answers = send(cluster.brokers[1], b"a", timeout_ms=1000)
    cluster.time.run_until(lambda: cluster.controller.state().isr == (1,))
    cluster.time.run_for(1000)
    assert result(answers).error_code == ErrorCode.REQUEST_TIMED_OUT
    end = cluster.partition(1).log.log_end_offset
    assert produce(cluster, b"b").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.partition(1).log.log_end_offset == end


def test_the_high_watermark_stands_still_below_min_insync(cluster: ReplicaCluster) -> None:
    cluster.stop(2)
    cluster.stop(3)
    send(cluster.brokers[1], b"a", acks=1)
    cluster.time.run_until(lambda: cluster.controller.state().isr == (1,))
    cluster.time.run_for(3000)
    assert cluster.partition(1).high_watermark == 0


def test_what_was_committed_in_time_but_not_safely_is_said_so(cluster: ReplicaCluster) -> None:
    """min.insync.replicas is raised between the append and the acknowledgement."""
    cluster.network.cut |= {frozenset((1, 3))}
    answers = send(cluster.brokers[1], b"a")
    cluster.time.run_until(lambda: cluster.partition(1).leader.isr.pending is not None)  # type: ignore[union-attr]
    cluster.controller.commit(ConfigRecord(TOPIC_CONFIG, "orders", "min.insync.replicas", "3"))
    partition = cluster.partition(1)
    cluster.time.run_until(lambda: not partition.has_enough_in_sync() or bool(answers))
    cluster.time.run_for(5000)
    assert result(answers).error_code in {
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }


def test_a_raised_min_insync_counts_before_the_isr_that_shrinks_with_it(cluster: ReplicaCluster) -> None:
    """The controller makes 3 an eligible leader, because the ISR is too small: it may lead without the record."""
    cluster.network.cut |= {frozenset((1, 3)), frozenset((2, 3))}
    answers = send(cluster.brokers[1], b"a")
    cluster.time.run_for(20)
    cluster.controller.commit(
        ConfigRecord(TOPIC_CONFIG, "orders", "min.insync.replicas", "3"),
        PartitionChangeRecord(0, TOPIC_ID, isr=[1, 2], eligible_leader_replicas=[3]),
    )
    cluster.time.run_for(5000)
    assert cluster.partition(1).high_watermark == 0
    assert result(answers).error_code != 0


def test_an_isr_that_shrinks_is_applied_with_its_metadata(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response to AlterPartition arrives before the metadata in which min.insync.replicas was raised."""
    decide, deliver = cluster.controller.alter_partition, cluster._deliver_later

    def raise_and_decide(request: AlterPartitionRequest) -> AlterPartitionResponse:
        cluster.controller.commit(ConfigRecord(TOPIC_CONFIG, "orders", "min.insync.replicas", "3"))
        return decide(request)

    monkeypatch.setattr(cluster.controller, "alter_partition", raise_and_decide)
    monkeypatch.setattr(cluster, "_deliver_later", lambda broker: broker.broker_id == 1 or deliver(broker))
    cluster.stop(3)
    send(cluster.brokers[1], b"a")
    cluster.time.run_until(lambda: cluster.controller.state().isr == (1, 2))
    cluster.time.run_for(500)
    assert cluster.partition(1).high_watermark == 0
    monkeypatch.undo()
    deliver(cluster.brokers[1])
    leader = cluster.partition(1).leader
    assert leader is not None
    cluster.time.run_until(lambda: leader.isr.committed == (1, 2))
    cluster.time.run_for(500)
    assert cluster.partition(1).high_watermark == 0


def test_the_controller_may_be_away_for_long(cluster: ReplicaCluster) -> None:
    cluster.controller.is_away = True
    cluster.stop(3)
    answers = send(cluster.brokers[1], b"a", timeout_ms=2000)
    cluster.time.run_for(2100)
    assert result(answers).error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster.time.run_for(60_000)
    assert cluster.partition(1).high_watermark == 0, "the dead follower still counts"
    cluster.controller.is_away = False
    cluster.time.run_for(200)
    assert cluster.controller.state().isr == (1, 2)
    assert cluster.partition(1).high_watermark == 1


def test_a_lost_answer_of_the_controller_is_made_up_by_the_metadata(cluster: ReplicaCluster) -> None:
    decide = cluster.controller.alter_partition

    def decide_and_lose(request: AlterPartitionRequest) -> AlterPartitionResponse:
        cluster.network.weather = Weather(loss_percent=100)
        return decide(request)

    cluster.controller.alter_partition = decide_and_lose  # type: ignore[method-assign]
    cluster.stop(3)
    send(cluster.brokers[1], b"a")
    leader = cluster.partition(1).leader
    assert leader is not None
    cluster.time.run_until(lambda: cluster.controller.state().isr == (1, 2))
    assert leader.isr.pending is not None
    cluster.time.run_for(50)
    assert (leader.isr.committed, leader.isr.pending) == ((1, 2), None)


def test_a_change_from_an_old_partition_epoch_is_refused(cluster: ReplicaCluster) -> None:
    """The leader does not see that somebody else changed the set; its own change must not undo that."""
    cluster.network.cut.add(frozenset((1, CONTROLLER)))
    cluster.stop(3)
    cluster.controller.fence(3)
    cluster.time.run_for(3000)
    assert cluster.controller.state().isr == (1, 2)
    epoch = cluster.controller.state().partition_epoch
    cluster.network.cut.clear()
    cluster.time.run_for(1000)
    assert cluster.controller.state().partition_epoch == epoch
    leader = cluster.partition(1).leader
    assert leader is not None
    assert (leader.isr.committed, leader.isr.pending) == ((1, 2), None)


def test_a_fetch_of_a_broker_that_has_restarted_since_is_refused(cluster: ReplicaCluster) -> None:
    old = cluster.brokers[3].broker_epoch
    cluster.stop(3)
    cluster.controller.fence(3)
    cluster.controller.register(3, lost_data=True)
    cluster.controller.unfence(3)
    cluster.time.run_for(50)
    answer = fetch_as(cluster.brokers[1], 3, 0, epoch=0, broker_epoch=old)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_stranger_is_no_follower(cluster: ReplicaCluster) -> None:
    assert fetch_as(cluster.brokers[1], 9, 0, epoch=0).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


# -- leaders change


def test_a_deposed_leader_acknowledges_nothing_and_cuts_what_nobody_has(cluster: ReplicaCluster) -> None:
    produce(cluster, b"a")
    cluster.network.cut |= {frozenset((1, 2)), frozenset((1, 3)), frozenset((1, CONTROLLER))}
    cluster.time.run_for(50)
    lost = send(cluster.brokers[1], b"lost", timeout_ms=60_000)
    cluster.controller.fence(1)
    cluster.time.run_for(1500)
    assert produce(cluster, b"kept", to=2).error_code == 0
    assert not lost
    cluster.network.cut.clear()
    cluster.controller.unfence(1)
    cluster.time.run_for(3000)
    assert result(lost).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert_identical(cluster)
    assert b"kept" in content(cluster.partition(1))
    assert b"lost" not in content(cluster.partition(1))


def test_who_asks_the_wrong_broker_is_told_the_right_one(cluster: ReplicaCluster) -> None:
    answer = produce(cluster, b"a", to=2)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH), (1, ErrorCode.NONE)]
)
def test_epochs_are_compared(cluster: ReplicaCluster, epoch: int, error: ErrorCode) -> None:
    cluster.controller.move_leader(0, 2)
    cluster.time.run_for(100)
    assert consume(cluster.brokers[2], 0, epoch=epoch)[1].error_code == error


def test_parked_requests_are_answered_when_the_leader_changes(cluster: ReplicaCluster) -> None:
    cluster.network.cut |= {frozenset((1, 3))}
    cluster.time.run_for(400)
    answers = send(cluster.brokers[1], b"a", timeout_ms=60_000)
    cluster.controller.move_leader(0, 2)
    cluster.time.run_for(100)
    assert result(answers).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_epoch_without_records_still_tells_logs_apart(cluster: ReplicaCluster) -> None:
    """The new leader has written nothing; the old one's tail must go all the same."""
    produce(cluster, b"a")
    cluster.network.cut |= {frozenset((1, 2)), frozenset((1, 3))}
    cluster.time.run_for(50)
    send(cluster.brokers[1], b"tail", acks=1)
    cluster.controller.move_leader(0, 2)
    cluster.network.cut.clear()
    cluster.time.run_for(2000)
    assert_identical(cluster)
    assert b"tail" not in content(cluster.partition(1))


def test_an_epoch_begins_where_its_leader_began(cluster: ReplicaCluster) -> None:
    """Epochs 1 and 2 have no records: they were over where they began."""
    produce(cluster, b"a", b"b")
    for leader in (2, 3, 1):
        cluster.controller.move_leader(0, leader)
        cluster.time.run_for(50)
    partition = cluster.partition(1)
    assert partition.end_offset_for_epoch(2) == (0, 2)
    send(cluster.brokers[1], b"c", acks=1)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (0, 2, 3, 4)] == [(0, 2), (0, 2), (3, 3), (-1, -1)]


def test_a_change_that_may_have_been_written_still_counts(cluster: ReplicaCluster) -> None:
    """INVALID_UPDATE_VERSION: the controller is ahead, perhaps by this very change."""
    cluster.stop(3)
    produce(cluster, b"a")
    cluster.network.cut.add(frozenset((1, CONTROLLER)))
    cluster.start(3)
    partition = cluster.partition(1)
    leader = partition.leader
    assert leader is not None
    cluster.controller.commit(PartitionChangeRecord(0, TOPIC_ID, isr=[1, 2, 3]))
    change = IsrChange(0, leader.isr.partition_epoch, (1, 2, 3), (-1, -1, -1))
    leader.isr.propose(change)
    assert partition.isr_refused(change, ErrorCode.INVALID_UPDATE_VERSION) is Outcome.SUPERSEDED
    assert leader.isr.maximal == {1, 2, 3}
    assert partition.isr_refused(change, ErrorCode.INELIGIBLE_REPLICA) is Outcome.NOT_APPLIED
    assert leader.isr.maximal == {1, 2}


def test_a_new_leader_learns_the_high_watermark_from_its_followers(cluster: ReplicaCluster) -> None:
    for number in range(3):
        produce(cluster, b"%d" % number)
    cluster.stop(1)
    cluster.controller.fence(1)
    cluster.time.run_until(lambda: cluster.partition(2).is_leader and cluster.partition(2).high_watermark == 3)


# -- reading


def test_any_replica_serves_what_is_committed(cluster: ReplicaCluster) -> None:
    produce(cluster, b"a")
    cluster.time.run_for(50)
    response = consume(cluster.brokers[3], 0)[1]
    assert response.high_watermark == 1
    assert response.records


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    cluster = ReplicaCluster(racks={1: "a", 2: "b", 3: "c"})
    cluster.controller.create_topic([[1, 2, 3]])
    cluster.time.run_for(300)
    produce(cluster, b"a")
    cluster.time.run_for(50)
    away = consume(cluster.brokers[1], 0, rack="c")[1]
    assert (away.preferred_read_replica, away.records or b"") == (3, b"")
    here = consume(cluster.brokers[1], 0, rack="a")[1]
    assert (here.preferred_read_replica, bool(here.records)) == (-1, True)
    there = consume(cluster.brokers[3], 0, rack="c")[1]
    assert (there.preferred_read_replica, bool(there.records)) == (-1, True)


def test_followers_learn_of_the_high_watermark_without_new_records(cluster: ReplicaCluster) -> None:
    produce(cluster, b"a")
    cluster.time.run_for(20)
    assert [cluster.partition(broker).high_watermark for broker in (1, 2, 3)] == [1, 1, 1]


# -- log starts


def test_deleted_records_go_from_the_followers_too(cluster: ReplicaCluster) -> None:
    for number in range(5):
        produce(cluster, b"%d" % number)
    cluster.partition(1).start_at(3)
    cluster.time.run_for(1000)
    assert [cluster.partition(broker).log.log_start_offset for broker in (1, 2, 3)] == [3, 3, 3]


def test_followers_hear_of_a_log_start_that_moved_by_itself(cluster: ReplicaCluster) -> None:
    for number in range(5):
        produce(cluster, b"%d" % number)
    cluster.time.run_for(1000)
    cluster.partition(1).log.increment_log_start_offset(3)  # as retention does
    cluster.time.run_for(6000)
    assert [cluster.partition(broker).log.log_start_offset for broker in (2, 3)] == [3, 3]


def test_a_follower_behind_the_leaders_start_begins_there(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    for _ in range(4):
        produce(cluster, b"x", b"y", b"z")
    cluster.partition(1).start_at(7)  # inside a batch
    cluster.start(3)
    cluster.time.run_until(lambda: len(cluster.controller.state().isr) == 3)
    cluster.time.run_for(300)
    assert (cluster.partition(3).log.log_start_offset, cluster.partition(3).log.log_end_offset) == (7, 12)


def test_an_empty_disk_is_filled_again(cluster: ReplicaCluster) -> None:
    for number in range(5):
        produce(cluster, b"%d" % number)
    cluster.stop(3)
    cluster.replace_disk(3)
    cluster.start(3, lost_data=True)
    cluster.time.run_until(lambda: len(cluster.controller.state().isr) == 3)
    cluster.time.run_for(300)
    assert_identical(cluster)


# -- replicas come and go


def test_a_replica_moves_to_another_broker() -> None:
    cluster = ReplicaCluster(brokers=4)
    cluster.controller.create_topic([[1, 2, 3]])
    cluster.time.run_for(300)
    produce(cluster, b"a")
    cluster.controller.commit(PartitionChangeRecord(0, TOPIC_ID, replicas=[1, 2, 3, 4]))
    cluster.time.run_until(lambda: 4 in cluster.controller.state().isr)
    cluster.controller.commit(PartitionChangeRecord(0, TOPIC_ID, replicas=[1, 2, 4], isr=[1, 2, 4]))
    cluster.time.run_for(100)
    with pytest.raises(NotLeaderOrFollowerError):
        cluster.partition(3)
    assert cluster.brokers[3].logs.get(cluster.partition(1).topic_partition) is None
    assert produce(cluster, b"b").error_code == 0
    assert cluster.partition(4).log.log_end_offset == 2


def test_a_deleted_topic_is_gone_with_those_who_waited(cluster: ReplicaCluster) -> None:
    cluster.network.cut |= {frozenset((1, 3))}
    answers = send(cluster.brokers[1], b"a", timeout_ms=60_000)
    cluster.controller.commit(RemoveTopicRecord(TOPIC_ID))
    cluster.time.run_for(100)
    assert result(answers).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(UnknownTopicIdError):
        cluster.partition(2)


# -- the disk


def test_followers_report_only_what_is_as_safe_as_the_topic_asks() -> None:
    cluster = ReplicaCluster()
    cluster.controller.create_topic([[1, 2, 3]], {"flush.messages": "1"})
    cluster.time.run_for(300)
    assert produce(cluster, b"a").error_code == 0
    assert [cluster.partition(broker).log.recovery_point for broker in (1, 2, 3)] == [1, 1, 1]


def test_a_full_disk_pauses_its_follower_and_no_other(cluster: ReplicaCluster) -> None:
    cluster.disks[3].capacity_bytes = 1
    assert produce(cluster, b"a").error_code == 0
    assert cluster.controller.state().isr == (1, 2)
    cluster.disks[3].capacity_bytes = None
    cluster.time.run_until(lambda: len(cluster.controller.state().isr) == 3)


def test_a_failed_directory_takes_its_replicas_offline(cluster: ReplicaCluster) -> None:
    broker = cluster.brokers[3]
    broker.partition(TOPIC_ID).log.log_directory.fail(OSError("broken"))
    assert produce(cluster, b"a").error_code == 0
    samples = {sample.name: sample.value for sample in broker.replicas.samples()}
    assert samples["kafka_server_replicamanager_offlinereplicacount"] == 1
    assert samples["kafka_server_replicamanager_partitioncount"] == 0


def test_gauges_tell_how_the_replicas_are(cluster: ReplicaCluster) -> None:
    cluster.stop(3)
    produce(cluster, b"a")
    samples = {sample.name: sample.value for sample in cluster.brokers[1].replicas.samples()}
    assert samples["kafka_server_replicamanager_underreplicatedpartitions"] == 1
    assert samples["kafka_server_replicamanager_atminisrpartitioncount"] == 1
    assert samples["kafka_server_replicamanager_underminisrpartitioncount"] == 0
    assert samples["kafka_server_replicamanager_leadercount"] == 1


# -- high watermarks of followers


def test_records_carry_the_high_watermark_to_followers_while_they_keep_coming(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response for the high watermark alone would make the next records wait for the next fetch."""
    responses: list[FetchResponse] = []
    leader, fetch = cluster.brokers[1], cluster.brokers[1].fetch

    def noted(request: FetchRequest, answered: Callable[[FetchResponse], None]) -> object:
        return fetch(request, lambda response: (responses.append(response), answered(response)))

    monkeypatch.setattr(leader, "fetch", noted)
    for number in range(40):
        produce(cluster, b"%d" % number)
        cluster.time.run_for(1)
    sent = len(responses)
    assert all(data.records for response in responses for topic in response.responses for data in topic.partitions)
    cluster.time.run_for(15)
    assert len(responses) == sent + 2, "when the partition is quiet, both followers learn of the high watermark"
    assert_identical(cluster)
