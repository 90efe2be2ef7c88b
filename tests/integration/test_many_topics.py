"""Hundreds of topics on one broker: it stops and starts in seconds, and says how far it has come."""

import time

import pytest
from broker_process import StartBroker
from wire_connection import Connection, values_batch, values_in

from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

pytestmark = pytest.mark.long

TOPICS = 300
STOP_SECONDS_MAX = 12.0
"""One sync after the other, this takes longer on an idle machine, and far longer on a busy one."""


def test_a_broker_with_many_topics_stops_and_starts_in_time(start_broker: StartBroker) -> None:
    broker = start_broker()
    wanted = [CreatableTopic(f"topic-{number}", 1, 1) for number in range(TOPICS)]
    with Connection(broker.bootstrap) as connection:
        answer = connection.call(CreateTopicsRequest(topics=wanted, timeout_ms=15_000), 7)
        assert {topic.error_code for topic in answer.topics} == {0}
        for topic in wanted:
            assert connection.produce(topic.name, values_batch(b"value")).error_code == 0
    began_at = time.monotonic()
    broker.stop()
    assert time.monotonic() - began_at < STOP_SECONDS_MAX
    for unclean in (False, True):
        if unclean:
            broker.restart(unclean=True)
        else:
            broker.start()
        with Connection(broker.bootstrap) as connection:
            for topic in wanted[::50]:
                assert values_in(connection.fetch(topic.name)) == [b"value"]
