"""Finds out, over sockets, which process answers at a broker's address."""

import asyncio
from collections.abc import Mapping

from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import ClientError, ConnectionRefusedByBrokerError
from sskafka.controller.broker_watch import Found
from sskafka.metadata.brokers.presence import ProbeResult
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.wire.messages.broker_identity import BrokerIdentityRequest, BrokerIdentityResponse

_IDENTITY_VERSION = 0  # ApiVersions does not tell of our own APIs


class SocketProber:
    def __init__(
        self,
        cluster_id: str,
        listener_name: str | None,
        voter_addresses: Mapping[int, Address],
        options: ConnectionOptions,
    ) -> None:
        """`listener_name`: the listener for other brokers; None, or where a broker has none by that name: its first."""
        self._cluster_id = cluster_id
        self._listener_name = listener_name
        self._voter_addresses = voter_addresses
        self._options = options

    async def probe(self, broker: BrokerRegistration, *, was_reached: bool) -> Found:
        address = self._address_of(broker)
        if address is None:
            return Found(ProbeResult.UNSURE)
        try:
            connection = await connect(address, self._options)
        except ConnectionRefusedByBrokerError:
            return Found(ProbeResult.REFUSED, at_voter_address=not was_reached and await self._voter_refuses(broker.id))
        except ClientError:
            return Found(ProbeResult.UNSURE)
        return await self._identify(connection, broker)

    def _address_of(self, broker: BrokerRegistration) -> Address | None:
        named = broker.endpoint(self._listener_name) if self._listener_name is not None else None
        endpoint = named or next(iter(broker.endpoints), None)
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    async def _voter_refuses(self, node_id: int) -> bool:
        """A node that is broker and voter is one process, and voters know where they reach each other."""
        address = self._voter_addresses.get(node_id)
        if address is None:
            return False
        try:
            connection = await connect(address, self._options)
        except ConnectionRefusedByBrokerError:
            return True
        except ClientError:
            return False
        connection.abort("it was only to be seen whether somebody answers")
        return False

    async def _identify(self, connection: BrokerConnection, broker: BrokerRegistration) -> Found:
        held = _Held(connection)
        result = ProbeResult.UNSURE
        try:
            answer = await connection.request(
                BrokerIdentityRequest(), BrokerIdentityResponse, version=_IDENTITY_VERSION
            )
            if answer.error_code == 0 and (answer.cluster_id, answer.broker_id) == (self._cluster_id, broker.id):
                is_same = answer.incarnation_id == broker.incarnation_id
                result = ProbeResult.ANSWERED if is_same else ProbeResult.REPLACED
        except ClientError:
            pass
        finally:
            if result is not ProbeResult.ANSWERED:
                held.drop()
        return Found(result, held if result is ProbeResult.ANSWERED else None)


class _Held:
    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._ended = asyncio.Event()
        connection.on_lost = lambda _: self._ended.set()

    async def lost(self) -> None:
        if self._connection.is_open:
            await self._ended.wait()

    def drop(self) -> None:
        self._connection.abort("it is not needed any more")
