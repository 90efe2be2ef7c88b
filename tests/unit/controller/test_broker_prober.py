"""Probes of broker addresses by a voter, over real sockets."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import pytest
from fake_broker import HANG_UP, FakeBroker

from sskafka.client.connection import Address, ConnectionOptions, connect
from sskafka.controller.broker_watch import ProbeOutcome, SocketProber
from sskafka.metadata.brokers.presence import ProbeResult
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.records import BrokerEndpoint, RegisterBrokerRecord
from sskafka.wire.messages.broker_identity import BrokerIdentityRequest, BrokerIdentityResponse

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
INCARNATION = bytes([7] * 16)
IDENTITY = BrokerIdentityResponse(cluster_id=CLUSTER_ID, broker_id=1, incarnation_id=INCARNATION)


def registered_at(address: Address) -> BrokerRegistration:
    listener = BrokerEndpoint("PLAINTEXT", address.host, address.port, 0)
    record = RegisterBrokerRecord(broker_id=1, incarnation_id=INCARNATION, broker_epoch=5, end_points=[listener])
    return BrokerRegistration.from_record(record)


def prober(voters: Mapping[int, Address] | None = None) -> SocketProber:
    return SocketProber(CLUSTER_ID, None, voters or {}, ConnectionOptions("node-2", 300, 300))


async def probe(
    broker: FakeBroker, voters: Mapping[int, Address] | None = None, *, was_reached: bool = False
) -> ProbeOutcome:
    return await prober(voters).probe(registered_at(broker.address), was_reached=was_reached)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def to_the_end() -> None:
        await scenario()
        await asyncio.sleep(0.01)  # connections that were given up close in a later turn of the loop

    asyncio.run(to_the_end())


def answering(response: object) -> FakeBroker:
    return FakeBroker({BrokerIdentityRequest: lambda request, version: response})


@pytest.mark.parametrize(
    ("response", "result"),
    [
        (IDENTITY, ProbeResult.ANSWERED),
        (replace(IDENTITY, incarnation_id=bytes([8] * 16)), ProbeResult.REPLACED),
        (replace(IDENTITY, broker_id=2), ProbeResult.UNSURE),
        (replace(IDENTITY, cluster_id="another"), ProbeResult.UNSURE),
        (None, ProbeResult.UNSURE),
        (HANG_UP, ProbeResult.UNSURE),
    ],
)
def test_who_answers(response: object, result: ProbeResult) -> None:
    async def scenario() -> None:
        async with answering(response) as broker:
            found = await probe(broker)
            assert found.result is result
            assert (found.connection is not None) is (result is ProbeResult.ANSWERED)
            if found.connection is not None:
                found.connection.drop()

    run(scenario)


def test_the_end_of_the_connection_is_noticed_at_once() -> None:
    async def scenario() -> None:
        async with answering(IDENTITY) as broker:
            found = await probe(broker)
            assert found.connection is not None
            ended = asyncio.ensure_future(found.connection.lost())
            await asyncio.sleep(0.01)
            assert not ended.done()
            broker.hang_up()
            async with asyncio.timeout(5):
                await ended

    run(scenario)


def test_a_session_that_ends_ends_the_connection() -> None:
    """A connection with SASL is closed before its session expires; the broker is then probed again."""

    async def scenario() -> None:
        async with answering(IDENTITY) as broker:
            connection = await connect(broker.address, ConnectionOptions("node-2", 300, 300))
            found = await prober()._identify(connection, registered_at(broker.address))
            assert found.connection is not None
            connection.retire_after(10)
            async with asyncio.timeout(5):
                await found.connection.lost()

    run(scenario)


@pytest.mark.parametrize("was_reached", [True, False])
def test_nobody_listens(was_reached: bool) -> None:
    """The address as a voter is asked only where the other one proves nothing."""

    async def scenario() -> None:
        async with answering(IDENTITY) as broker:
            pass
        assert await probe(broker, was_reached=was_reached) == ProbeOutcome(ProbeResult.REFUSED)
        voters = {1: broker.address}
        assert await probe(broker, voters, was_reached=was_reached) == ProbeOutcome(
            ProbeResult.REFUSED, at_voter_address=not was_reached
        )

    run(scenario)


def test_a_voter_that_answers_at_its_other_address_has_not_ended() -> None:
    async def scenario() -> None:
        async with answering(IDENTITY) as voter:
            async with answering(IDENTITY) as broker:
                pass
            found = await probe(broker, {1: voter.address})
            assert found == ProbeOutcome(ProbeResult.REFUSED, at_voter_address=False)

    run(scenario)


def test_a_process_that_accepts_and_says_nothing_is_no_dead_one() -> None:
    """As the kernel does for a process that is stopped."""

    async def scenario() -> None:
        async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(nothing, "127.0.0.1", 0)
        address = Address(*server.sockets[0].getsockname())
        found = await prober({1: address}).probe(registered_at(address), was_reached=True)
        assert found.result is ProbeResult.UNSURE
        server.close()
        await server.wait_closed()

    run(scenario)
