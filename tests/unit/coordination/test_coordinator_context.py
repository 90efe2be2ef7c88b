"""Decide, append, replay, answer: the guarantees of a context, for any shard."""

import pytest
from coordinator_lab import CoordinatorLab, Sums
from group_lab import Asked

from sskafka.coordination.context import EFFECTS_PER_TURN, CoordinatorState
from sskafka.model.coordination import CoordinatorResult, Respond, StateRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.records.batch import read_header
from sskafka.records.compression import Compression
from sskafka.replication.errors import NotEnoughReplicasError
from sskafka.storage.errors import InvalidProducerEpochError
from sskafka.storage.file_slice import FileSlice

PRODUCER = ProducerIdAndEpoch(5, 0)


@pytest.fixture
def lab() -> CoordinatorLab:
    lab = CoordinatorLab()
    lab.load()
    return lab


def test_nobody_is_served_before_the_log_is_loaded() -> None:
    lab = CoordinatorLab()
    assert lab.add("a", 1).code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.load()
    asked = lab.add("a", 1)
    lab.turn()
    assert asked.response == 1


def test_decisions_build_on_each_other_and_share_an_append(lab: CoordinatorLab) -> None:
    asked = [lab.add("a", 1) for _ in range(10)]
    assert lab.context.shard.sums == {"a": 10}, "replayed at once"
    assert not any(one.is_answered for one in asked), "not before it is in the log"
    lab.turn()
    assert [one.response for one in asked] == list(range(1, 11))
    assert lab.log.append_count == 1
    assert lab.log.log_end_offset == 10


def test_records_are_gathered_for_as_long_as_they_may_linger() -> None:
    lab = CoordinatorLab(linger_ms=50)
    lab.load()
    asked = [lab.add("a", 1)]
    lab.turn(30)
    asked.append(lab.add("a", 1))
    reader = lab.read("a")
    lab.turn(15)
    assert lab.log.append_count == 0
    assert not any(one.is_answered for one in (*asked, reader))
    lab.turn(15)
    assert lab.log.append_count == 1
    assert [one.response for one in (*asked, reader)] == [1, 2, 2]


def test_without_lingering_each_decision_is_a_batch() -> None:
    lab = CoordinatorLab(linger_ms=0)
    lab.load()
    assert [lab.add("a", 1).response for _ in range(3)] == [1, 2, 3]
    assert lab.log.append_count == 3
    assert lab.context.shard.sums == {"a": 3}


def test_a_failed_append_of_a_decision_that_does_not_linger_is_as_if_it_had_not_been_made() -> None:
    lab = CoordinatorLab(linger_ms=0)
    lab.load()
    lab.add("a", 1)
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    assert lab.add("a", 1).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    lab.log.append_error = None
    lab.load()
    assert lab.context.shard.sums == {"a": 1}


@pytest.mark.parametrize("codec", Compression)
def test_batches_are_compressed_and_markers_are_not(codec: Compression) -> None:
    lab = CoordinatorLab(compression=codec)
    lab.load()
    lab.add("a", 1)
    lab.turn()
    assert read_header(lab.log.file.data).compression == codec
    start = len(lab.log.file.data)
    lab.context.end_transaction(PRODUCER, 0, True, Asked())
    assert read_header(lab.log.file.data, start).compression == Compression.NONE
    lab.begin()
    assert lab.load().shard.sums == {"a": 1}


def test_a_log_is_loaded_however_little_is_read_at_once() -> None:
    lab = CoordinatorLab(load_bytes=1)
    lab.load()
    for number in range(5):
        lab.add(f"key-{number}", number)
        lab.turn()
    reads: list[int] = []
    read = lab.log.read

    def noting(offset: int, max_bytes: int) -> list[FileSlice]:
        reads.append(max_bytes)
        return read(offset, max_bytes)

    lab.log.read = noting  # type: ignore[method-assign]
    lab.begin()
    assert lab.load().shard.sums == {f"key-{number}": number for number in range(5)}
    assert set(reads) == {1}


def test_an_answer_waits_for_the_high_watermark(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    asked = lab.add("a", 1)
    lab.turn(100)
    assert not asked.is_answered
    lab.log.replicate()
    assert asked.response == 1


def test_readers_are_not_told_what_may_yet_be_lost(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    lab.add("a", 1)
    same_turn = lab.read("a")
    lab.turn(100)
    later = lab.read("a")
    assert not same_turn.is_answered
    assert not later.is_answered
    lab.log.replicate()
    assert (same_turn.response, later.response) == (1, 1)
    assert lab.read("a").response == 1, "at once, when nothing is under way"


def test_what_is_not_replicated_in_time_is_refused(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    asked = lab.add("a", 1)
    lab.turn(5_100)
    assert asked.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    lab.log.replicate()
    assert lab.read("a").response == 1


def test_lost_leadership_sends_everyone_away(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    appended = lab.add("a", 1)
    lab.turn()
    gathered = lab.add("a", 1)
    parked = Asked()
    lab.context.shard.parked.append(parked)
    lab.log.resign()
    lab.context.stop()
    assert [one.code for one in (appended, gathered, parked)] == [ErrorCode.NOT_COORDINATOR] * 3
    assert lab.add("a", 1).code is ErrorCode.NOT_COORDINATOR
    lab.turn()
    assert lab.log.append_count == 1


def test_between_losing_leadership_and_hearing_of_it_nothing_is_promised(lab: CoordinatorLab) -> None:
    gathered = lab.add("a", 1)
    lab.log.resign()
    assert lab.add("a", 1).code is ErrorCode.NOT_COORDINATOR
    assert lab.read("a").code is ErrorCode.NOT_COORDINATOR
    lab.turn(50)
    assert gathered.code is ErrorCode.NOT_COORDINATOR


def test_a_failed_append_is_as_if_nothing_had_been_decided(lab: CoordinatorLab) -> None:
    lab.add("a", 1)
    lab.turn()
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    failed = [lab.add("a", 5), lab.add("b", 5)]
    lab.turn()
    assert [one.code for one in failed] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    lab.log.append_error = None
    lab.turn(50)
    assert lab.context.state is CoordinatorState.ACTIVE
    assert lab.context.shard.sums == {"a": 1}
    again = lab.add("a", 1)
    lab.turn()
    assert again.response == 2


def test_while_too_few_replicas_are_in_sync_nothing_changes_and_nothing_is_loaded_anew(lab: CoordinatorLab) -> None:
    lab.add("a", 1)
    lab.turn()
    lab.log.is_writable = False
    assert lab.add("a", 1).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert lab.read("a").response == 1
    assert lab.context.state is CoordinatorState.ACTIVE


def test_a_decision_is_not_replayed_while_nothing_can_be_written(lab: CoordinatorLab) -> None:
    """Otherwise each attempt would restart all operations in progress, and markers would be written repeatedly."""
    lab.log.is_writable, lab.log.append_error = False, NotEnoughReplicasError("one is not enough")
    shard = lab.context.shard
    assert lab.add("a", 1).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shard.sums == {}
    lab.turn(50)
    assert lab.context.shard is shard
    lab.log.is_writable, lab.log.append_error = True, None
    again = lab.add("a", 1)
    lab.turn()
    assert again.response == 1


def test_a_shard_that_breaks_is_loaded_anew(lab: CoordinatorLab) -> None:
    lab.add("a", 1)
    lab.turn()
    asked, other = Asked(), lab.add("b", 1)

    def breaks(shard: object, now_ms: int) -> CoordinatorResult[StateRecord, None]:
        raise ZeroDivisionError

    lab.context.write(breaks, asked)
    assert asked.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert other.code is ErrorCode.NOT_COORDINATOR
    lab.turn(50)
    assert lab.context.shard.sums == {"a": 1}


def test_a_record_that_cannot_be_replayed_is_not_kept(lab: CoordinatorLab) -> None:
    asked = Asked()
    lab.context.write(lambda shard, _: CoordinatorResult([StateRecord(b"poison", b"")], 1), asked)
    assert asked.code is ErrorCode.NOT_COORDINATOR
    lab.turn(50)
    assert lab.context.state is CoordinatorState.ACTIVE
    assert lab.log.log_end_offset == 0


def test_a_refusal_changes_nothing(lab: CoordinatorLab) -> None:
    asked = Asked()

    def refuses(shard: object, now_ms: int) -> CoordinatorResult[StateRecord, None]:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    lab.context.write(refuses, asked)
    assert asked.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.context.state is CoordinatorState.ACTIVE


def test_a_new_coordinator_knows_what_was_written(lab: CoordinatorLab) -> None:
    for number in range(300):
        lab.add(f"key-{number % 7}", 1)
        lab.turn()
    sums = lab.context.shard.sums
    lab.context.stop()
    lab.begin()
    assert lab.load().shard.sums == sums


def test_a_long_log_is_loaded_in_turns(lab: CoordinatorLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a millisecond here."""
    for _ in range(50):
        lab.add("a", 1)
        lab.turn()

    def monotonic_ms() -> float:
        lab.time.elapsed_ms += 1
        return lab.time.elapsed_ms

    monkeypatch.setattr(lab.time, "monotonic_ms", monotonic_ms)
    lab.begin()
    turns = 0
    while lab.context.state is CoordinatorState.LOADING:
        lab.time.step()
        turns += 1
    assert lab.context.shard.sums == {"a": 50}
    assert turns > 10


def test_a_log_whose_batches_cannot_be_told_apart_has_no_coordinator_here(lab: CoordinatorLab) -> None:
    lab.add("a", 1)
    lab.turn()
    lab.log.file.data[8:12] = b"\x7f\xff\xff\xff"  # the length of the first batch
    lab.begin()
    lab.turn(50)
    assert lab.add("a", 1).code is ErrorCode.NOT_COORDINATOR


def test_a_shard_that_cannot_start_does_not_coordinate(lab: CoordinatorLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sums, "start", lambda shard, now_ms: 1 / 0)
    lab.begin()
    lab.turn(50)
    assert lab.add("a", 1).code is ErrorCode.NOT_COORDINATOR


def test_a_cold_log_is_read_by_a_thread(lab: CoordinatorLab) -> None:
    for _ in range(20):
        lab.add("a", 1)
        lab.turn()
    lab.log.file.is_cold = True
    lab.begin()
    assert lab.load().shard.sums == {"a": 20}


def test_what_was_loaded_but_is_not_committed_is_not_told(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    lab.add("a", 1)
    lab.turn()
    lab.begin()
    lab.load()
    asked = lab.read("a")
    assert not asked.is_answered
    lab.log.replicate()
    assert asked.response == 1


def test_a_batch_is_kept_below_the_limit(lab: CoordinatorLab) -> None:
    lab.log.batch_bytes_max = 1_000
    asked = [lab.add(f"key-{number}", 1) for number in range(100)]
    lab.turn()
    assert all(one.response == 1 for one in asked)
    assert lab.log.append_count > 5


def test_a_decision_that_fits_into_no_batch_is_refused(lab: CoordinatorLab) -> None:
    lab.log.batch_bytes_max = 1_000
    asked = lab.add("k" * 2_000, 1)
    lab.turn(50)
    assert asked.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert lab.context.shard.sums == {}


def test_what_rests_on_a_failed_append_is_refused_with_it(lab: CoordinatorLab) -> None:
    """The second decision makes the context write the first, which fails: it must not reach the new shard."""
    lab.log.batch_bytes_max = 400
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    asked = [lab.add("a" * 100, 1), lab.add("b" * 100, 1)]
    lab.log.append_error = None
    lab.turn(50)
    assert [one.code for one in asked] == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
    assert lab.context.state is CoordinatorState.ACTIVE
    assert lab.context.shard.sums == {}
    assert lab.log.log_end_offset == 0


def test_a_decision_that_is_too_large_disturbs_nobody_else(lab: CoordinatorLab) -> None:
    lab.log.batch_bytes_max = 1_000
    parked = Asked()
    lab.context.shard.parked.append(parked)
    other, large = lab.add("a", 1), lab.add("k" * 2_000, 1)
    assert large.code is ErrorCode.UNKNOWN_SERVER_ERROR
    lab.turn()
    assert other.response == 1
    assert not parked.is_answered
    assert lab.context.state is CoordinatorState.ACTIVE


def test_records_that_stand_for_themselves_may_be_more_than_a_batch_holds(lab: CoordinatorLab) -> None:
    lab.log.batch_bytes_max = 1_000
    asked = Asked()
    records = [StateRecord(b"key-%d" % number, b"1") for number in range(100)]
    lab.context.write(lambda shard, _: CoordinatorResult(records, "done", is_divisible=True), asked)
    lab.turn()
    assert asked.response == "done"
    assert len(lab.context.shard.sums) == 100
    assert lab.log.append_count > 4


def test_who_cannot_take_an_answer_keeps_nobody_else_from_theirs(lab: CoordinatorLab) -> None:
    class Broken(Asked):
        def answer(self, response: object) -> None:
            raise ValueError("cannot be encoded")

    broken = Broken()
    lab.context.write(lambda shard, _: shard.add("a", 1), broken)
    other = lab.add("a", 1)
    lab.turn()
    assert broken.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert other.response == 2


# -- effects


def with_effect(lab: CoordinatorLab, effect: str) -> Asked:
    asked = Asked()
    decision = CoordinatorResult([StateRecord(b"a", b"1")], 1, [effect])
    lab.context.write(lambda shard, _: decision, asked)
    return asked


def test_effects_follow_the_answer_once_their_records_are_committed(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    asked = with_effect(lab, "first")
    with_effect(lab, "second")
    lab.turn(100)
    assert lab.performed == []
    lab.log.replicate()
    assert (asked.response, lab.performed) == (1, ["first", "second"])


def test_effects_of_what_is_not_written_or_not_committed_in_time_do_not_happen(lab: CoordinatorLab) -> None:
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    with_effect(lab, "not written")
    lab.turn(50)
    lab.log.append_error, lab.log.is_replicated = None, False
    with_effect(lab, "late")
    lab.turn(5_100)
    lab.log.replicate()
    assert lab.performed == []


def test_a_coordinator_that_is_no_longer_in_charge_has_no_effects(lab: CoordinatorLab) -> None:
    lab.log.is_replicated = False
    with_effect(lab, "markers")
    lab.turn()
    lab.context.stop()
    lab.log.replicate()
    assert lab.performed == []


# -- transactions


def test_a_marker_behind_a_failed_append_is_refused_with_it(lab: CoordinatorLab) -> None:
    lab.add("a", 5, PRODUCER)
    appends = lab.log.append_count
    asked, ended = lab.add("b", 1), Asked()
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    lab.context.end_transaction(PRODUCER, 3, True, ended)
    lab.log.append_error = None
    assert asked.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ended.code is ErrorCode.NOT_COORDINATOR, "it is sent again once the shard is loaded"
    assert lab.log.append_count == appends
    lab.turn(50)
    assert lab.context.state is CoordinatorState.ACTIVE
    assert lab.context.shard.sums == {}


def test_records_of_a_transaction_that_fit_into_no_batch_are_refused(lab: CoordinatorLab) -> None:
    lab.log.batch_bytes_max = 1_000
    other, large = lab.add("a", 1), lab.add("k" * 2_000, 1, PRODUCER)
    assert large.code is ErrorCode.UNKNOWN_SERVER_ERROR
    lab.turn()
    assert other.response == 1
    assert lab.log.append_count == 1


@pytest.mark.parametrize("is_committed", [True, False])
def test_records_of_a_transaction_count_with_its_marker(lab: CoordinatorLab, is_committed: bool) -> None:
    plain = lab.add("a", 1)
    asked = lab.add("a", 5, PRODUCER)
    assert plain.response == 1, "what came before is in the log before"
    assert asked.response == 6
    assert lab.context.shard.sums == {"a": 1}
    ended = Asked()
    lab.context.end_transaction(PRODUCER, 3, is_committed, ended)
    assert ended.error is None
    expected = {"a": 6 if is_committed else 1}
    assert lab.context.shard.sums == expected
    lab.begin()
    assert lab.load().shard.sums == expected


def test_a_producer_that_the_log_refuses_does_no_harm_to_others(lab: CoordinatorLab) -> None:
    plain = lab.add("a", 1)
    lab.turn()
    lab.log.append_error = InvalidProducerEpochError("an older epoch")
    refused = lab.add("a", 5, PRODUCER)
    ended = Asked()
    lab.context.end_transaction(PRODUCER, 3, True, ended)
    assert refused.code is ended.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert plain.response == 1
    assert lab.context.state is CoordinatorState.ACTIVE
    assert lab.context.shard.sums == {"a": 1}


# -- timers


def responding(shard: Sums, asked: Asked) -> CoordinatorResult[StateRecord, None]:
    """As a timer of a group answers members that wait."""
    decision = shard.add("a", 1)
    return CoordinatorResult(decision.records, effects=[Respond(asked, decision.answer)])


def test_a_timer_decides_like_a_request(lab: CoordinatorLab) -> None:
    asked = Asked()
    lab.context.shard.parameters.timers.schedule("t", 100, lambda now_ms: responding(lab.context.shard, asked))
    lab.turn(90)
    assert not asked.is_answered
    lab.turn(30)
    assert asked.response == 1


def test_a_timer_waits_until_its_decision_can_be_written(lab: CoordinatorLab) -> None:
    asked = Asked()
    shard = lab.context.shard
    shard.parameters.timers.schedule("t", 100, lambda now_ms: responding(shard, asked))
    lab.log.is_writable, lab.log.append_error = False, NotEnoughReplicasError("one is not enough")
    lab.turn(3_000)
    assert not asked.is_answered
    assert lab.context.shard is shard
    lab.log.is_writable, lab.log.append_error = True, None
    lab.turn(600)
    assert asked.response == 1


def test_a_timer_whose_decision_cannot_be_written_is_not_lost(lab: CoordinatorLab) -> None:
    """The timers are created again with the shard: none may have fired without effect."""
    asked = Asked()
    shard = lab.context.shard
    shard.parameters.timers.schedule("t", 100, lambda now_ms: responding(shard, asked))
    lab.log.append_error = NotEnoughReplicasError("one is not enough")
    lab.turn(200)
    assert asked.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert lab.context.shard is not shard


def test_a_timer_that_is_put_off_fires_once_and_later(lab: CoordinatorLab) -> None:
    fired: list[int] = []

    def due(now_ms: int) -> CoordinatorResult[StateRecord, None]:
        fired.append(int(lab.time.elapsed_ms))
        return CoordinatorResult()

    timers = lab.context.shard.parameters.timers
    start_ms = int(lab.time.elapsed_ms)
    for _ in range(10):
        timers.schedule("t", 100, due)
        lab.turn(50)
    lab.turn(200)
    assert len(fired) == 1
    assert 550 <= fired[0] - start_ms <= 570


def test_a_timer_can_be_brought_forward_and_cancelled(lab: CoordinatorLab) -> None:
    fired: list[str] = []
    timers = lab.context.shard.parameters.timers

    def due(name: str) -> CoordinatorResult[StateRecord, None]:
        fired.append(name)
        return CoordinatorResult()

    timers.schedule("t", 10_000, lambda now_ms: due("late"))
    timers.schedule("t", 100, lambda now_ms: due("soon"))
    timers.schedule("u", 100, lambda now_ms: due("never"))
    timers.cancel("u")
    lab.turn(20_000)
    assert fired == ["soon"]


def test_no_timer_outlives_its_shard(lab: CoordinatorLab) -> None:
    fired: list[int] = []

    def due(now_ms: int) -> CoordinatorResult[StateRecord, None]:
        fired.append(now_ms)
        return CoordinatorResult()

    lab.context.shard.parameters.timers.schedule("t", 100, due)
    lab.context.stop()
    lab.turn(1_000)
    assert not fired


def test_effects_of_a_large_decision_are_carried_out_in_several_turns() -> None:
    """The responses to 2,000 members of a classic group once took 50 ms in one turn."""
    lab = CoordinatorLab()
    lab.load()
    asked = [Asked() for _ in range(2 * EFFECTS_PER_TURN + 1)]
    effects = [Respond(each, number + 1) for number, each in enumerate(asked)]
    lab.context.write(lambda shard, _: CoordinatorResult(effects=effects), Asked())
    assert sum(each.is_answered for each in asked) == EFFECTS_PER_TURN
    lab.context.stop()
    lab.turn()
    assert [each.response for each in asked] == list(range(1, len(asked) + 1)), "the decision was committed"
