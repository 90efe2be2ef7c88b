"""The largest requests that pass the bounds of the decoders: no turn of the data loop is long, little memory is taken.

Requests that list a hundred thousand groups, topics or partitions once took gigabytes and minutes, and all clients
waited for them.
"""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest
import wire_connection
from largest_requests import LargestRequest, largest_requests
from scene import MEGABYTE, POLITE_TOPIC, Scene
from wire_connection import PRODUCE_VERSION, Connection, values_batch

from sskafka.wire.apis import ApiKey, Listeners
from sskafka.wire.codec import encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.messages.describe_groups import DescribeGroupsRequest
from sskafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SERVED = Listeners.BROKER | Listeners.UNLISTED
ENDS_PROCESSES = {ApiKey.UNREGISTER_BROKER}
CPU_MS_MAX = 60
RSS_GROWTH_MAX = 200 * MEGABYTE
ANSWER_S_MAX = 60
LONG_ANSWER_S_MAX = 300
"""For every API: 100,000 transaction markers for one partition are 100,000 appends."""
LONG_CPU_MS_MAX = 150
"""For every API: in the turns of requests with 100,000 elements there are full garbage collections."""
PRODUCERS = 2_000
LOOKED_AT = {
    ApiKey.METADATA,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.OFFSET_FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
}
"""Requests of the short test: one of each way in which requests are handled, and those that were worst. The long test
has all."""


def served_requests(names: tuple[str, ...]) -> list[LargestRequest]:
    every = largest_requests("first and last", names)
    return [each for each in every if each.api.listeners & SERVED and each.api.key not in ENDS_PROCESSES]


def ask(bootstrap: str, request: LargestRequest) -> None:
    """Send the request and wait for its response, or for the end of the connection."""
    with Connection(bootstrap) as connection, suppress(ConnectionError):
        connection.send_body(request.api.key, request.version, request.body())
        connection.receive_frame()


def ask_nothing(scene: Scene) -> None:
    with scene.connect() as connection:
        connection.call(DescribeGroupsRequest(groups=["warm-up"]), 5)
    scene.begin()


def warm_up(scene: Scene, requests: list[LargestRequest]) -> None:
    """Send an empty request of each API: at the first one the broker imports the handler and compiles the codec."""
    for api in {request.api for request in requests}:
        for version in (api.min_version, api.max_version):
            with scene.connect() as connection, suppress(ConnectionError):
                connection.send(api.request_class()(), version)
                if api.key != ApiKey.PRODUCE:  # with acks=0 there is no response
                    connection.receive_frame()
    scene.begin()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_connection, "TIMEOUT_S", ANSWER_S_MAX)


def test_largest_requests_are_handled_in_slices(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    requests = [each for each in served_requests(()) if each.api.key in LOOKED_AT and len(each.path) == 1]
    warm_up(scene, requests)
    for request in requests:
        if request.version == request.api.max_version:
            ask(scene.bootstrap, request)
    measured = scene.check(RSS_GROWTH_MAX)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured


def test_long_requests_of_many_clients_do_not_add_up(start_scene: Callable[..., Scene]) -> None:
    """One long request at a time is decoded; the others wait as bytes."""
    scene = start_scene()
    body = encode(DescribeGroupsRequest(groups=[f"group-{i}" for i in range(40_000)]), 5)
    frame = encode_request_header(ApiKey.DESCRIBE_GROUPS, 5, 1, "many") + body
    with ExitStack() as cleanup:
        ask_nothing(scene)
        clients = [cleanup.enter_context(scene.connect()) for _ in range(6)]
        threads = [threading.Thread(target=client.send_frame, args=(frame,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            assert client.receive_frame() is not None
    measured = scene.check(RSS_GROWTH_MAX)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured


def test_a_short_request_overtakes_long_ones(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    with scene.connect() as long, scene.connect() as short:
        long.send(DescribeGroupsRequest(groups=[f"group-{i}" for i in range(90_000)]), 5)
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{i}" * 10) for i in range(300)])
        wanted.allow_auto_topic_creation = False
        assert len(short.call(wanted, 12).topics) == 300
        long.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            long.socket.recv(1)


def test_requests_after_a_long_one_do_not_overtake_it(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    with scene.connect() as connection:
        first = connection.send(DescribeGroupsRequest(groups=[f"group-{i}" for i in range(20_000)]), 5)
        second = connection.send(MetadataRequest(topics=[MetadataRequestTopic(name=POLITE_TOPIC)]), 12)
        assert [connection.receive()[0], connection.receive()[0]] == [first, second]


@pytest.mark.parametrize("acks", [0, 1])
def test_batches_for_many_partitions_are_appended_in_slices(start_scene: Callable[..., Scene], acks: int) -> None:
    """All of them in one turn of the loop once took 130 ms of CPU time."""
    scene = start_scene()
    with scene.connect() as connection:
        connection.create_topic("many", 20)
        batch = bytes(values_batch(b"value"))
        partitions = [PartitionProduceData(number % 20, batch) for number in range(9_900)]
        request = ProduceRequest(None, acks, 10_000, [TopicProduceData(name="many", partition_data=partitions)])
        scene.begin()
        for _ in range(3):
            connection.send(request, PRODUCE_VERSION)
            if acks:
                assert not any(part.error_code for part in connection.receive()[1].responses[0].partition_responses)
        connection.topic_metadata("many")
    measured = scene.check(RSS_GROWTH_MAX)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured


def test_a_fetch_of_many_partitions_is_handled_in_slices(start_scene: Callable[..., Scene]) -> None:
    """To decode it, to open its session and to encode its response once took 50 ms and more in one turn each."""
    scene = start_scene()
    request = FetchRequest(session_epoch=0, max_wait_ms=0, max_bytes=1000)
    request.topics = [FetchTopic(topic_id=bytes(range(16)), partitions=[FetchPartition(i) for i in range(19_900)])]
    with scene.connect() as connection:
        scene.begin()
        for _ in range(5):
            response = connection.call(request, 13)
            assert len(response.responses[0].partitions) == 19_900
        session = connection.call(request, 13)
        request.session_id, request.session_epoch = session.session_id, 1
        assert connection.call(request, 13).session_id == session.session_id, "all of them change"
    measured = scene.check(RSS_GROWTH_MAX)
    assert measured.longest_turn_cpu_ms == 0, measured


def test_a_partition_with_many_producers_that_is_named_often(start_scene: Callable[..., Scene]) -> None:
    """The states of all producers once were kept for each time: some gigabytes of objects, in turns of 0.2 s."""
    scene = start_scene()
    with scene.connect() as connection:
        connection.create_topic("written", 1)
        for first in range(0, PRODUCERS, 1_000):
            ids = range(first, first + 1_000)
            batches = [bytes(values_batch(b"v", producer_id=each, producer_epoch=0, base_sequence=0)) for each in ids]
            partitions = [PartitionProduceData(0, batch) for batch in batches]
            request = ProduceRequest(None, -1, 10_000, [TopicProduceData(name="written", partition_data=partitions)])
            (topic,) = connection.call(request, PRODUCE_VERSION).responses
            assert not any(part.error_code for part in topic.partition_responses)
        connection.call(DescribeProducersRequest([TopicRequest("written", [0, 0])]), 0)
        scene.begin()
        named = DescribeProducersRequest([TopicRequest("written", [0] * 15)])
        (topic,) = connection.call(named, 0).topics
        assert [len(part.active_producers) for part in topic.partitions] == [PRODUCERS] * 15
        connection.send(DescribeProducersRequest([TopicRequest("written", [0] * 50_000)]), 0)
        assert connection.is_closed_by_broker()
    assert "the response would have more than" in scene.broker.log
    measured = scene.check(RSS_GROWTH_MAX)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured


def test_requests_without_records_have_a_maximum_size(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    host, port = scene.bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        with suppress(ConnectionError):
            size = 50 * MEGABYTE
            connection.sendall(struct.pack(">i", size) + encode_request_header(ApiKey.METADATA, 12, 1, "big"))
            connection.sendall(bytes(size))
        with suppress(ConnectionError):
            assert connection.recv(1) == b""
    assert "at most 16777216 are allowed" in scene.broker.log
    scene.check(20 * MEGABYTE)


@pytest.mark.long_attack
@pytest.mark.parametrize("names", [(), (POLITE_TOPIC,)], ids=["different names", "one name"])
def test_largest_requests_of_every_api(
    names: tuple[str, ...], start_scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_connection, "TIMEOUT_S", LONG_ANSWER_S_MAX)
    scene = start_scene()
    warm_up(scene, served_requests(names))
    for request in served_requests(names):
        ask(scene.bootstrap, request)
        measured = scene.measure()
        assert measured.longest_turn_cpu_ms <= LONG_CPU_MS_MAX, f"{request}: {measured}"
        assert measured.rss_growth_bytes <= RSS_GROWTH_MAX, f"{request}: {measured}"
        scene.begin()
