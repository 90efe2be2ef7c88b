"""The server of ADR-0011 on one broker: its frames, its response to malformed frames, and where records go."""

import threading
from collections.abc import Iterator

import pytest
from adr_connection import AdrConnection, adr_address
from broker_process import BrokerProcess, StartBroker
from waiting import wait_until

import sskafka
from sskafka.client.adr import AdrClient, AdrError
from sskafka.records.partitioner import KEY_HASHES, partition_for_key
from sskafka.wire.adr import Consume, Consumed, Failure, Produce, Produced, StoredMessage, encode_request

ADR_SERVER = {"adr.listener": "127.0.0.1:0", "broker.number-of-partitions": 3}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One for all tests that leave it running; they use topics of their own."""
    broker = BrokerProcess(tmp_path_factory.mktemp("adr-server"), ADR_SERVER)
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture
def address(broker: BrokerProcess) -> str:
    return adr_address(broker)


def spread(client: AdrClient, topic: str, count: int = 3) -> list[int]:
    """Messages in each partition."""
    return [len(client.consume(topic, partition, 0, 10_000).messages) for partition in range(count)]


# -- frames


def test_every_frame_as_bytes(address: str) -> None:
    with AdrConnection(address) as client:
        produce = "03 00000001 74 00000002 6b31 00000004 64617461"
        partition = partition_for_key(b"k1", 3)
        answer = client.exchange(framed(produce))
        assert answer == framed(f"04 01 0000000000000000 {partition:08x}")
        consume = f"01 00000001 74 {partition:08x} 0000000000000000 00000064"
        assert client.exchange(framed(consume)) == framed(
            "02 01 0000000000000001 00000001 00000004 0000000000000000 64617461"
        )
        assert client.exchange(framed("05")) == framed("06 01")
        negative = client.exchange(framed(f"01 00000001 74 {partition:08x} ffffffffffffffff 00000001"))
        text = b"the offset -1 is negative"
        assert negative == framed("02 00" + f"{len(text):08x}" + text.hex())
        refused = client.exchange(framed("03 00000001 2f 00000000 00000000"))
        assert refused[4:6] == b"\x04\0"
        assert refused[-4:] == b"\xff\xff\xff\xff"


def framed(body: str) -> bytes:
    data = bytes.fromhex(body)
    return (len(data) + 4).to_bytes(4, "big") + data


def test_frames_may_arrive_byte_by_byte_or_many_at_once(address: str) -> None:
    frame = framed("03 00000001 75 00000001 6b 00000001 78")
    with AdrConnection(address) as client:
        for byte in frame:
            client.send(bytes([byte]))
        first = client.read_frame()
        client.send(frame * 20)
        offsets = [int.from_bytes(answer[6:14], "big") for answer in (first, *(client.read_frame() for _ in range(20)))]
        assert offsets == list(range(21))


@pytest.mark.parametrize(
    ("frame", "answer_start"),
    [
        ("00000005 07", "07 00"),
        ("00000005 00", "00 00"),
        ("00000005 02", "02 00"),
        ("00000005 ff", "ff 00"),
        ("00000004 03", "04 00"),
        ("00000000 01", "02 00"),
        ("ffffffff 05", "06 00"),
        ("7fffffff 03", "04 00"),
        ("00000009 03 7fffffff", "04 00"),
        ("00000009 03 ffffffff", "04 00"),
        ("0000000d 03 00000000 7fffffff", "04 00"),
        ("0000000a 03 00000001 ff", "04 00"),
        ("00000006 05 00", "06 00"),
        ("0000000b 01 00000001 74 00", "02 00"),
    ],
)
def test_a_frame_that_is_none_is_answered_and_ends_its_connection(address: str, frame: str, answer_start: str) -> None:
    with AdrConnection(address) as client:
        client.send(bytes.fromhex(frame))
        answer = client.rest()
        assert int.from_bytes(answer[:4], "big") == len(answer)
        assert answer[4:6] == bytes.fromhex(answer_start)
    with AdrConnection(address) as client:
        assert client.exchange(framed("05")) == framed("06 01"), "others are served"


def test_a_connection_that_ends_in_the_middle_of_a_frame_writes_nothing(address: str, topic: str) -> None:
    frame = encode_request(Produce(topic, b"k", b"abc"))
    with AdrConnection(address) as client:
        assert isinstance(client.ask(Produce(topic, b"k", b"whole")), Produced)
    for end in range(len(frame)):
        with AdrConnection(address) as client:
            client.send(frame[:end])
            client.end()
            assert client.rest() == b""
    with AdrClient(address) as client:
        assert sum(spread(client, topic)) == 1


def test_large_frames_that_stop_arriving_keep_nobody_waiting(address: str, topic: str) -> None:
    large = encode_request(Produce(topic, b"k", b"x" * 2_000_000))
    stuck = [AdrConnection(address) for _ in range(4)]
    for client in stuck:
        client.send(large[:100])
    with AdrConnection(address) as other, AdrConnection(address) as small:
        assert b"max.message.bytes" in other.exchange(large)
        assert isinstance(small.ask(Produce(topic, b"k", b"x")), Produced)
        for client in stuck:
            client.send(large[100:])
            assert b"max.message.bytes" in client.read_frame()
    for client in stuck:
        client.close()


# -- requests that cannot be carried out


def test_what_is_refused_leaves_the_connection_open(address: str, topic: str) -> None:
    with AdrConnection(address) as client:
        for request, text in (
            (Consume("missing", 0, 0, 1), "there is no topic 'missing'"),
            (Consume("missing", -1, 0, 1), "there is no topic 'missing'"),
            (Produce("no/good", None, b""), "no/good"),
            (Produce("", None, b""), ""),
            (Produce("__consumer_offsets", None, b""), "only coordinators"),
            (Produce("__transaction_state", b"k", b""), "only coordinators"),
            (Produce("__cluster_metadata", b"k", b""), "only coordinators"),
        ):
            answer = client.ask(request)
            assert isinstance(answer, Failure)
            assert text in answer.text
        assert client.ask(Produce(topic, None, b"x")) == Produced(0, 0)
        for request, text in (
            (Consume(topic, 3, 0, 1), "has no partition 3"),
            (Consume(topic, -2, 0, 1), "has no partition -2"),
            (Consume(topic, 0, 0, -1), "batch size -1 is negative"),
            (Produce(topic, None, b"x" * 2_000_000), "a record of 2000000 bytes, max.message.bytes is 1048588"),
            (Produce(topic, None, b"x" * 1_048_580), "max.message.bytes is 1048588"),
        ):
            answer = client.ask(request)
            assert isinstance(answer, Failure)
            assert text in answer.text
        assert client.ask(Consume(topic, 0, 0, 1)) == Consumed(1, [StoredMessage(0, b"x")])


def test_unknown_topics_are_created_only_where_that_is_allowed(start_broker: StartBroker) -> None:
    broker = start_broker({**ADR_SERVER, "auto.create.topics.enable": "false"})
    with AdrClient(adr_address(broker)) as client, pytest.raises(AdrError, match="there is no topic 't'"):
        client.produce("t", b"x")


# -- reading


def test_reading_in_batches_to_the_end_and_beyond(address: str, topic: str) -> None:
    with AdrClient(address) as client:
        partition = client.produce(topic, b"0", key="k").partition
        for number in range(1, 10):
            client.produce(topic, b"%d" % number, key="k")
        read: list[bytes] = []
        offset = 0
        while (found := client.consume(topic, partition, offset, 4)).messages:
            assert len(found.messages) <= 4
            read += [message.data for message in found.messages]
            offset = found.next_offset
        assert read == [b"%d" % number for number in range(10)]
        assert offset == 10
        assert client.consume(topic, partition, 10, 5) == Consumed(10, [])
        assert client.consume(topic, partition, 1000, 5) == Consumed(1000, [])
        assert client.consume(topic, partition, 3, 0) == Consumed(3, [])
        assert client.consume(topic, partition, 3, 1).messages == [StoredMessage(3, b"3")]


def test_what_kafka_clients_wrote_is_read_here_and_the_other_way_round(
    broker: BrokerProcess, address: str, topic: str
) -> None:
    with AdrClient(address) as client:
        partition = client.produce(topic, b"over ADR", key="k").partition
        with sskafka.Producer(broker.bootstrap, compression_type="gzip") as producer:
            producer.send_batch(topic, "k", [b"a", None, b"b"])
        assert [message.data for message in client.consume(topic, partition, 0, 10).messages] == [
            b"over ADR",
            b"a",
            b"",
            b"b",
        ]
        with sskafka.Consumer(broker.bootstrap) as consumer:
            consumer.subscribe(topic, partition)
            first = consumer.poll(1, timeout_ms=5000)[0]
            assert (first.key, first.value) == (b"k", b"over ADR")


def test_connections_that_let_the_broker_choose_are_spread_over_the_partitions(address: str, topic: str) -> None:
    with AdrClient(address) as client:
        for number in range(3):
            client.produce(topic, b"%d" % number)  # one in each
        first, second, third = AdrClient(address), AdrClient(address), AdrClient(address)
        seen = [reader.consume(topic).messages[0].data for reader in (first, second, third, first)]
        assert seen == [b"0", b"1", b"2", b"0"]
        second.close()
        wait_until(lambda: first_message(address, topic) == b"1", "the partition of the closed connection is free")
        first.close()
        third.close()


def first_message(address: str, topic: str) -> bytes:
    """Of the partition that a new connection is given."""
    with AdrClient(address) as client:
        return client.consume(topic).messages[0].data


# -- where records go


def test_99_messages_without_a_key_over_3_partitions(address: str, topic: str) -> None:
    with AdrClient(address) as client:
        for number in range(99):
            client.produce(topic, b"%d" % number)
        assert spread(client, topic) == [33, 33, 33]


def test_the_same_across_a_restart_in_the_middle(start_broker: StartBroker, topic: str) -> None:
    broker = start_broker(ADR_SERVER)
    with AdrClient(adr_address(broker)) as client:
        for number in range(50):
            client.produce(topic, b"%d" % number)
        client.flush()
    broker.restart(unclean=True)
    with AdrClient(adr_address(broker)) as client:
        for number in range(49):
            client.produce(topic, b"%d" % number)
        assert spread(client, topic) == [33, 33, 33]


def test_the_same_with_several_producers_at_once(address: str, topic: str) -> None:
    def produce() -> None:
        with AdrClient(address) as client:
            for _ in range(11):
                client.produce(topic, b"x")

    threads = [threading.Thread(target=produce) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with AdrClient(address) as client:
        assert spread(client, topic) == [33, 33, 33]


def test_the_same_after_uneven_load_with_keys(broker: BrokerProcess, address: str, topic: str) -> None:
    with AdrClient(address) as client:
        keyed = [client.produce(topic, b"x", key="hot").partition for _ in range(20)]
        assert set(keyed) == {partition_for_key(b"hot", 3)}
        with sskafka.Producer(broker.bootstrap) as producer:
            producer.send_batch(topic, None, [b"x"] * 10, partition=(keyed[0] + 1) % 3)
        for _ in range(69):
            client.produce(topic, b"x")
        assert spread(client, topic) == [33, 33, 33]
        assert client.produce(topic, b"x", key="hot").partition == keyed[0], "whatever the load"


@pytest.mark.parametrize("name", ["murmur2", "murmur3"])
def test_keys_stay_in_their_partition(start_broker: StartBroker, name: str) -> None:
    broker = start_broker({"adr.listener": "127.0.0.1:0", "partitioner.hash": name, "num.partitions": 7})
    with AdrClient(adr_address(broker)) as client:
        for number in range(40):
            key = f"key-{number % 20}"
            expected = partition_for_key(key.encode(), 7, KEY_HASHES[name])
            assert client.produce("t", b"x", key=key).partition == expected
