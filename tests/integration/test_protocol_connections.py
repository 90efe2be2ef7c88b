"""Connections on the wire: handshakes, answers in order, and bytes that are no requests."""

import random
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from broker_process import StartBroker
from wire_connection import Connection, fetch_request, produce_request, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.metadata import MetadataRequest


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_listener_without_a_host_serves_both_families(start_broker: StartBroker, host: str) -> None:
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("the machine has no IPv6")
    settings = {"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://localhost:0"}
    port = start_broker(settings).address[1]
    with Connection(f"{host}:{port}") as connection:
        assert is_served(connection)


@pytest.fixture
def second(bootstrap: str) -> Iterator[Connection]:
    with Connection(bootstrap) as connection:
        yield connection


def is_served(connection: Connection) -> bool:
    return bool(connection.call(MetadataRequest(topics=[]), version=12).brokers)


# ------------------------------------------------------------------------------------------------- ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_api_versions(connection: Connection, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    response = connection.call(request, version)
    assert response.error_code == 0
    ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert ranges[ApiKey.API_VERSIONS] == (0, 4)
    assert ranges[ApiKey.PRODUCE] == (0, 13)  # from 0, or older librdkafka stops compressing
    assert ranges[ApiKey.FETCH] == (4, 18)
    if version >= 3:
        finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
        assert finalized["metadata.version"] > 0
        assert response.finalized_features_epoch >= 0


def test_unknown_version_of_api_versions_is_answered_in_the_oldest_form(connection: Connection) -> None:
    connection.send_frame(encode_request_header(ApiKey.API_VERSIONS, 99, 7, "raw") + b"\2x\2y\0")
    answer = connection.receive_frame()
    assert answer is not None
    correlation_id, error_code, count = struct.unpack_from(">ihi", answer)
    assert (correlation_id, error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert len(answer) == 10 + 6 * count
    entries = [struct.unpack_from(">hhh", answer, 10 + 6 * n) for n in range(count)]
    assert entries == [(ApiKey.API_VERSIONS, 0, 4)]
    assert is_served(connection)


def test_every_advertised_api_is_known_to_us(connection: Connection) -> None:
    response = connection.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version=4)
    for api in response.api_keys:
        assert api.api_key in API_BY_KEY
        assert 0 <= api.min_version <= api.max_version


# ----------------------------------------------------------------------------------------------- order of answers


def test_pipelined_requests_are_answered_in_order(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    sent = []
    for n in range(50):
        sent.append(connection.send(produce_request(topic, values_batch(b"%d" % n)), version=9))
        sent.append(connection.send(MetadataRequest(topics=[]), version=12))
        sent.append(connection.send(fetch_request(topic, n), version=12))
    answers = [connection.receive() for _ in sent]
    assert [correlation_id for correlation_id, _ in answers] == sent
    offsets = [response.responses[0].partition_responses[0].base_offset for _, response in answers[::3]]
    assert offsets == list(range(50))


def test_requests_in_one_segment_and_in_single_bytes(connection: Connection) -> None:
    body = encode_request_header(ApiKey.METADATA, 12, 0, "raw") + encode(MetadataRequest(topics=[]), 12)
    frame = struct.pack(">i", len(body)) + body
    connection.socket.sendall(frame * 20)
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in frame:
        connection.socket.sendall(bytes([byte]))
    answers = {connection.receive_frame() for _ in range(21)}
    assert len(answers) == 1


def test_ready_answers_wait_for_the_parked_one_before_them(
    connection: Connection, second: Connection, topic: str
) -> None:
    connection.create_topic(topic)
    parked = connection.send(fetch_request(topic, 0, max_wait_ms=30_000), version=12)
    others = [connection.send(MetadataRequest(topics=[]), version=12) for _ in range(3)]
    second.produce(topic, values_batch(b"wakes the fetch"))
    answers = [connection.receive() for _ in range(4)]
    assert [correlation_id for correlation_id, _ in answers] == [parked, *others]
    assert values_in(answers[0][1].responses[0].partitions[0]) == [b"wakes the fetch"]


@pytest.mark.usefixtures("_ours")
def test_a_parked_request_does_not_hold_up_the_work_of_later_ones(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    began = time.monotonic()
    parked = connection.send(fetch_request(topic, 0, max_wait_ms=30_000), version=12)
    produced = connection.send(produce_request(topic, values_batch(b"from behind")), version=9)
    first, fetched = connection.receive()
    assert (first, values_in(fetched.responses[0].partitions[0])) == (parked, [b"from behind"])
    assert connection.receive()[0] == produced
    assert time.monotonic() - began < 10


def test_acks_0_is_not_answered(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    for n in range(3):
        connection.send(produce_request(topic, values_batch(b"%d" % n), acks=0), version=9)
    correlation_id = connection.send(fetch_request(topic, 0, max_wait_ms=5000), version=12)
    answered, response = connection.receive()
    assert answered == correlation_id
    assert values_in(response.responses[0].partitions[0])[:1] == [b"0"]


# ------------------------------------------------------------------------------------- what cannot be understood


@pytest.mark.parametrize(("api_key", "version"), [(999, 0), (-5, 0), (4, 0), (3, 99), (0, 2), (1, 3), (19, -1)])
def test_unknown_apis_and_versions_do_not_hang(
    connection: Connection, second: Connection, api_key: int, version: int
) -> None:
    connection.send_frame(struct.pack(">hhih", api_key, version, 5, -1) + bytes(20))
    answer = connection.receive_frame()
    assert answer is None or struct.unpack_from(">i", answer) == (5,)
    assert is_served(second)


def test_find_coordinator_does_not_hang(connection: Connection, second: Connection) -> None:
    connection.send(FindCoordinatorRequest(coordinator_keys=["group"]), version=4)
    connection.receive_frame()
    assert is_served(second)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 200 << 20])
def test_impossible_frame_sizes_close_the_connection(connection: Connection, second: Connection, size: int) -> None:
    connection.socket.sendall(struct.pack(">i", size) + bytes(100))
    assert connection.is_closed_by_broker()
    assert is_served(second)


@pytest.mark.parametrize("frame", [b"", b"\0", bytes(7)])
def test_frames_too_short_for_a_header(connection: Connection, second: Connection, frame: bytes) -> None:
    connection.send_frame(frame)
    assert connection.is_closed_by_broker()
    assert is_served(second)


def test_array_lengths_are_not_believed(connection: Connection, second: Connection) -> None:
    began = time.monotonic()
    connection.send_body(ApiKey.METADATA, 1, struct.pack(">i", 2**31 - 1))
    assert connection.is_closed_by_broker()
    assert time.monotonic() - began < 5
    assert is_served(second)


def test_http_and_tls_clients_are_turned_away(bootstrap: str, second: Connection) -> None:
    for greeting in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes.fromhex("1603010200010001fc0303") + bytes(507)):
        with Connection(bootstrap) as stranger:
            stranger.socket.sendall(greeting)
            assert stranger.is_closed_by_broker()
    assert is_served(second)


def ends(bootstrap: str, frame: bytes) -> bool:
    """Sends a frame and half-closes: whatever the frame was, the broker must come to an end with it."""
    with Connection(bootstrap) as connection:
        connection.send_frame(frame)
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return True  # already closed by the broker
        while connection.receive_frame() is not None:
            pass
    return True


def test_requests_cut_short_at_every_byte(bootstrap: str, second: Connection, topic: str) -> None:
    second.create_topic(topic)
    requests = (
        (MetadataRequest(topics=[]), 12),
        (DescribeClusterRequest(), 1),
        (fetch_request(topic), 12),
        (produce_request(topic, values_batch(b"value")), 9),
    )
    for request, version in requests:
        whole = encode_request_header(request.SCHEMA.key, version, 1, "raw") + encode(request, version)
        for size in range(len(whole)):
            assert ends(bootstrap, whole[:size])
    assert values_in(second.fetch(topic)) == []


def test_random_bodies_for_every_api(bootstrap: str, second: Connection) -> None:
    chance = random.Random(2_024)
    response = second.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version=4)
    for api in response.api_keys:
        for _ in range(5):
            header = encode_request_header(api.api_key, chance.randint(api.min_version, api.max_version), 1, "raw")
            assert ends(bootstrap, header + chance.randbytes(chance.randint(0, 80)))
    assert is_served(second)
