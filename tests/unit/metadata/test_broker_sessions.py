from metadata_clusters import cluster
from partition_changes import fence, replicated

from sskafka.metadata.brokers.sessions import BrokerSessions


def test_a_broker_silent_for_the_timeout_expires() -> None:
    image, sessions = cluster(2), BrokerSessions(100)
    sessions.take_over(image, 1000)
    assert sessions.expired(image, 1099) == []
    sessions.touch(2, image.brokers[2].epoch, 1050)
    assert sessions.expired(image, 1100) == [1]
    assert sessions.expired(image, 1150) == [1, 2]


def test_a_fenced_broker_does_not_expire_again_but_may_be_alive() -> None:
    image, sessions = replicated(), BrokerSessions(100)
    sessions.take_over(image, 0)
    fence(image, 1)
    assert sessions.expired(image, 100) == [2, 3]
    sessions.touch(1, image.brokers[1].epoch, 90)
    assert (sessions.may_be_alive(1, 189), sessions.may_be_alive(1, 190)) == (True, False)


def test_a_new_controller_gives_unfenced_brokers_a_full_timeout() -> None:
    image, sessions = replicated(), BrokerSessions(100)
    fence(image, 3)
    sessions.take_over(image, 5000)
    assert [sessions.may_be_alive(number, 5001) for number in (1, 2, 3)] == [True, True, False]


def test_a_broker_that_was_told_to_stop_has_no_session() -> None:
    image, sessions = cluster(1), BrokerSessions(100)
    sessions.take_over(image, 0)
    sessions.end(1)
    sessions.end(1)
    assert not sessions.may_be_alive(1, 1)


def test_sessions_are_extended_by_a_pause_of_the_controller() -> None:
    image, sessions = cluster(2), BrokerSessions(100)
    sessions.take_over(image, 0)
    sessions.extend(5000)
    assert sessions.expired(image, 5099) == []
    assert sessions.expired(image, 5100) == [1, 2]


def test_replayed_offsets_belong_to_the_current_epoch() -> None:
    image, sessions = cluster(2), BrokerSessions(100)
    for broker in image.brokers.values():
        sessions.touch(broker.id, broker.epoch, 0, metadata_offset=50)
    assert sessions.all_have_replayed(image, 50)
    assert not sessions.all_have_replayed(image, 51)
    sessions.touch(1, image.brokers[1].epoch, 1, metadata_offset=40)
    assert sessions.all_have_replayed(image, 50)
    sessions.touch(1, image.brokers[1].epoch + 1, 1, metadata_offset=40)
    assert not sessions.all_have_replayed(image, 50)


def test_an_unknown_unfenced_broker_gets_a_full_timeout() -> None:
    image, sessions = cluster(1), BrokerSessions(100)
    assert sessions.expired(image, 700) == []
    assert sessions.expired(image, 800) == [1]
