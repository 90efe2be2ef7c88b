import asyncio
import socket
from typing import Any

import pytest
from fake_broker import HANG_UP, FakeBroker, api_versions

from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect, is_refusal
from sskafka.client.errors import (
    BrokerUnavailableError,
    ConnectionLostError,
    ConnectionRefusedByBrokerError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedApiError,
)
from sskafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sskafka.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.metadata import MetadataRequest, MetadataResponse


def test_responses_in_any_order_are_matched_with_their_requests() -> None:
    async def scenario() -> None:
        last_asked = asyncio.Event()

        async def answer(request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
            if request.producer_id == 2:
                last_asked.set()
            else:
                await last_asked.wait()
            return InitProducerIdResponse(producer_id=request.producer_id)

        async with FakeBroker({InitProducerIdRequest: answer}) as broker:
            connection = await connect(broker.address)
            asked = [
                connection.request(InitProducerIdRequest(producer_id=number), InitProducerIdResponse)
                for number in range(3)
            ]
            answers = await asyncio.gather(*asked)
            assert [answer.producer_id for answer in answers] == [0, 1, 2]
            assert connection.in_flight == 0
            await connection.close()

    asyncio.run(scenario())


def test_a_request_timeout_ends_the_connection() -> None:
    async def scenario() -> None:
        async with FakeBroker({InitProducerIdRequest: lambda request, version: None}) as broker:
            connection = await connect(broker.address)
            behind = asyncio.ensure_future(connection.request(InitProducerIdRequest(), InitProducerIdResponse))
            with pytest.raises(RequestTimeoutError, match="did not answer InitProducerId within 30 ms"):
                await connection.request(InitProducerIdRequest(), InitProducerIdResponse, timeout_ms=30)
            with pytest.raises(ConnectionLostError, match="InitProducerId was not answered within 30 ms"):
                await behind
            assert not connection.is_open

    asyncio.run(scenario())


def test_connection_refused() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker:
            address = broker.address
        with pytest.raises(ConnectionRefusedByBrokerError, match=f"cannot connect to {address}: connection refused"):
            await connect(address)
        with pytest.raises(ConnectionRefusedByBrokerError):  # a name with an address of each family
            await connect(Address("localhost", address.port))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "is_refused"),
    [
        (ConnectionRefusedError(111, "BrokerConnection refused"), True),
        (OSError(111, "Connect call failed ('127.0.0.1', 9092)"), True),
        (OSError(113, "No route to host"), False),
        (OSError("Multiple exceptions: [Errno 111] to ::1, [Errno 111] to 127.0.0.1"), True),
        (OSError("Multiple exceptions: [Errno 99] to ::1, [Errno 111] to 127.0.0.1"), True),
        (OSError("Multiple exceptions: [Errno 110] to 10.0.0.1, [Errno 111] to 10.0.0.2"), False),
        (OSError("Multiple exceptions: [Errno 99] to ::1, [Errno 97] to 127.0.0.1"), False),
        (OSError("could not be resolved"), False),
    ],
)
def test_only_refused_connections_count_as_refusals(error: OSError, is_refused: bool) -> None:
    assert is_refusal(error) is is_refused


def test_a_listener_that_is_not_kafka() -> None:
    async def web_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(web_server, "127.0.0.1", 0) as server:
            address = Address(*server.sockets[0].getsockname())
            with pytest.raises(BrokerUnavailableError, match="is this a Kafka listener"):
                await connect(address)

    asyncio.run(scenario())


def test_a_broker_that_does_not_respond() -> None:
    async def scenario() -> None:
        async with FakeBroker({ApiVersionsRequest: lambda request, version: None}) as broker:
            with pytest.raises(BrokerUnavailableError, match="did not answer within 50 ms"):
                await connect(broker.address, ConnectionOptions(connect_timeout_ms=50))

    asyncio.run(scenario())


def test_a_lost_connection_fails_pending_and_later_requests() -> None:
    async def scenario() -> None:
        async with FakeBroker({MetadataRequest: lambda request, version: HANG_UP}) as broker:
            connection = await connect(broker.address)
            lost: list[BrokerConnection] = []
            connection.on_lost = lost.append
            for _ in range(2):
                with pytest.raises(ConnectionLostError, match=str(broker.address.port)):
                    await connection.request(MetadataRequest(), MetadataResponse)
            assert not connection.is_open
            assert lost == [connection]

    asyncio.run(scenario())


def test_an_older_broker_answers_api_versions_in_version_0() -> None:
    def answer(request: ApiVersionsRequest, version: int) -> Any:
        if version <= 2:
            return api_versions(ApiVersions=(0, 2))
        correlation_id, error, one_api = (1).to_bytes(4, "big"), b"\x00\x23", b"\x00\x00\x00\x01"
        body = correlation_id + error + one_api + b"\x00\x12" + b"\x00\x00" + b"\x00\x02"
        return len(body).to_bytes(4, "big") + body

    async def scenario() -> None:
        async with FakeBroker({ApiVersionsRequest: answer}) as broker:
            connection = await connect(broker.address)
            assert connection.version_for(ApiVersionsRequest) == 2
            await connection.close()

    asyncio.run(scenario())


def test_a_request_without_a_body_is_written_without_an_empty_part() -> None:
    """asyncio's transport of Python 3.12 keeps an empty part in its buffer and sends it again without end."""

    async def scenario() -> None:
        async with FakeBroker({ApiVersionsRequest: lambda *_: api_versions(ApiVersions=(0, 2))}) as broker:
            connection = await connect(broker.address)
            transport = connection._transport
            assert transport is not None
            written: list[bytes] = []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(connection, "_transport", _Recorder(written))
                connection._write(ApiVersionsRequest(), 0, 7)
            assert [len(part) for part in written] == [4, int.from_bytes(written[0], "big")]
            await connection.close()

    asyncio.run(scenario())


class _Recorder:
    """A transport that keeps what is written."""

    def __init__(self, written: list[bytes]) -> None:
        self.writelines = written.extend

    def is_closing(self) -> bool:
        return False


def test_the_newest_common_version_is_used() -> None:
    def versions(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        known = api_versions(Fetch=(0, 7), Metadata=(99, 100))
        known.api_keys = [api for api in known.api_keys if api.api_key != InitProducerIdRequest.SCHEMA.key]
        return known

    async def scenario() -> None:
        async with FakeBroker({ApiVersionsRequest: versions}) as broker:
            connection = await connect(broker.address)
            assert connection.version_for(FetchRequest) == 7
            assert connection.version_for(FetchRequest, at_most=5) == 5
            with pytest.raises(UnsupportedApiError, match="supports Metadata 99-100, this client 0-13"):
                connection.version_for(MetadataRequest)
            with pytest.raises(UnsupportedApiError, match="does not support the API InitProducerId"):
                connection.version_for(InitProducerIdRequest)
            await connection.close()

    asyncio.run(scenario())


def test_large_responses_are_received_completely() -> None:
    records = bytes(range(256)) * 20_000

    def answer(request: FetchRequest, version: int) -> FetchResponse:
        return FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])])

    async def scenario() -> None:
        async with FakeBroker({FetchRequest: answer}) as broker:
            connection = await connect(broker.address)
            for _ in range(2):
                response = await connection.request(FetchRequest(), FetchResponse)
                assert response.responses[0].partitions[0].records == records
            await connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"\x00\x00\x00\x04\x00\x00\x00\x63", "unknown correlation id 99"),
        (b"\x00\x00\x00\x02ab", "no correlation id"),
        (b"\xff\xff\xff\xff", "invalid frame size -1"),
    ],
)
def test_invalid_frames_end_the_connection(frame: bytes, words: str) -> None:
    async def scenario() -> None:
        async with FakeBroker({MetadataRequest: lambda request, version: frame}) as broker:
            connection = await connect(broker.address)
            with pytest.raises(ConnectionLostError, match=words):
                await connection.request(MetadataRequest(), MetadataResponse)
            assert not connection.is_open

    asyncio.run(scenario())


def test_a_malformed_response_is_a_protocol_error() -> None:
    async def scenario() -> None:
        short = b"\x00\x00\x00\x06\x00\x00\x00\x02\x00\x00"
        async with FakeBroker({MetadataRequest: lambda request, version: short}) as broker:
            connection = await connect(broker.address)
            with pytest.raises(ProtocolError, match="cannot decode the response"):
                await connection.request(MetadataRequest(), MetadataResponse)
            assert not connection.is_open

    asyncio.run(scenario())


def test_the_configured_receive_buffer_is_set() -> None:
    async def scenario() -> int:
        async with FakeBroker() as broker:
            connection = await connect(broker.address, ConnectionOptions(receive_buffer_bytes=30_000))
            assert connection._transport is not None
            opened = connection._transport.get_extra_info("socket")
            size: int = opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            await connection.close()
            return size

    assert asyncio.run(scenario()) in {60_000, 30_000}  # Linux doubles what it is asked for
