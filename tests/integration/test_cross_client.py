"""What one client library writes, all of them read: every codec, keys, headers, null values, timestamps."""

import pytest
from clients import CLIENTS, Client, Message, Received
from wire_connection import Connection

BASE_TIME_MS = 1_700_000_000_000
NULL = ("null", None)

MESSAGES = (
    Message(b"plain"),
    Message(b"keyed", key=b"key"),
    Message(b"", key=b""),
    Message(None, key=b"tombstone"),
    Message(b"headed", headers=(("one", b"1"), ("two", b""), ("one", b"again"))),
    Message(b"null header", headers=(("some", b"1"), NULL)),
    Message("größer als ASCII".encode(), key="schlüssel".encode(), headers=(("kopf", "ä".encode()),)),
    *(Message(b"%06d" % n * 20, key=b"%d" % (n % 7)) for n in range(200)),
)
TIMED = tuple(message._replace(timestamp=BASE_TIME_MS + n) for n, message in enumerate(MESSAGES))

WRITES = [pytest.param(client, codec, id=f"{client}-{codec}") for client in CLIENTS for codec in client.codecs]


@pytest.mark.parametrize(("writer", "codec"), WRITES)
def test_written_by_one_read_by_all(
    bootstrap: str, connection: Connection, topic: str, writer: Client, codec: str
) -> None:
    connection.create_topic(topic)
    messages = TIMED if writer.writes_null_headers else [message for message in TIMED if NULL not in message.headers]
    writer.write(bootstrap, topic, messages, codec)
    expected = [Received(offset, m.value, m.key, m.headers, m.timestamp) for offset, m in enumerate(messages)]
    for reader in CLIENTS:
        if codec in reader.codecs:
            assert reader.read(bootstrap, topic, 0, len(expected)) == expected, reader


@pytest.mark.parametrize("reader", CLIENTS, ids=repr)
def test_reading_begins_in_the_middle_of_a_batch(
    bootstrap: str, connection: Connection, topic: str, reader: Client
) -> None:
    connection.create_topic(topic)
    CLIENTS[0].write(bootstrap, topic, TIMED, "gzip")
    received = reader.read(bootstrap, topic, 101, 7)
    assert [message.offset for message in received] == list(range(101, 108))


@pytest.mark.parametrize("client", CLIENTS, ids=repr)
def test_append_time_topics_stamp_records_on_arrival(
    bootstrap: str, connection: Connection, topic: str, client: Client
) -> None:
    connection.create_topic(topic, message_timestamp_type="LogAppendTime")
    client.write(bootstrap, topic, TIMED[:3], "none")
    stamps = [message.timestamp for message in client.read(bootstrap, topic, 0, 3)]
    assert all(stamp > BASE_TIME_MS + 1_000_000 for stamp in stamps)
    assert stamps == sorted(stamps)
