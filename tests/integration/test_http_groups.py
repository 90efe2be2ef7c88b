"""Groups over HTTP: which there are, what happened in one, and who fetches what."""

from broker_process import StartBroker
from clients import TIMEOUT_S, Message, confluent_consumer, confluent_producer, confluent_send
from group_fixtures import GROUP_SETTINGS
from http_client import HttpClient
from waiting import wait_until


def test_groups_their_timeline_and_their_readers(start_broker: StartBroker) -> None:
    broker = start_broker({**GROUP_SETTINGS, "http.listener": "127.0.0.1:0"})
    http = HttpClient(broker.http)
    confluent_send(confluent_producer(broker.bootstrap), "orders", [Message(b"1")], 0)
    consumer = confluent_consumer(broker.bootstrap, group_id="team", client_id="reader-1", auto_offset_reset="earliest")
    consumer.subscribe(["orders"])
    wait_until(lambda: consumer.poll(0.1) is not None, "a record", TIMEOUT_S)
    status, answer = http.get("/groups/v1/groups")
    assert (status, [(group["group_id"], group["kind"]) for group in answer["groups"]]) == (200, [("team", "classic")])
    status, answer = http.get("/groups/v1/groups/team/timeline")
    assert status == 200
    joined = next(event for event in answer["events"] if event["event"] == "joined")
    assert (joined["client_id"], joined["host"]) == ("reader-1", "/127.0.0.1")
    status, answer = http.get("/groups/v1/readers?topic=orders")
    assert (status, [reader["client_id"] for reader in answer["readers"]]) == (200, ["reader-1"])
    consumer.close()
    http.close()


def test_the_timeline_of_an_unknown_group_is_not_found(start_broker: StartBroker) -> None:
    http = HttpClient(start_broker({**GROUP_SETTINGS, "http.listener": "127.0.0.1:0"}).http)
    status, answer = http.get("/groups/v1/groups/nobody/timeline")
    assert status == 404
    assert "nobody" in answer["detail"]
    http.close()
