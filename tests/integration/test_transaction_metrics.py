"""What /metrics tells of the transactions that a broker coordinates."""

from broker_process import StartBroker
from http_client import HttpClient
from transaction_wire import WireProducer, wait_for_state
from waiting import wait_until
from wire_connection import Connection

PREFIX = "kafka_coordinator_transaction_"
SETTINGS = {
    "http.listener": "127.0.0.1:0",
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}


def metrics(client: HttpClient) -> dict[str, float]:
    lines = [line for line in client.http.get("/metrics").text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_open_committed_aborted_and_timed_out(start_broker: StartBroker) -> None:
    broker = start_broker(SETTINGS)
    client = HttpClient(broker.http)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("t")
        assert PREFIX + "committed_total" not in metrics(client), "nobody has used any"
        for name, commit in (("one", True), ("two", True), ("three", False)):
            producer = WireProducer(connection, name).initialize()
            producer.write("t", b"v")
            producer.end(commit=commit)
        forgotten = WireProducer(connection, "forgotten").initialize(timeout_ms=300)
        forgotten.write("t", b"v")
        wait_for_state(connection, "forgotten", "CompleteAbort")
        still_open = WireProducer(connection, "open").initialize()
        still_open.write("t", b"v")
        wait_until(lambda: metrics(client)[PREFIX + "markers_pending"] == 0, "all markers are written")
        seen = metrics(client)
    client.close()
    assert seen[PREFIX + "committed_total"] == 2
    assert seen[PREFIX + "aborted_total"] == 2
    assert seen[PREFIX + "timedout_total"] == 1
    assert seen[PREFIX + 'transactions{state="Ongoing"}'] == 1
    assert seen[PREFIX + 'transactions{state="CompleteCommit"}'] == 2
    coordinator = "kafka_server_transaction_coordinator_metrics_"
    assert seen[coordinator + 'num_partitions{state="active"}'] == 2
    assert seen[coordinator + 'num_partitions{state="loading"}'] == 0
    assert seen[coordinator + "partition_load_total"] == 2
    assert seen[coordinator + "partition_load_time_max"] >= seen[coordinator + "partition_load_time_avg"]
