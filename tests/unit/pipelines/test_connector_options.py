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
        ({**BASE, "failOnDataLoss": "maybe"}, "neither true nor false"),
        ({**BASE, "endingOffsets": "latest"}, "a stream has no end"),
        ({**BASE, "kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({**BASE, "kafka.security.protocol": "SASL_SSL"}, "not supported yet"),
    ],
)
def test_what_cannot_be_used_names_the_option(given: dict[str, str], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        source_options(given, streaming=True)


def test_a_batch_does_not_begin_at_the_end() -> None:
    with pytest.raises(OptionError, match="startingOffsets"):
        source_options({**BASE, "startingOffsets": "latest"}, streaming=False)


def test_a_sink_is_exactly_once_unless_told_otherwise() -> None:
    base = {"kafka.bootstrap.servers": "localhost:9092", "topic": "out"}
    assert sink_options(base).guarantee is Guarantee.EXACTLY_ONCE
    assert sink_options({**base, "deliveryGuarantee": "at-least-once"}).guarantee is Guarantee.AT_LEAST_ONCE
    with pytest.raises(OptionError, match="deliveryGuarantee"):
        sink_options({**base, "deliveryGuarantee": "exactly"})
    with pytest.raises(OptionError, match="topic"):
        sink_options({**base, "topic": "a b"})
