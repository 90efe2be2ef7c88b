from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.options import Guarantee, sink_options, source_options

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def test_defaults_of_a_stream_and_of_a_batch() -> None:
    stream, batch = source_options(BASE, streaming=True), source_options(BASE, streaming=False)
    assert (stream.starting.offsets, batch.starting.offsets, batch.ending.offsets) == ("latest", "earliest", "latest")
    assert stream.fail_on_data_loss
    assert stream.max_offsets_per_trigger is None
    assert stream.subscription.topics == ("orders",)
    assert stream.group_id == "spark-sskafka-orders"


def test_names_are_found_whatever_their_case() -> None:
    options = source_options({**BASE, "MAXOFFSETSPERTRIGGER": "7", "failondataloss": "False"}, streaming=True)
    assert (options.max_offsets_per_trigger, options.fail_on_data_loss) == (7, False)


def test_offsets_and_times() -> None:
    options = source_options(
        {**BASE, "startingOffsets": '{"orders": {"0": -2}}', "endingTimestamp": "17"}, streaming=False
    )
    assert options.starting.offsets == {TopicPartition("orders", 0): -2}
    assert options.ending.timestamp == 17


def test_client_properties_lose_their_prefix() -> None:
    options = source_options({**BASE, "kafka.isolation.level": "read_committed"}, streaming=True)
    assert options.consumer.isolation == 1
    assert options.consumer.max_partition_fetch_bytes > 1024 * 1024


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"subscribe": "orders"}, "kafka.bootstrap.servers: is missing"),
        ({"kafka.bootstrap.servers": "x:1"}, "one of them is needed"),
        ({**BASE, "subscribePattern": "a.*"}, "only one of them"),
        ({**BASE, "startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({**BASE, "maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({**BASE, "minOffsetsPerTrigger": "8", "maxOffsetsPerTrigger": "7"}, "8 is more than maxOffsetsPerTrigger, 7"),
        ({**BASE, "maxTriggerDelay": "soon"}, "not a time such as"),
        ({**BASE, "maxTriggerDelay": "5 fortnights"}, "not a time such as"),
        ({**BASE, "startingOffsetsByTimestampStrategy": "first"}, "neither error nor latest"),
        ({"kafka.bootstrap.servers": "x:1", "subscribe": " ,"}, "names no topic"),
        ({**BASE, "failOnDataLoss": "maybe"}, "neither true nor false"),
        ({**BASE, "endingOffsets": "latest"}, "a stream has no end"),
        ({**BASE, "kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({**BASE, "kafka.security.protocol": "SSH"}, r"security.protocol='SSH': expected one of PLAINTEXT"),
        ({**BASE, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "GSSAPI"}, r"sasl.mechanism='GSSAPI'"),
        ({**BASE, "kafka.ssl.truststore.locatoin": "x"}, "did you mean ssl.truststore.location"),
        ({**BASE, "kafka.isolation.levl": "read_committed"}, r"kafka.isolation.levl: .* did you mean isolation.level"),
    ],
)
def test_what_cannot_be_used_names_the_option(given: dict[str, str], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        source_options(given, streaming=True)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets"),
        ({"startingOffsets": '{"orders": {"0": 3, "1": -1}}'}, "startingOffsets"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets"),
        (
            {"startingOffsets": '{"orders": {"0": 5}}', "endingOffsets": '{"orders": {"0": 3}}'},
            "orders-0 would begin at 5 and end at 3",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"orders": {"0": 5}}',
                "endingOffsetsByTimestamp": '{"orders": {"0": 3}}',
            },
            "startingOffsetsByTimestamp",
        ),
    ],
)
def test_a_batch_that_would_read_nothing_is_refused(given: dict[str, str], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        source_options({**BASE, **given}, streaming=False)


def test_a_timestamp_counts_before_offsets() -> None:
    given = {"startingTimestamp": "3", "startingOffsets": "latest", "endingOffsets": '{"orders": {"0": 3}}'}
    assert source_options({**BASE, **given}, streaming=False).starting.timestamp == 3


@pytest.mark.parametrize(
    ("text", "expected"), [("15m", 900_000), ("2 min", 120_000), ("30S", 30_000), ("250", 250), ("1h", 3_600_000)]
)
def test_times_are_written_as_spark_writes_them(text: str, expected: int) -> None:
    assert source_options({**BASE, "maxTriggerDelay": text}, streaming=True).max_trigger_delay_ms == expected


def test_what_nobody_knows_is_told_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    given = {"colour": "blue", "kafka.max.poll.records": "7", "fetchOffset.numRetries": "1", "minPartitions": "3"}
    of_groups = {"kafka.session.timeout.ms": "6000", "kafka.group.id": "g"}
    source_options({**BASE, **given, **of_groups}, streaming=True)
    ignored = "colour, kafka.max.poll.records, kafka.session.timeout.ms"
    assert caplog.messages == [f"unknown options are ignored: {ignored}"]


def test_plaintext_may_be_said() -> None:
    options = source_options({**BASE, "kafka.security.protocol": "plaintext"}, streaming=True)
    assert options.connection.client_id == "sskafka-spark"


@pytest.mark.parametrize("make", [partial(source_options, streaming=True), sink_options])
def test_secrets_are_not_shown(make: Callable[[dict[str, str]], Any], caplog: pytest.LogCaptureFixture) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="geheim";'
    secured = {**BASE, "kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    options = make({**secured, "kafka.sasl.jaas.config": jaas, "kafka.ssl.key.password": "geheim", "colour": "blue"})
    assert options.connection.sasl_jaas_config == jaas
    with pytest.raises(OptionError) as refused:
        make({**secured, "kafka.sasl.jaas.config": jaas.replace(";", "")})
    assert "geheim" not in f"{options!r} {options.connection!r} {refused.value} {caplog.text}"


# Names of Kafka's own clients that mean nothing here: they must not be taken for misspellings.
KAFKAS_OWN = """
auto.commit.interval.ms client.dns.lookup connections.max.idle.ms exclude.internal.topics group.instance.id
heartbeat.interval.ms max.poll.interval.ms max.poll.records metric.reporters metrics.num.samples
partition.assignment.strategy receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms send.buffer.bytes
session.timeout.ms socket.connection.setup.timeout.max.ms max.block.ms max.in.flight.requests.per.connection
metadata.max.idle.ms partitioner.class partitioner.ignore.keys transaction.timeout.ms compression.zstd.level
"""


@pytest.mark.parametrize("name", KAFKAS_OWN.split())
def test_properties_of_kafkas_clients_are_let_through(name: str) -> None:
    source_options({**BASE, f"kafka.{name}": "7"}, streaming=True)


def test_a_sink_is_exactly_once_unless_told_otherwise() -> None:
    base = {"kafka.bootstrap.servers": "localhost:9092", "topic": "out"}
    assert sink_options(base).guarantee is Guarantee.EXACTLY_ONCE
    assert sink_options({**base, "deliveryGuarantee": "at-least-once"}).guarantee is Guarantee.AT_LEAST_ONCE
    with pytest.raises(OptionError, match="deliveryGuarantee"):
        sink_options({**base, "deliveryGuarantee": "exactly"})
    with pytest.raises(OptionError, match="topic"):
        sink_options({**base, "topic": "a b"})
