"""Connections to brokers for each client of the HTTP server.

Brokers decide by the principal of a connection. So each client has connections of its own, which have begun with
ActForClient. They are kept for the next request of the same client; the ones that were not used for longest are closed.
Where brokers know only anonymous clients, all clients share the same connections.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Self

from sskafka.client.cluster import Cluster
from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import raise_for
from sskafka.model.listeners import HTTP_NAME
from sskafka.servers.http.caller import HttpCaller
from sskafka.servers.http.record_reader import RecordReader
from sskafka.servers.http.record_writer import RecordWriter
from sskafka.servers.http.replica_wait import ReplicaWait
from sskafka.wire.messages.act_for_client import ActForClientRequest, ActForClientResponse

IDLE_CALLERS_MAX = 100

NewCluster = Callable[[HttpCaller | None, int], Cluster]
"""Caller and request timeout in milliseconds to a cluster; None: the HTTP server itself is the client."""


async def connect_for(caller: HttpCaller, address: Address, options: ConnectionOptions) -> BrokerConnection:
    """Connect to a broker on behalf of a client. Raise KafkaError if the broker does not allow that."""
    connection = await connect(address, options)
    try:
        request = ActForClientRequest(caller.principal, caller.host, HTTP_NAME)
        response = await connection.request(request, ActForClientResponse)
        raise_for(response.error_code, response.error_message or f"{address} does not accept clients of HTTP servers")
    except BaseException:
        await connection.close()
        raise
    return connection


class CallerClients:
    """`own`: the cluster as the HTTP server itself sees it, for positions of replicas that a client may not see."""

    def __init__(
        self, cluster: Cluster, new_cluster: Callable[[int], Cluster], own: ReplicaWait, quick_ms: int, patient_ms: int
    ) -> None:
        self.cluster = cluster
        """Connections for requests that are answered at once."""
        self.administration = new_cluster(patient_ms)
        """Connections for changes, which wait until they are committed."""
        self.reader = RecordReader(cluster, partial(new_cluster, quick_ms), own.cluster)
        self.writer = RecordWriter(cluster, new_cluster(patient_ms), own)
        self.requests = 0
        self.is_open = False
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        self.is_open = True
        self._stack.push_async_callback(self.cluster.close)
        self._stack.push_async_callback(self.administration.close)
        await self._stack.enter_async_context(self.reader)
        await self._stack.enter_async_context(self.writer)

    async def close(self) -> None:
        await self._stack.aclose()


class ClientPool:
    def __init__(self, new_cluster: NewCluster, own: ReplicaWait, quick_ms: int, patient_ms: int) -> None:
        self._new_cluster = new_cluster
        self._own = own
        self._timeouts_ms = (quick_ms, patient_ms)
        self._clients: OrderedDict[HttpCaller | None, CallerClients] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for clients in self._clients.values():
            await clients.close()

    @asynccontextmanager
    async def clients_of(self, caller: HttpCaller | None) -> AsyncIterator[CallerClients]:
        """Lend the clients of a caller. None: those that all callers share."""
        clients = self._clients.get(caller)
        if clients is None:
            clients = self._clients[caller] = self._make(caller)
        self._clients.move_to_end(caller)
        clients.requests += 1
        try:
            if not clients.is_open:
                await clients.open()
            yield clients
        finally:
            clients.requests -= 1
            await self._close_oldest()

    def _make(self, caller: HttpCaller | None) -> CallerClients:
        cluster = self._own.cluster if caller is None else self._new_cluster(caller, self._timeouts_ms[0])
        return CallerClients(cluster, partial(self._new_cluster, caller), self._own, *self._timeouts_ms)

    async def _close_oldest(self) -> None:
        idle = [caller for caller, clients in self._clients.items() if not clients.requests]
        for caller in idle[: max(0, len(idle) - IDLE_CALLERS_MAX)]:
            await self._clients.pop(caller).close()
