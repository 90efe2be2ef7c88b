import pytest
from metadata_clusters import cluster

from sskafka.metadata.brokers.presence import TAKEOVER_GRACE_MS, BrokerPresence, ProbeResult
from sskafka.metadata.brokers.sessions import BrokerSessions

EPOCH = 7
HEARTBEAT_MS = 2000


def presence(now_ms: int = 0) -> BrokerPresence:
    known = BrokerPresence(HEARTBEAT_MS)
    known.take_over(now_ms)
    return known


def reached() -> BrokerPresence:
    known = presence()
    known.heard(1, EPOCH, 10)
    known.found(1, EPOCH, ProbeResult.ANSWERED, 20)
    return known


@pytest.mark.parametrize(
    ("result", "is_gone"),
    [
        (ProbeResult.REFUSED, True),
        (ProbeResult.REPLACED, True),
        (ProbeResult.UNSURE, False),
        (ProbeResult.ANSWERED, False),
    ],
)
def test_what_proves_that_a_broker_has_ended(result: ProbeResult, is_gone: bool) -> None:
    known = reached()
    known.found(1, EPOCH, result, 100)
    assert known.is_gone(1, EPOCH, 101) is is_gone


def test_an_address_that_never_answered_proves_nothing() -> None:
    known = presence()
    known.heard(1, EPOCH, 10)
    known.found(1, EPOCH, ProbeResult.REFUSED, 100)
    assert not known.is_gone(1, EPOCH, 1_000_000)


def test_a_later_heartbeat_overrides_a_refused_connection() -> None:
    known = reached()
    known.found(1, EPOCH, ProbeResult.REFUSED, 100)
    known.heard(1, EPOCH, 101)
    assert not known.is_gone(1, EPOCH, 102)


def test_a_probe_older_than_a_heartbeat_proves_nothing() -> None:
    known = reached()
    known.heard(1, EPOCH, 101)
    known.found(1, EPOCH, ProbeResult.REFUSED, began_ms=100)
    assert not known.is_gone(1, EPOCH, 1_000_000)


def test_after_a_contradiction_refusals_count_after_two_missed_heartbeats() -> None:
    """A live broker whose address refuses connections is not fenced repeatedly."""
    known = reached()
    known.found(1, EPOCH, ProbeResult.REFUSED, 100)
    known.heard(1, EPOCH, 101)
    known.found(1, EPOCH, ProbeResult.REFUSED, 150)
    assert not known.is_gone(1, EPOCH, 101 + 2 * HEARTBEAT_MS - 1)
    assert known.is_gone(1, EPOCH, 101 + 2 * HEARTBEAT_MS)


def test_a_result_belongs_to_one_registration() -> None:
    known = reached()
    known.found(1, EPOCH, ProbeResult.REFUSED, 100)
    assert not known.is_gone(1, EPOCH + 1, 101)
    known.heard(1, EPOCH + 1, 110)
    known.found(1, EPOCH, ProbeResult.REFUSED, 120)
    assert not known.is_gone(1, EPOCH, 130)
    assert not known.is_gone(1, EPOCH + 1, 130)
    assert not known.was_reached(1, EPOCH + 1)


def test_a_new_controller_keeps_its_earlier_results() -> None:
    known = reached()
    known.found(1, EPOCH, ProbeResult.REFUSED, 100)
    known.take_over(5000)
    assert known.is_gone(1, EPOCH, 5000)


def test_a_new_controller_gives_an_unreached_voter_time_to_report() -> None:
    known = presence(5000)
    known.found(1, EPOCH, ProbeResult.REFUSED, 5001, at_voter_address=True)
    known.found(2, EPOCH, ProbeResult.REFUSED, 5001, at_voter_address=True)
    known.heard(2, EPOCH, 5500)
    now_ms = 5000 + TAKEOVER_GRACE_MS
    assert not known.is_gone(1, EPOCH, now_ms - 1)
    assert known.is_gone(1, EPOCH, now_ms)
    known.found(2, EPOCH, ProbeResult.REFUSED, 5600, at_voter_address=True)
    assert not known.is_gone(2, EPOCH, 5500 + 2 * HEARTBEAT_MS - 1), "it reports: its address as a voter must be wrong"


def test_another_process_at_the_first_probe_does_not_replace_a_broker() -> None:
    """Two live processes have the same id and address, and the address reaches the second one."""
    known = presence()
    known.heard(1, EPOCH, 10)
    known.found(1, EPOCH, ProbeResult.REPLACED, 20)
    assert not known.is_gone(1, EPOCH, 1_000_000)


def test_brokers_that_are_not_registered_are_forgotten() -> None:
    known, image = BrokerPresence(), cluster(1)
    known.found(1, EPOCH, ProbeResult.ANSWERED, 0)
    known.found(2, EPOCH, ProbeResult.ANSWERED, 0)
    known.retain(image)
    assert known.was_reached(1, EPOCH)
    assert not known.was_reached(2, EPOCH)


def test_a_session_ends_with_its_broker() -> None:
    image, known = cluster(2), BrokerPresence(HEARTBEAT_MS)
    sessions = BrokerSessions(6000, known)
    sessions.take_over(image, 0)
    epochs = {broker.id: broker.epoch for broker in image.brokers.values()}
    for broker_id, epoch in epochs.items():
        sessions.touch(broker_id, epoch, 1, metadata_offset=50)
        known.found(broker_id, epoch, ProbeResult.ANSWERED, 1)
    assert sessions.expired(image, 100) == []
    known.found(1, epochs[1], ProbeResult.REFUSED, 100)
    assert sessions.expired(image, 100) == [1]
    assert not sessions.is_alive(1, 100), "its successor need not wait"
    assert sessions.is_alive(2, 100)
    sessions.touch(1, epochs[1], 101)
    assert sessions.expired(image, 101) == []


def test_a_successor_has_its_own_session() -> None:
    image, known = cluster(1), BrokerPresence(HEARTBEAT_MS)
    sessions = BrokerSessions(6000, known)
    epoch = image.brokers[1].epoch
    sessions.touch(1, epoch, 1)
    known.found(1, epoch, ProbeResult.ANSWERED, 1)
    known.found(1, epoch, ProbeResult.REFUSED, 100)
    sessions.touch(1, epoch + 5, 101)
    assert sessions.expired(image, 102) == []
    assert sessions.may_be_alive(1, 102)


def test_a_broker_that_answered_a_probe_is_not_replaced_before_it_contacts_a_new_controller() -> None:
    image, presence = cluster(2), BrokerPresence()
    sessions = BrokerSessions(9000, presence)
    epoch = image.brokers[1].epoch
    presence.found(1, epoch, ProbeResult.ANSWERED, 50)
    sessions.take_over(image, 100)
    assert sessions.is_alive(1, 101)
    assert not sessions.is_alive(2, 101), "nothing was heard of it: a process with its id need not wait"
    presence.found(1, epoch, ProbeResult.REFUSED, 150)
    assert not sessions.is_alive(1, 151)
