"""Keep a connection to every registered broker, on each voter of the quorum, to detect at once that a broker has died.

    probe -> the broker answers -> wait until the connection breaks -> probe again at once
          -> anything else      -> noted (`brokers/presence` says what it proves) -> a growing pause -> probe again

All voters watch, not only the active controller. So a new controller knows at once which brokers died together with its
predecessor.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import ClientError, ConnectionRefusedByBrokerError
from sskafka.metadata.brokers.presence import BrokerPresence, ProbeResult
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.runtime.clock import Clock
from sskafka.wire.messages.broker_identity import BrokerIdentityRequest, BrokerIdentityResponse

_log = logging.getLogger(__name__)

FIRST_PAUSE_MS = 50
PAUSE_MAX_MS = 5000
LASTING_MS = 1000
"""If a connection breaks earlier, the next attempt is delayed: the broker may be closing every connection."""
_IDENTITY_VERSION = 0  # ApiVersions does not list SSKafka's own APIs


class HeldConnection(Protocol):
    async def lost(self) -> None:
        """Return when the connection has closed."""
        ...

    def drop(self) -> None: ...


class ProbeOutcome(NamedTuple):
    result: ProbeResult
    connection: HeldConnection | None = None
    """With ANSWERED: the connection over which the broker answered."""
    at_voter_address: bool = False
    """With REFUSED: whether the node's address as a voter refuses connections too."""


class BrokerProber(Protocol):
    async def probe(self, broker: BrokerRegistration, *, was_reached: bool) -> ProbeOutcome:
        """Connect to the broker once and find out who answers.

        If the broker `was_reached` at this address before, a refusal there is enough evidence, and the node's address
        as a voter is not tried."""
        ...


class BrokerWatch:
    def __init__(
        self,
        node_id: int,
        prober: BrokerProber,
        presence: BrokerPresence,
        clock: Clock,
        on_probe: Callable[[], None],
    ) -> None:
        """Runs on the running event loop. `on_probe` is called with every result of a probe."""
        self._node_id = node_id
        self._prober = prober
        self._presence = presence
        self._clock = clock
        self._on_probe = on_probe
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, tuple[int, asyncio.Task[None]]] = {}
        """By broker id: the epoch of the registration, and the task that watches it."""

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        for broker_id in delta.brokers_changed:
            self._watch(broker_id, image.brokers.get(broker_id))
        if delta.brokers_changed:
            self._presence.retain(image)

    def stop(self) -> None:
        for _, task in self._watched.values():
            task.cancel()
        self._watched.clear()

    def _watch(self, broker_id: int, broker: BrokerRegistration | None) -> None:
        """Watch the registered brokers, except this node's own, which ends when this node does."""
        epoch, task = self._watched.get(broker_id, (None, None))
        if broker is not None and broker.epoch == epoch:
            return
        if task is not None:
            task.cancel()
            del self._watched[broker_id]
        if broker is not None and broker_id != self._node_id:
            self._watched[broker_id] = broker.epoch, self._loop.create_task(self._keep_watching(broker))

    async def _keep_watching(self, broker: BrokerRegistration) -> None:
        failures = 0
        while True:
            found = await self._probe(broker)
            if found.connection is not None and await self._outlasts_minimum(found.connection):
                failures = 0
            else:
                await asyncio.sleep(min(FIRST_PAUSE_MS << min(failures, 16), PAUSE_MAX_MS) / 1000)
                failures += 1

    async def _probe(self, broker: BrokerRegistration) -> ProbeOutcome:
        began_ms = int(self._clock.monotonic_ms())
        was_reached = self._presence.was_reached(broker.id, broker.epoch)
        try:
            found = await self._prober.probe(broker, was_reached=was_reached)
        except Exception:  # task boundary: the result of this probe is unknown
            _log.exception("broker %d cannot be watched", broker.id)
            found = ProbeOutcome(ProbeResult.UNSURE)
        _log.debug("broker %d of epoch %d: %s", broker.id, broker.epoch, found.result.value)
        self._presence.found(broker.id, broker.epoch, found.result, began_ms, at_voter_address=found.at_voter_address)
        self._on_probe()
        return found

    async def _outlasts_minimum(self, connection: HeldConnection) -> bool:
        """Wait until the connection closes. Return whether it lasted long enough to connect again at once."""
        began_ms = self._clock.monotonic_ms()
        try:
            await connection.lost()
        finally:
            connection.drop()
        return self._clock.monotonic_ms() - began_ms >= LASTING_MS


class SocketProber:
    """Finds out, over sockets, which process answers at a broker's address."""

    def __init__(
        self,
        cluster_id: str,
        listener_name: str | None,
        voter_addresses: Mapping[int, Address],
        voter_options: ConnectionOptions,
        broker_options: ConnectionOptions | None = None,
    ) -> None:
        """`listener_name`: the inter-broker listener. If None, or if a broker has none by that name, its first one.

        `broker_options` are for connections to brokers, where these differ from those to voters."""
        self._cluster_id = cluster_id
        self._listener_name = listener_name
        self._voter_addresses = voter_addresses
        self._voter_options = voter_options
        self._broker_options = broker_options or voter_options

    async def probe(self, broker: BrokerRegistration, *, was_reached: bool) -> ProbeOutcome:
        address = self._address_of(broker)
        if address is None:
            return ProbeOutcome(ProbeResult.UNSURE)
        try:
            connection = await connect(address, self._broker_options)
        except ConnectionRefusedByBrokerError:
            return ProbeOutcome(
                ProbeResult.REFUSED, at_voter_address=not was_reached and await self._voter_refuses(broker.id)
            )
        except ClientError:
            return ProbeOutcome(ProbeResult.UNSURE)
        return await self._identify(connection, broker)

    def _address_of(self, broker: BrokerRegistration) -> Address | None:
        named = broker.endpoint(self._listener_name) if self._listener_name is not None else None
        endpoint = named or next(iter(broker.endpoints), None)
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    async def _voter_refuses(self, node_id: int) -> bool:
        """Return whether the node refuses connections at its address as a voter: broker and voter are one process."""
        address = self._voter_addresses.get(node_id)
        if address is None:
            return False
        try:
            connection = await connect(address, self._voter_options)
        except ConnectionRefusedByBrokerError:
            return True
        except ClientError:
            return False
        connection.abort("only a probe")
        return False

    async def _identify(self, connection: BrokerConnection, broker: BrokerRegistration) -> ProbeOutcome:
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
        return ProbeOutcome(result, held if result is ProbeResult.ANSWERED else None)


class _Held:
    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    async def lost(self) -> None:
        await self._connection.wait_closed()

    def drop(self) -> None:
        self._connection.abort("no longer needed")
