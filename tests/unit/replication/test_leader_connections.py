"""Links between brokers: whoever asks hears of the end of it."""

import asyncio
from typing import Any

import pytest

from sskafka.client.connection import Address, ConnectionOptions
from sskafka.replication import leader_connections
from sskafka.replication.leader_connections import LeaderConnections
from sskafka.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


def asked(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Any]:
    """What somebody hears whose request ends so."""

    async def connect(address: Address, options: ConnectionOptions, *, failures: int) -> object:
        raise error

    async def ask() -> list[Any]:
        tasks: list[asyncio.Task[None]] = []
        links = LeaderConnections(
            lambda broker_id: Address("localhost", 1),
            ConnectionOptions(),
            lambda work: tasks.append(asyncio.ensure_future(work)),
        )
        heard: list[Any] = []
        links.link_to(2).ask(WriteTxnMarkersRequest(), WriteTxnMarkersResponse, heard.append)
        await asyncio.gather(*tasks)
        return heard

    monkeypatch.setattr(leader_connections, "connect", connect)
    return asyncio.run(ask())


@pytest.mark.parametrize("error", [ConnectionRefusedError("nobody there"), ValueError("cannot be encoded")])
def test_whatever_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A queue of markers or of questions goes on only with the answer to what is under way."""
    assert asked(monkeypatch, error) == [error]


def test_the_time_to_connect_doubles_with_every_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ConnectionOptions(connect_timeout_ms=100, connect_timeout_max_ms=350)
    waited: list[int] = []

    async def connect(address: Address, options: ConnectionOptions, *, failures: int) -> object:
        waited.append(options.connect_timeout_after(failures))
        raise ConnectionRefusedError("nobody there")

    async def ask() -> None:
        tasks: list[asyncio.Task[None]] = []
        spawn = lambda work: tasks.append(asyncio.ensure_future(work))  # noqa: E731
        link = LeaderConnections(lambda broker_id: Address("localhost", 1), options, spawn).link_to(2)
        for _ in range(4):
            link.ask(WriteTxnMarkersRequest(), WriteTxnMarkersResponse, lambda outcome: None)
            await asyncio.gather(*tasks)

    monkeypatch.setattr(leader_connections, "connect", connect)
    asyncio.run(ask())
    assert waited == [100, 200, 350, 350]
