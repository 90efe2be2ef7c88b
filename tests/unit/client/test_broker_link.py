"""Links between nodes: every request is answered once, and a lost connection is opened again by the next request."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fake_broker import HANG_UP, FakeBroker, api_versions

from sskafka.client import broker_link
from sskafka.client.broker_link import Address, BrokerLink, BrokerLinks, ConnectionOptions, RequestQueue
from sskafka.client.errors import (
    AuthenticationFailedError,
    ClientError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedApiError,
)
from sskafka.wire.codec import UnencodableMessageError
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.fetch import FetchRequest
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sskafka.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


def nowhere() -> Address:
    return Address("localhost", 1)


async def ask(link: BrokerLink) -> Any:
    """Return what the user of the link hears."""
    heard = asyncio.get_running_loop().create_future()
    link.ask(WriteTxnMarkersRequest(), WriteTxnMarkersResponse, heard.set_result)
    return await heard


@pytest.mark.parametrize("error", [ConnectionRefusedError("nobody there"), ValueError("cannot be encoded")])
def test_whatever_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A queue of markers or of questions goes on only with the answer to what is under way."""

    async def connect(address: Address, options: ConnectionOptions, *, failures: int) -> object:
        raise error

    async def scenario() -> None:
        assert await ask(BrokerLink(nowhere, ConnectionOptions())) is error

    monkeypatch.setattr(broker_link, "connect", connect)
    asyncio.run(scenario())


def test_a_refused_login_is_logged_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def connect(address: Address, options: ConnectionOptions, *, failures: int) -> object:
        raise AuthenticationFailedError("localhost:1: Invalid username or password")

    async def scenario() -> None:
        link = BrokerLink(nowhere, ConnectionOptions())
        for _ in range(3):
            await ask(link)
        link._silent_until_s = 0.0
        await ask(link)

    monkeypatch.setattr(broker_link, "connect", connect)
    asyncio.run(scenario())
    text = "the login of this node was refused: localhost:1: Invalid username or password"
    assert [record.message for record in caplog.records] == [text] * 2


def test_the_time_to_connect_doubles_with_every_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ConnectionOptions(connect_timeout_ms=100, connect_timeout_max_ms=350)
    waited: list[int] = []

    async def connect(address: Address, options: ConnectionOptions, *, failures: int) -> object:
        waited.append(options.connect_timeout_after(failures))
        raise ConnectionRefusedError("nobody there")

    async def scenario() -> None:
        link = BrokerLink(nowhere, options)
        for _ in range(4):
            await ask(link)

    monkeypatch.setattr(broker_link, "connect", connect)
    asyncio.run(scenario())
    assert waited == [100, 200, 350, 350]


def test_the_request_after_a_lost_connection_opens_another_one() -> None:
    answers = iter([HANG_UP, InitProducerIdResponse(producer_id=7)])

    async def scenario() -> None:
        async with FakeBroker({InitProducerIdRequest: lambda request, version: next(answers)}) as broker:
            link = BrokerLink(lambda: broker.address, ConnectionOptions())
            with pytest.raises(ConnectionLostError):
                await link.request(InitProducerIdRequest(), InitProducerIdResponse)
            assert (await link.request(InitProducerIdRequest(), InitProducerIdResponse)).producer_id == 7
            link.close()

    asyncio.run(scenario())


def test_requests_over_an_open_connection_take_no_task() -> None:
    numbers = iter(range(1, 100))

    async def scenario() -> None:
        broker = FakeBroker({InitProducerIdRequest: lambda *_: InitProducerIdResponse(producer_id=next(numbers))})
        async with broker:
            link = BrokerLink(lambda: broker.address, ConnectionOptions())
            await link.request(InitProducerIdRequest(), InitProducerIdResponse)
            tasks, heard, done = asyncio.all_tasks(), [], asyncio.Event()

            def answered(outcome: InitProducerIdResponse | Exception) -> None:
                assert isinstance(outcome, InitProducerIdResponse)
                heard.append(outcome.producer_id)
                if len(heard) == 3:
                    done.set()
                else:
                    link.ask(InitProducerIdRequest(), InitProducerIdResponse, answered)
                    assert {task for task in asyncio.all_tasks() if "_exchange" in repr(task)} <= tasks

            link.ask(InitProducerIdRequest(), InitProducerIdResponse, answered)
            assert not heard
            await asyncio.wait_for(done.wait(), 10)
            assert heard == [2, 3, 4]
            link.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [HANG_UP, None, b"\0\0\0\4\0\0\0\0", b"\0\0\0\5\0\0\0\3\0"], ids=range(4))
def test_a_request_over_an_open_connection_hears_of_its_end_once(answer: Any) -> None:
    """The broker hangs up, is silent, answers another request, or sends half a response."""
    answers = iter([InitProducerIdResponse(), answer, InitProducerIdResponse(producer_id=7)])

    async def scenario() -> None:
        async with FakeBroker({InitProducerIdRequest: lambda *_: next(answers)}) as broker:
            link = BrokerLink(lambda: broker.address, ConnectionOptions(request_timeout_ms=100))
            await link.request(InitProducerIdRequest(), InitProducerIdResponse)
            heard: list[Any] = []
            link.ask(InitProducerIdRequest(), InitProducerIdResponse, heard.append)
            async with asyncio.timeout(10):
                while not heard:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert (await link.request(InitProducerIdRequest(), InitProducerIdResponse)).producer_id == 7
            assert len(heard) == 1
            assert isinstance(heard[0], RequestTimeoutError if answer is None else ClientError)
            link.close()

    asyncio.run(scenario())


def test_a_request_that_cannot_be_encoded_is_told_later_and_a_closed_link_is_silent() -> None:
    async def scenario() -> None:
        async with FakeBroker({InitProducerIdRequest: lambda *_: InitProducerIdResponse()}) as broker:
            link = BrokerLink(lambda: broker.address, ConnectionOptions())
            await link.request(InitProducerIdRequest(), InitProducerIdResponse)
            heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            impossible = InitProducerIdRequest(transaction_timeout_ms=2**40)
            link.ask(impossible, InitProducerIdResponse, heard.set_result)
            assert not heard.done()
            assert isinstance(await heard, UnencodableMessageError)
            await link.request(InitProducerIdRequest(), InitProducerIdResponse)
            unheard: list[Any] = []
            link.ask(InitProducerIdRequest(), InitProducerIdResponse, unheard.append)
            link.close()
            await asyncio.sleep(0.05)
            assert not unheard

    asyncio.run(scenario())


class FakeConnection:
    """Its requests end as the test says."""

    def __init__(self) -> None:
        self.is_open = True
        self.pending: list[asyncio.Future[Any]] = []

    async def request(self, message: Any, response_class: Any, *, timeout_ms: int | None) -> Any:
        self.pending.append(asyncio.get_running_loop().create_future())
        return await self.pending[-1]

    def abort(self, reason: str) -> None:
        self.is_open = False


def test_a_late_failure_does_not_end_the_connection_that_was_opened_since(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[FakeConnection] = []

    async def connect(address: Address, options: ConnectionOptions, *, failures: int) -> object:
        opened.append(FakeConnection())
        return opened[-1]

    async def scenario() -> None:
        link = BrokerLink(nowhere, ConnectionOptions())

        async def send() -> "asyncio.Task[Any]":
            task = asyncio.ensure_future(link.request(InitProducerIdRequest(), InitProducerIdResponse))
            await asyncio.sleep(0)
            return task

        first, second = await send(), await send()
        opened[0].pending[0].set_exception(ConnectionLostError("first"))
        with pytest.raises(ConnectionLostError, match="first"):
            await first
        third = await send()
        opened[0].pending[1].set_exception(ConnectionLostError("second"))
        with pytest.raises(ConnectionLostError, match="second"):
            await second
        assert [connection.is_open for connection in opened] == [False, True]
        opened[1].pending[0].set_result("answer")
        assert await third == "answer"

    monkeypatch.setattr(broker_link, "connect", connect)
    asyncio.run(scenario())


def test_a_closed_link_answers_nothing_any_more() -> None:
    async def scenario() -> list[Any]:
        asked = asyncio.Event()
        heard: list[Any] = []
        async with FakeBroker({InitProducerIdRequest: lambda request, version: asked.set()}) as broker:
            links = BrokerLinks(lambda node_id: BrokerLink(lambda: broker.address, ConnectionOptions()))
            assert links.to(1) is links.to(1)
            links.to(1).ask(InitProducerIdRequest(), InitProducerIdResponse, heard.append)
            await asked.wait()
            links.close()
            await asyncio.sleep(0)
        return heard

    assert asyncio.run(scenario()) == []


def test_a_node_without_the_oldest_useful_version_is_refused() -> None:
    async def scenario() -> None:
        async with FakeBroker({ApiVersionsRequest: lambda request, version: api_versions(Fetch=(4, 14))}) as broker:
            link = BrokerLink(lambda: broker.address, ConnectionOptions(), {FetchRequest: 15})
            with pytest.raises(UnsupportedApiError, match="version 15"):
                await link.version_for(FetchRequest)

    asyncio.run(scenario())


class Letters(RequestQueue[str, WriteTxnMarkersResponse]):
    """Sends what the test adds, two at a time."""

    def __init__(self) -> None:
        super().__init__(self, self.call_later, WriteTxnMarkersResponse)
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.sent: list[Any] = []
        self.pause_s = 0.0

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.due.append((delay_s, call))

    def run_due(self) -> list[float]:
        due, self.due = self.due, []
        for _, call in due:
            call()
        return [delay_s for delay_s, _ in due]

    def ask(self, request: Any, response_class: Any, answered: Callable[[Any], None]) -> None:
        self.sent.append((request, answered))

    def close(self) -> None: ...

    def _select(self, waiting: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        return waiting[:2], waiting[2:]

    def _request(self, items: Sequence[str]) -> Any:
        return "".join(items)

    def _answered(self, items: Sequence[str], outcome: WriteTxnMarkersResponse | Exception) -> float:
        return self.pause_s

    @property
    def requests(self) -> list[str]:
        return [request for request, _ in self.sent]

    def answer(self) -> None:
        self.sent[-1][1](WriteTxnMarkersResponse())


def test_a_queue_has_one_request_in_flight_and_gathers_the_rest() -> None:
    letters = Letters()
    letters.add("a")
    assert letters.requests == []
    letters.add("b")
    assert letters.run_due() == [0]
    for letter in "cde":
        letters.add(letter)
    assert letters.run_due() == []
    assert letters.requests == ["ab"]
    letters.answer()
    assert letters.requests == ["ab", "cd"]
    letters.answer()
    letters.answer()
    assert letters.requests == ["ab", "cd", "e"]
    letters.add("f")
    assert letters.run_due() == [0]
    assert letters.requests[-1] == "f"


def test_a_queue_pauses_as_long_as_the_answer_says() -> None:
    letters = Letters()
    letters.pause_s = 0.05
    letters.add("a")
    letters.run_due()
    letters.answer()
    letters.add("b")
    assert letters.requests == ["a"]
    assert letters.run_due() == [0.05]
    assert letters.requests == ["a", "b"]


def test_what_was_cleared_is_not_sent() -> None:
    letters = Letters()
    letters.add("a")
    letters.clear()
    letters.run_due()
    assert letters.requests == []
